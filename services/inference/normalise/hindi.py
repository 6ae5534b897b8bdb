"""Names of whole numbers and years in Hindi, which num2words does not know. Pure."""

from __future__ import annotations

from typing import Final

_BELOW_HUNDRED: Final = (
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस "
    "बीस इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस "
    "तीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस "
    "चालीस इकतालीस बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास "
    "पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ "
    "साठ इकसठ बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर "
    "सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर सतहत्तर अठहत्तर उनासी "
    "अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी "
    "नब्बे इक्यानवे बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
).split()

_SCALES: Final = (
    (10**11, "खरब"),
    (10**9, "अरब"),
    (10**7, "करोड़"),
    (10**5, "लाख"),
    (10**3, "हज़ार"),
    (100, "सौ"),
)


def year(value: int) -> str:
    """Nineteen hundred forty seven; from 2000 on, and before 1100, like any number."""
    if not 1100 <= value < 2000:
        return cardinal(value)
    hundreds, rest = divmod(value, 100)
    return f"{cardinal(hundreds)} सौ {cardinal(rest) if rest else ''}".rstrip()


def cardinal(value: int) -> str:
    """The name of a non-negative number below 10**15."""
    words = []
    for scale, name in _SCALES:
        count, value = divmod(value, scale)
        if count:
            words += [cardinal(count), name]
    if value or not words:
        words.append(_BELOW_HUNDRED[value])
    return " ".join(words)
