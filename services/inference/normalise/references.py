"""Numbers by which something is found: verses, paragraphs, cards, accounts, flights. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.numbers import up_to, version
from services.inference.normalise.rules import Rule, any_of, rule

_STATES: Final = frozenset(
    "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ "
    "NM NY NC ND OH OK OR PA PR RI SC SD TN TX UT VT VA WA WV WI WY".split()
)
_ELEMENTS: Final = (
    "Ag Al Au Ba Br Ca Cl Co Cr Cu Fe Hg Li Mg Mn Na Ni Pb Pt Si Sn Ti Zn H C N O F P S K I".split()
)
_FORMULA: Final = re.compile(rf"(?:(?:{'|'.join(_ELEMENTS)})\d{{0,2}}){{2,8}}")
_DIGIT_GROUPS: Final = r"\d{4}(?:[ -]\d{4}){2,4}|3\d{3}[ -]\d{6}[ -]\d{5}"


def rules(language: Language) -> list[Rule]:
    """Those that cannot be mistaken, then those that a word in front announces."""
    ordered = [
        rule("d", rf"(?:{_DIGIT_GROUPS})(?![-\d]|[ ]\d)", _card),
        rule("l", r"[A-Z]{2}\d{2}(?:[ ]?[A-Z\d]{4}){3,7}(?:[ ]?[A-Z\d]{1,3})?(?!\w)", _account),
        rule("l", r"(?=[A-Z][A-Za-z\d]{1,14}(?!\w))(?:[A-Z][a-z]?\d{0,2}){2,8}(?!\w)", _formula),
        rule("d", r"(7[0-8]7)-(\d00|8|9|10)(ER|LR|F)?(?!\w)", _aircraft),
        rule(
            "d",
            r"(\d{1,4}(?:\.\d{1,3}){0,4})((?:\([a-zA-Z]\)|\(\d{1,2}\)(?=\([a-zA-Z]\))|(?<=\))\(\d{1,2}\)){1,4})",
            _paragraph,
        ),
    ]
    ordered.append(
        rule("d", r"(\d{1,3})\.{1,3}(?=(?:[KQRBN]?[a-h]?x?[a-h][1-8]|O-O)(?![\w@]|\.\w))", _move)
    )
    books = any_of(language.table("books"))
    chapter = r"(\d{1,3})[ ]?[:：][ ]?(\d{1,3})(?:[-–](\d{1,3}))?(?![:\d]|[ ]?[aApP]\.?[mM](?!\w))"
    gap = "[ ]" if language.spaced else "[ ]?"
    ordered.append(rule("ld", rf"([123][ ])?({books}){gap}{chapter}", _verse))
    ordered.append(rule("d", r"(\d{1,3}):(\d{1,3})[-–](\d{1,3})(?![:\d])", _verses))
    if language.family == "en":
        ordered.append(rule("l", r"([A-Z]{2})[ ](\d{5}(?:-\d{4})?)(?!\w|[.,:/-]\d)", _zip))
    if "laws" in language.tables:
        ordered.append(rule("d", r"(\d{1,3}\.\d{3}|\d{1,4})/((?:19|20)\d\d)(?![\d/])", _law))
    if language.family == "fr":
        ordered.append(
            rule("l", r"([LRD])\.?[ ]?(\d{1,4})-(\d{1,3})(?:-(\d{1,2}))?(?![-\w])", _code)
        )
    return ordered


def _card(found: re.Match[str], language: Language) -> str:
    return ", ".join(language.digits(group) for group in re.split("[ -]", found[0]))


def _account(found: re.Match[str], language: Language) -> str | None:
    """An IBAN, in fours."""
    letters = found[0].replace(" ", "")
    if sum(map(str.isdecimal, letters)) < 8:
        return None
    return ", ".join(language.letters(letters[i : i + 4]) for i in range(0, len(letters), 4))


def _formula(found: re.Match[str], language: Language) -> str | None:
    """NaCl, CaCO3; words in capitals and COs are none."""
    written = found[0]
    is_chemical = re.search("[a-z]", written) or len(re.findall(r"\d+", written)) > 1
    if not is_chemical or not _FORMULA.fullmatch(written):
        return None
    parts = re.findall(r"[A-Za-z]+|\d+", written)
    return " ".join(
        language.cardinal(part) if part.isdecimal() else language.letters(part) for part in parts
    )


def _aircraft(found: re.Match[str], language: Language) -> str:
    """747-400: no range."""
    name = found[1]
    if language.family == "en":
        said = f"seven {language.cardinal(name[1:])}"
    else:
        said = language.cardinal(name)
    series = language.cardinal(found[2])
    return language.joined([said, series, *([language.letters(found[3])] if found[3] else [])])


def _paragraph(found: re.Match[str], language: Language) -> str:
    """230(c)(1)."""
    steps = re.findall(r"\w+", found[2])
    said = [
        language.cardinal(step) if step.isdecimal() else language.letters(step) for step in steps
    ]
    number = version(found[1], language)
    if language.family == "en" and re.fullmatch("[1-9]0[1-9]", found[1]):  # 401(k)
        number = f"{language.cardinal(found[1][0])} oh {language.cardinal(found[1][2])}"
    return " ".join([number, *said])


def _move(found: re.Match[str], language: Language) -> str:
    """1.e4, 12...Nf6: a pause behind the number of a move."""
    return f"{language.cardinal(found[1])}, "


def _verse(found: re.Match[str], language: Language) -> str:
    """John 3:16 is no time of day."""
    which, book, chapter, verse, last = found.groups()
    name = language.table("books")[book]
    if which:
        name = f"{language.ordinal(which.strip())} {name}"
        name = name[:1].upper() + name[1:]
    return f"{name}{' ' if language.spaced else ''}{_place(chapter, verse, last, language)}"


def _verses(found: re.Match[str], language: Language) -> str | None:
    """13:4-7; not 9:30-10."""
    if int(found[3]) <= int(found[2]) or (int(found[1]) < 25 and len(found[2]) > 1):
        return None
    return _place(found[1], found[2], found[3], language)


def _place(chapter: str, verse: str, last: str | None, language: Language) -> str:
    said = language.cardinal(verse)
    if last:
        said = up_to(said, language.cardinal(last), language)
    template: str = language.tables["verse"]
    return template.format(chapter=language.cardinal(chapter), verse=said)


def _zip(found: re.Match[str], language: Language) -> str | None:
    """TX 78701: behind the letters of a state."""
    if found[1] not in _STATES:
        return None
    return f"{language.letters(found[1])} {', '.join(map(language.digits, found[2].split('-')))}"


def _law(found: re.Match[str], language: Language) -> str | None:
    """Ley 39/2015: the one of that year."""
    before = found.string[max(0, found.start() - 16) : found.start()]
    named = re.sub(r"(?:n[.º°o]{0,2}|núm\.)?[ ]*$", "", before).rstrip()
    if not named.endswith(tuple(language.tables["laws"])):
        return None
    return f"{language.number(found[1])} {language.word('of_year')} {language.year(found[2])}"


def _code(found: re.Match[str], language: Language) -> str:
    """L. 121-1."""
    numbers = [language.cardinal(part) for part in found.groups()[1:] if part]
    return f"{language.letters(found[1])} {' tiret '.join(numbers)}"
