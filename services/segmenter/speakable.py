"""Markup to speech: what is said of a whole segment.

Works on finished segments only, so nothing is torn: markdown, links, tables, tags, citations and
emoji go; numbers, dates and addresses stay as they are written (the container turns them into
words).
"""

from __future__ import annotations

import html
import re
from typing import Final, Literal

from .characters import EMOJI, ZERO_WIDTH

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

_MARKED = re.compile(
    rf"[*_`~<>\[\]#|&\\•⁃◦‣▪●【{ZERO_WIDTH}{EMOJI}\r\n\t]|\s\s|https?://|^[-+–—]\s"
)
_FENCE = re.compile(r"^[ \t]*(`{3,})[^\n`]*\n?(.*?)(?:\n?[ \t]*\1`*|\Z)", re.DOTALL | re.MULTILINE)
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\([^)\s]*(?:\s[^)\n]*)?\)")
_LINK = re.compile(r"\[([^\]\n]+)\]\([^)\s]*(?:\s[^)\n]*)?\)|\[([^\]\n]+)\]\[[^\]\n]*\]")
_CITATION = re.compile(r"\s?\[\^?\d{1,3}\](?!\()|\s?【\d+[^】]*】")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^>\s]+|[^>\s@]+@[^>\s]+)>")
_URL = re.compile(r"https?://(?:www\.)?([^\s/?#<>\"'）)」』，。]+)([^\s<>\"'）)」』，。]*)")
_ALIAS = re.compile(r"<sub\s[^>]*alias=[\"']([^\"']*)[\"'][^>]*>.*?</sub>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,250}>|<!--.*?-->")
_CODE = re.compile(r"(`+)(.+?)\1(?!`)", re.DOTALL)
_STRONG = re.compile(r"(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1", re.DOTALL)
_UNDER = re.compile(r"(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)", re.DOTALL)
_STRAY = re.compile(r"\*{2,}|~~|(?<!\S)\*+(?=\S)|(?<=\S)\*+(?!\S)|`+|(?<!\w)__+|__+(?!\w)")
_HEADING = re.compile(r"^[ \t]*(?:>[ \t]*)*#{1,6}[ \t]+(.*?)[ \t#]*$", re.MULTILINE)
_BULLET = re.compile(
    r"^[ \t]*(?:>[ \t]?)*(?:(?:[-*+–—•⁃◦‣▪●][ \t]+|[•⁃◦‣▪●])(?:\[[ xX]\][ \t]+)?|>[ \t]?)",
    re.MULTILINE,
)
_RULE = re.compile(r"^[ \t]*(?:[-*_=~][ \t]*){3,}$|^[ \t|:-]*\|[ \t|:-]*$", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|(.*?)\|?[ \t]*$", re.MULTILINE)
_KEYCAP = re.compile(r"([0-9#*])\ufe0f?\u20e3[ \t]*")
_EMOJI = re.compile(rf"[ \t]*[{EMOJI}][{EMOJI}{ZERO_WIDTH} ]*")
_INVISIBLE = re.compile(f"[{ZERO_WIDTH}]")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~>])")
_LINE = re.compile(r"[ \t]*(?:\r\n?|[\n\x0b\x0c\x85\u2028\u2029])\s*")
_BLANK = re.compile(r"[ \t]{2,}|\t")
_ENDED = ".!?…:;,。！？：；，、।॥؟۔։።။។"


def speakable(text: str, lang: str, skip_code: Literal["read", "announce", "skip"]) -> str:
    """What is said of a segment: `text` without markup, on one line."""
    if _MARKED.search(text) is None:
        return text.strip()
    return _one_line(_unmark(text, lang, skip_code))


def _unmark(text: str, lang: str, skip_code: str) -> str:
    if "`" in text:
        said = "" if skip_code == "skip" else _ANNOUNCEMENT.get(lang, _ANNOUNCEMENT["en"])
        text = _FENCE.sub(r"\2" if skip_code == "read" else said, text)
    if "[" in text or "【" in text:
        text = _LINK.sub(lambda m: m[1] or m[2], _IMAGE.sub(r"\1", text))
        text = _CITATION.sub("", text)
    if "<" in text:
        text = _TAG.sub("", _ALIAS.sub(r"\1", _AUTOLINK.sub(r"\1", text)))
    if "://" in text:
        text = _URL.sub(_host, text)
    text = _RULE.sub("", text)
    text = _HEADING.sub(r"\1", text)
    text = _BULLET.sub("", text)
    if "|" in text:
        text = _ROW.sub(_cells, text)
    text = _CODE.sub(r"\2", text)
    if "*" in text or "_" in text or "~" in text:
        text = _UNDER.sub(r"\2", _STRONG.sub(r"\2", _STRONG.sub(r"\2", text)))
    text = _STRAY.sub("", text)
    text = _ESCAPE.sub(r"\1", text)
    if "&" in text:
        text = html.unescape(text).replace("\u00a0", " ")
    text = _KEYCAP.sub(r"\1. ", text)
    text = _EMOJI.sub(" ", text)
    return _INVISIBLE.sub("", text)


def _host(found: re.Match[str]) -> str:
    """The host is said, the path is not; what ends the sentence stays."""
    rest = found[2]
    ending = rest[len(rest.rstrip(".!?,;:")) :]
    host = found[1]
    return host if not rest else host.rstrip(".!?,;:") + ending


def _cells(found: re.Match[str]) -> str:
    cells = [cell.strip() for cell in found[1].split("|")]
    return ", ".join(cell for cell in cells if cell)


def _one_line(text: str) -> str:
    lines = [line.strip() for line in _LINE.split(text)]
    said = ""
    for line in lines:
        if not line:
            continue
        if said:
            said += " " if said[-1] in _ENDED else ". "
        said += line
    said = _BLANK.sub(" ", said)
    return re.sub(r" +([.!,](?:\s|$))", r"\1", said)
