"""Roman numerals: Henry VIII, Part IV, XXIe siècle, siglo XX, II Guerra Mundial. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, ends_text, rule

_VALUES: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_ROMAN: Final = r"(?=[IVXLC])(?:C{0,3})(?:X[CL]|L?X{0,3})(?:I[XV]|V?I{0,3})"
_NOT_A_WORD: Final = r"(?=[IVX]{2})X{0,3}(?:I[XV]|V?I{0,3})"
"""Two letters and more, none of L or C: XL is a size, CV a paper, CC a copy."""
_COUNTED: Final = frozenset(
    "guerra congreso congresso centenario centenário edición edizione edição república repubblica "
    "internacional internazionale concilio concílio convegno jornada jornadas dinastía dinastia "
    "cruzada crociata legislatura feria festival premio prêmio torneo conferencia".split()
)
"""What is numbered by Roman numerals in front of it."""
_NOUN: Final = re.compile(r"[ ]([^\W\d_]{4,30})")
_SPEAKER: Final = re.compile(r"[ ](?!(?:of|and|who|died|reigned|ruled|became|married)(?!\w))[a-z]")
_NAME: Final = re.compile(r"(?:^|[ ])([^\W\d_][^\W\d_'-]{1,30})[ ]$")


def rules(language: Language) -> list[Rule]:
    """What stands in front decides, or what stands behind; alone it is a number."""
    table = language.table
    before, marks = table("before_roman"), table("roman_marks")
    roman, end = rf"(?P<x>{_ROMAN})", r"(?!\w|['’](?!s(?!\w))|\.(?:\d|\w\.))"
    made = [
        rule("l", rf"{any_of(table('reigns'))} {roman}{end}", _reign),
        rule("l", rf"{any_of(table('numbered'))} (?![CL](?!\w)){roman}{end}", _numbered),
        rule("l", rf"{any_of(table('numbered_ordinal'))} {roman}{end}", _ordinal),
        rule("l", rf"({any_of(before)})[ ]?(?![CL](?!\w))({_ROMAN}){end}", _short),
        rule(
            "l",
            rf"({_NOT_A_WORD})(?:{any_of(marks)})?[ ]({any_of(table('century_short'))})(?!\w)",
            _century_short,
        ),
        rule("l", rf"({_NOT_A_WORD}|[VX])({any_of(marks)}){end}", _marked),
        rule("l", r"(I)(er|re|ère)(?!\w)", _marked),
        rule("l", rf"({_NOT_A_WORD})(?=[ -]{any_of(table('centuries'))})", _century),
    ]
    if language.family in ("es", "fr", "it", "pt"):
        made.append(rule("l", rf"({_NOT_A_WORD}){end}", _alone))
        made.append(rule("l", r"([IVX])(?=[ ][^\W\d_]{4,30})", _counted))
    elif language.family == "en":
        made.append(rule("l", rf"(?=II|VII|IX|X[IVX])({_NOT_A_WORD}){end}", _behind_name))
    return made


def value(roman: str) -> int:
    """14 for XIV."""
    values = [_VALUES[letter] for letter in roman]
    following = [*values[1:], 0]
    return sum(-v if v < after else v for v, after in zip(values, following, strict=True))


def _before(found: re.Match[str]) -> str:
    return found.string[max(0, found.start() - 34) : found.start()]


def _numbered(found: re.Match[str], language: Language) -> str:
    return language.cardinal(str(value(found["x"])))


def _ordinal(found: re.Match[str], language: Language) -> str:
    return language.ordinal(str(value(found["x"])))


def _reign(found: re.Match[str], language: Language) -> str | None:
    """Charles I of Spain, not `James I think`."""
    name = found.string[found.start() : found.start("x") - 1]
    if language.family == "en" and found["x"] == "I" and _SPEAKER.match(found.string, found.end()):
        return None
    return _of_ruler(name, value(found["x"]), language)


def _of_ruler(name: str, number: int, language: Language) -> str:
    """Isabel segunda, Alfonso trece, Henry the eighth."""
    if number > language.tables["reign_ordinals"]:
        return language.cardinal(str(number))
    is_woman = name.endswith("a") or name in ("Isabel", "Elizabeth", "Élisabeth", "Beatriz")
    ordinal = language.ordinal(str(number), "f" if is_woman else "m")
    return f"{language.word('the')} {ordinal}".strip()


def _short(found: re.Match[str], language: Language) -> str | None:
    """s. XX, sec. XX; not what ends a sentence before `I`."""
    if found[2] == "I" and found.string[found.end() : found.end() + 1] == " ":
        return None
    word: str = language.table("before_roman")[found[1]]
    number = str(value(found[2]))
    is_ordinal = word in language.tables.get("numbered_ordinal", ())
    return f"{word} {language.ordinal(number) if is_ordinal else language.cardinal(number)}"


def _marked(found: re.Match[str], language: Language) -> str | None:
    gender = language.table("roman_marks").get(found[2])
    return None if gender is None else language.ordinal(str(value(found[1])), gender)


def _century(found: re.Match[str], language: Language) -> str:
    return language.ordinal(str(value(found[1])))


def _century_short(found: re.Match[str], language: Language) -> str:
    """XIXe s., XIX sec."""
    name: str = language.table("century_short")[found[2]]
    return f"{language.ordinal(str(value(found[1])))} {name}{'.' if ends_text(found) else ''}"


def _alone(found: re.Match[str], language: Language) -> str:
    """Behind a name a ruler's; in front of a noun, which one it is; else a number."""
    number = value(found[1])
    name, noun = _NAME.search(_before(found)), _NOUN.match(found.string, found.end())
    if name and name[1][0].isupper() and not _begins(found, name[1]):
        return _of_ruler(name[1], number, language)
    if (
        noun
        and "roman_nouns" in language.tables
        and noun[1].lower() not in language.table("months")
    ):
        is_feminine = re.search(language.tables["feminine"], noun[1])
        return language.ordinal(str(number), "f" if is_feminine else "m", noun[1])
    return language.cardinal(str(number))


def _counted(found: re.Match[str], language: Language) -> str | None:
    """El I Congreso: behind an article and in front of a noun; I Guerra Mundial without one."""
    words = _before(found).split()
    noun = language.noun(found.string, found.end())
    is_named = noun[:1].isupper() and words
    behind_article = is_named and words[-1].lower() in language.tables.get("articles", ())
    if not behind_article and noun.lower() not in _COUNTED:
        return None
    return language.ordinal(
        str(value(found[1])), language.gender(noun.lower()) or "m", noun.lower()
    )


def _begins(found: re.Match[str], name: str) -> bool:
    """Whether the word is in capitals because a sentence begins with it."""
    before = _before(found)[: -len(name) - 1].rstrip()
    return not before or before[-1] in ".!?:;"


def _behind_name(found: re.Match[str], language: Language) -> str | None:
    """`Rambo III`; other letters in capitals are spelled."""
    name = _NAME.search(_before(found))
    if name is None or not name[1][0].isupper() or name[1].isupper() or _begins(found, name[1]):
        return None
    return language.cardinal(str(value(found[1])))
