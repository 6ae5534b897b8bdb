"""Mail addresses, links, names of hosts and files, handles, tags. Pure."""

from __future__ import annotations

import re

from services.inference.normalise import scripts
from services.inference.normalise.codes import port
from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, is_after_word, rule
from services.inference.normalise.symbols import is_key

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,6}[A-Za-z]{2,24}"
_PORT = r"(?::(\d{1,5})(?!\d))?"
_TAIL = rf"{_PORT}((?:[/?#][!-&*-;=?-Z^_a-z|~\\]{{0,2000}})?)"
"""A port, and the way on it: what stands in a link, without brackets and quotes."""


def rules(language: Language) -> list[Rule]:
    """Mail, links with and without a scheme, files, handles, tags."""
    domains, files = any_of(language.tables["domains"]), any_of(language.tables["files"])
    name = rf"[\w{scripts.MARKS}]{{1,64}}"
    step = r"\.?[\w+-]{1,64}(?:\.[\w+-]{1,64}){0,4}"
    label = r"([A-Za-z0-9_-]{1,64}\.){1,6}"
    return [
        rule("l", r"tel:(?=[+\d])", _scheme),
        rule("ld", rf"(?:mailto:)?[\w.+-]{{1,64}}@{_HOST}", _mail),
        rule("l", rf"(?:https?|ftp)://({_HOST}|[\w.-]{{1,80}}){_TAIL}", _link, re.IGNORECASE),
        rule("l", rf"(www\.{_HOST}){_TAIL}", _link, re.IGNORECASE),
        rule(
            "ld",
            rf"((?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}})\.){{1,5}}{domains})(?![\w@]|\.\w){_TAIL}",
            _link,
        ),
        rule("ld", rf"{label}{files}(?![\w@]|\.\w)", _file),
        rule("s", r"\.([A-Za-z]{2,12})(?!\w)", _dotted),
        rule("s", rf"@({name}(?:[.]{name}){{0,3}})", _handle),
        rule("s", rf"#([^\W\d_](?:{name})?)", _tag),
        rule("s", "#(?=[\u3040-\u9fff])", _tag_ahead),
        rule("s", "(?<=[\u3040-\u9fff])#", _tag_behind),
        rule(
            "s",
            rf"(?:[~.]{{0,2}}/{step}){{2,12}}/?|[~.]{{1,2}}/{step}/?|~/(?!\w)"
            r"|\.\.(?:/\.\.){1,6}|/(?:etc|usr|var|tmp|opt|bin|dev|home|proc|sys)(?![\w/])",
            _path,
        ),
        rule(
            "l",
            r"([A-Za-z]):\\((?:[\w.-]{1,64}(?:[ ](?=[A-Z]\w{0,30}\\)|\\|(?![\w.\\-]))){0,12})",
            _drive,
        ),
        rule("l", r"[^\W\d_][^\W_]{0,40}(?:_+[^\W_]{1,40}){1,8}", _snake),
    ]


def _scheme(_found: re.Match[str], _language: Language) -> str:
    return ""


def _mail(found: re.Match[str], language: Language) -> str:
    address = found[0].removeprefix("mailto:")
    name, _, host = address.partition("@")
    return f"{_said(name, language)} {language.word('at')} {_said(host, language)}"


def _link(found: re.Match[str], language: Language) -> str | None:
    """The host; and the path behind it where it is short and made of words."""
    host, rest = found[1], found[3]
    if found.string[found.start() : found.end() + 1].lower() in language.table("anywhere"):
        return None  # p.es. is no host
    path = rest.rstrip(".!?,;:")
    ending = rest[len(path) :]
    host = re.sub(r"^www\.", "", host, flags=re.IGNORECASE)
    said = _said(host, language) + (port(found[2], language) if found[2] else "")
    steps = [step for step in path.split("/") if step]
    if len(steps) < 4 and all(re.fullmatch(r"[A-Za-z][A-Za-z_.-]{0,30}", step) for step in steps):
        said = f" {language.word('slash')} ".join(
            [said, *(_said(step, language) for step in steps)]
        )
    return said + ending


def _file(found: re.Match[str], language: Language) -> str:
    return _said(found[0], language)


def _dotted(found: re.Match[str], language: Language) -> str | None:
    """.NET, .env: a name that begins with a dot."""
    if is_after_word(found) or found.string[found.start() - 1 : found.start()] == ".":
        return None
    return f"{language.word('dot')} {_part(found[1], language)}"


def _handle(found: re.Match[str], language: Language) -> str | None:
    return None if is_after_word(found) else f"{language.word('at')} {_said(found[1], language)}"


def _tag(found: re.Match[str], language: Language) -> str | None:
    if is_after_word(found):
        return None
    if re.fullmatch(r"[0-9a-fA-F]{6}", found[1]):  # a colour
        return f"{language.table('marks')['#']} {language.letters(found[1])}"
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|_|(?<=\D)(?=\d)|(?<=\d)(?=\D)", " ", found[1])
    words = " ".join(language.cardinal(w) if w.isdecimal() else w for w in apart.split())
    return f"{language.word('hashtag')} {words}"


def _tag_ahead(found: re.Match[str], language: Language) -> str:
    """#で終了, 按#结束: a key."""
    before = found.string[max(0, found.start() - 40) : found.start()]
    if is_key(before, language) or re.match(
        "#[でをはとが]", found[0] + found.string[found.end() :][:1]
    ):
        return str(language.table("signs")["#"])
    return language.word("hashtag")


def _tag_behind(_found: re.Match[str], _language: Language) -> str:
    return ""


def _path(found: re.Match[str], language: Language) -> str | None:
    return None if is_after_word(found) else _said(found[0], language)


def _drive(found: re.Match[str], language: Language) -> str:
    r"""C:\Users\bob."""
    mark = f" {language.table('signs').get(chr(92)) or ''} "
    path = found[2].rstrip(".")
    steps = [_said(step, language) for step in path.split(chr(92))]
    ending = found[2][len(path) :]
    said = f"{language.letters(found[1])} {language.word('colon')}{mark}{mark.join(steps)}"
    return said.rstrip() + ending


def _snake(found: re.Match[str], language: Language) -> str:
    parts = re.findall(r"[^\W\d_]+|\d+", found[0])
    return " ".join(_count(part, language) if part.isdecimal() else part for part in parts)


def _count(digits: str, language: Language) -> str:
    """x86_64: x eighty six sixty four."""
    return language.cardinal(digits) if len(digits) < 3 else language.digits(digits)


def _said(text: str, language: Language) -> str:
    """Parts and the marks between them by their names; a hyphen is a space."""
    names = language.table("marks")
    parts = re.findall(rf"(?:[^\W\d_][{scripts.MARKS}]*)+|\d+|[^\w\s]|_", text)
    said = [
        language.digits(part)
        if part[0].isdecimal()
        else _part(part, language)
        if part[0].isalpha()
        else names.get(part, "")
        for part in parts
    ]
    return " ".join(word for word in said if word)


def _part(word: str, language: Language) -> str:
    """A word, or letter by letter where nobody could read it."""
    known: str | None = language.table("address_words").get(word.lower())
    if known is not None:
        return known
    is_mute = len(word) <= 4 and not re.search("[aeiouyAEIOUY]", word) and word.isascii()
    if is_mute or word == "etc":  # of a path it is no et cetera
        return language.letters(word)
    return word
