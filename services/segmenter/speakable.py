"""Markup to speech: what is said of a whole segment.

Works on finished segments only, so nothing is torn: markdown, links, tables, tags, citations and
emoji go; numbers, dates and addresses stay as they are written (the container turns them into
words).
"""

from __future__ import annotations

import html
import re
from typing import Final

from .characters import CJK, EMOJI, ZERO_WIDTH

_ANNOUNCEMENT: Final = {
    "en": "Here is some code.",
    "es": "Aquí hay un fragmento de código.",
    "pt": "Aqui há um trecho de código.",
    "de": "Hier steht etwas Code.",
    "fr": "Voici un extrait de code.",
    "it": "Ecco un frammento di codice.",
    "nl": "Hier staat een stuk code.",
    "pl": "Oto fragment kodu.",
    "ru": "Здесь фрагмент кода.",
    "tr": "Burada bir kod parçası var.",
    "hi": "यहाँ कोड का एक अंश है।",
    "zh": "这里有一段代码。",
    "ja": "ここにコードがあります。",
    "ko": "여기에 코드가 있습니다.",
    "ar": "هنا مقطع من الشيفرة.",
    "th": "ตรงนี้มีโค้ดตัวอย่าง",
}

# Joiners stay: scripts need them between letters.
INVISIBLE: Final = "\u200b\u200e\u200f\u2060\ufeff\ufe0e\ufe0f\u00ad"
_WIDE = re.compile(f"[{CJK}]")
# Every repetition is bounded or anchored: a hostile text costs no more than its length.
_MARKED = re.compile(
    rf"[*_`~<>\[\]#|&\\•⁃◦‣▪●【ಠಥ□◕{INVISIBLE}{EMOJI}\r\n\t]|\s\s|https?://|^[-+–—]\s|^\+[-=]"
)
_FENCE = re.compile(
    r"^[ \t>]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t>]*\1[`~]*|\Z)", re.DOTALL | re.MULTILINE
)
# Addresses may hold brackets of their own, as many of encyclopedias do.
_TARGET: Final = (
    r"\((?:[^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,200}){0,3}|[^)\s]{0,2000})"
    r"(?:\s[^)\n]{0,200})?\)"
)
_IMAGE = re.compile(rf"!\[([^\]\n]{{0,200}})\]{_TARGET}")
_LINK = re.compile(
    rf"\[([^\[\]\n]{{1,200}})\]{_TARGET}"
    r"|\[([^\[\]\n\d^][^\[\]\n]{0,200})\]\[[^\]\n]{0,50}\]"
)
_CITATION = re.compile(r"\s?\[\^?\d{1,3}\](?!\()|\s?【\d[^】\n]{0,40}】")
_CITED = re.compile(rf"\s?\[{{1,2}}\^?\d{{1,3}}\]{{1,2}}{_TARGET}")  # a number as a link
_DEFINITION = re.compile(
    r"^[ \t]{0,3}\[[^\]\n]{1,100}\]:[ \t]{1,8}(?:<?(?:https?://|mailto:|www\.)|[./#])\S{0,2000}"
    r"(?:[ \t]{1,8}[\"'(][^\n]{0,200})?[ \t]{0,8}$",
    re.MULTILINE,
)
_AUTOLINK = re.compile(
    r"<((?:https?://|mailto:)[^<>\s]{1,2000}|[^<>\s@]{1,64}@[^<>\s]{1,200})>", re.IGNORECASE
)
_URL = re.compile(r"https?://(?:www\.)?([^\s/?#<>\"'）)」』，。]+)([^\s<>\"'）)」』，。]*)")
_ALIAS = re.compile(
    r"<sub\s[^<>]{0,100}alias=[\"']([^\"'<>]{0,200})[\"'][^<>]{0,100}>[^<>]{0,200}</sub>",
    re.IGNORECASE,
)
# Attributes have an equals sign: in "if x<y then z>w" there is no tag.
_TAG = re.compile(
    r"<!--.{0,2000}?-->|<\|[\w-]{1,40}\|>|<[!?][A-Za-z][^<>\n]{0,250}>"
    r"|</?[A-Za-z][\w:.-]{0,40}"
    r"(?:\s{1,20}[\w:.-]{1,40}\s?=\s?(?:\"[^\"<>]{0,250}\"|'[^'<>]{0,250}'|[^\s\"'<>]{1,250})){0,10}"
    r"\s{0,20}/?>",
    re.DOTALL,
)
_BREAK = re.compile(
    r"</?(?:address|article|blockquote|d[dlt]|details|div|figcaption|figure|h[1-6r]|li|ol|p|pre|"
    r"section|summary|table|tr|ul)\b",
    re.IGNORECASE,
)
_WRAP = re.compile(r"<br\b", re.IGNORECASE)
_CELL = re.compile(r"</?(?:s|t[dh])\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"(?<!\w)<([A-Za-z][^<>\n=]{0,80}[A-Za-z])>(?!\w)")
_CODE = re.compile(r"(`{1,3})(?!`)([^`]{1,400})\1(?!`)")
_POWER = re.compile(r"(?<=\d)\*\*(?=\d)")
_STRONG = re.compile(r"(?!(?<=\d)\*\d)(\*{1,3}|~~)(?=[^\s*~])([^*~]{1,400}?)(?<=\S)\1")
_UNDER = re.compile(r"(?<!\w)(_{1,3})(?=[^\s_])([^\n]{1,200}?)(?<=[^\s_])\1(?!\w)")
_STRAY = re.compile(r"\*{2,}|~~|(?<!\S)\*+(?=\S)|(?<=\S)\*+(?!\S)|`+|(?<!\w)__+|__+(?!\w)")
_HEADING = re.compile(r"^[ \t]*(?:>[ \t]*)*#{1,6}[ \t]+", re.MULTILINE)
_CLOSING_HASHES = re.compile(r"[ \t]#{1,6}[ \t]*$", re.MULTILINE)
_BULLET = re.compile(
    r"^[ \t]*(?:>[ \t]?)*(?:(?:[-*+–—•⁃◦‣▪●][ \t]+|[•⁃◦‣▪●])(?:\[[ xX]\][ \t]+)?|>[ \t]?)",
    re.MULTILINE,
)
_RULE = re.compile(
    r"^[ \t]*(?:[-*_=~][ \t]*){3,}$|^(?=[^|\n]*\|)[ \t|:-]+$|^[ \t]*\+[-=+:]{2,}\+[ \t]*$",
    re.MULTILINE,
)
_KAOMOJI = re.compile(
    r"[¯╯ノヽ┻━┳]{0,4}\\{0,2}_?\((?=[^()\n]{0,12}[°□ಠಥ◕‿﹏益╥ᴗツ])[^()\nA-Za-z0-9]{1,12}\)"
    r"_?/?[¯╯ノヽ]{0,2}(?:︵\s?[┻━┳─]{0,4})?"
)
_KEYCAP = re.compile(r"([0-9#*])\ufe0f?\u20e3[ \t]*")
_EMOJI = re.compile(rf"[ \t]{{0,4}}[{EMOJI}][{EMOJI}{ZERO_WIDTH} ]*([.,!?;:。！？，]?)")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~>])")
_UNESCAPE: Final = {0xE000 + code: code for code in range(0x80)}
_LINES = re.compile(r"[\r\n\x0b\x0c\x85\u2028\u2029]+")
_BLANK = re.compile(r"[ \t]{2,}|\t")
_ENDED = ".!?…:;,。！？：；，、।॥؟۔։።။"


def speakable(text: str) -> str:
    """What is said of a segment: `text` without markup, on one line."""
    if _MARKED.search(text) is None:
        return text.strip()
    return _one_line(_unmark(text))


def announcement(lang: str) -> str:
    """What is said in place of a block of code that is not read."""
    return _ANNOUNCEMENT.get(lang, _ANNOUNCEMENT["en"])


def _unmark(text: str) -> str:
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(r"\2", text)
    if "(" in text:
        text = _KAOMOJI.sub("", text)
    text = _ESCAPE.sub(lambda m: chr(0xE000 + ord(m[1])), text)
    if "[" in text or "【" in text:
        text = _CITED.sub("", _IMAGE.sub(r"\1", _DEFINITION.sub("", text)))
        text = _LINK.sub(lambda m: m[1] or m[2], text)
        text = _CITATION.sub("", text)
    if "<" in text:
        text = _TAG.sub(_apart, _ALIAS.sub(r"\1", _AUTOLINK.sub(r"\1", text)))
        text = _PLACEHOLDER.sub(r"\1", text)
    if "://" in text:
        text = _URL.sub(_host, text)
    text, headings = _HEADING.subn("", _RULE.sub("", text))
    if headings:
        text = _CLOSING_HASHES.sub("", text)
    text = _BULLET.sub("", text)
    if "|" in text:
        text = "\n".join(map(_row, text.split("\n")))
    text = _POWER.sub("^", _CODE.sub(r"\2", text))
    for _ in range(2):  # emphasis inside emphasis
        text = _UNDER.sub(r"\2", _STRONG.sub(r"\2", text))
    text = _STRAY.sub("", text)
    if "&" in text:
        text = html.unescape(text).replace("\u00a0", " ")
    text = _EMOJI.sub(_picture, _KEYCAP.sub(r"\1. ", text))
    return _INVISIBLE.sub("", text).translate(_UNESCAPE)


def _apart(found: re.Match[str]) -> str:
    """What a tag leaves: a line break where a browser would begin a line, but none where `<br>`
    goes on in lower case, and a space between cells and between the sentences of SSML."""
    after = found.string[found.end() : found.end() + 20]
    wraps = _WRAP.match(found[0])
    if _BREAK.match(found[0]) or (wraps and not after.lstrip()[:1].islower()):
        return "\n"
    apart = wraps or _CELL.match(found[0])
    return " " if apart and (after[:1].isalnum() or after[:1] == "<") else ""


def _host(found: re.Match[str]) -> str:
    """The host is said, the path is not; what ends the sentence stays."""
    rest = found[2]
    host = found[1]
    if not rest:
        return host
    return host + rest[len(rest.rstrip(".!?,;:")) :]


def _row(line: str) -> str:
    """A table row as an enumeration."""
    stripped = line.strip()
    if not stripped.startswith("|"):
        return line
    cells = [cell.strip() for cell in stripped.strip("|").split("|")]
    return ", ".join(cell for cell in cells if cell)


def _picture(found: re.Match[str]) -> str:
    """Emoji leave a space, but none before a mark and none in text that has no spaces."""
    mark = found[1]
    start = found.start()
    if mark or (start and _WIDE.match(found.string, start - 1)):
        return mark
    return " "


def _one_line(text: str) -> str:
    """Lines become one; a line that ends in no mark gets a full stop, so that it is heard."""
    said = ""
    for line in map(str.strip, _LINES.split(text)):
        if not line:
            continue
        if said:
            said += " " if said[-1] in _ENDED else ". "
        said += line
    return _BLANK.sub(" ", said)
