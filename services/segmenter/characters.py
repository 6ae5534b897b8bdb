"""Character classes of the segmenter: what ends, closes, opens, hangs on and starts.

Everything here is data about characters. Which of them end a sentence where is decided in
`rules.py`; the regular expressions are compiled once, at import.
"""

from __future__ import annotations

import re

# Marks that can end a sentence. The second group never needs white space after it.
ASCII_MARKS = ".!?…"
BARE_MARKS = "。！？｡．।॥؟۔։።፧፨။៕៚។܀܁܂߹᠃᠉᱾᱿꓿꘎꘏꯫‼‽⁇⁈⁉⸮﹒﹖﹗\u037e།༎"
MARKS = ASCII_MARKS + BARE_MARKS
DOTS = ".…．"

# Closing characters belong to the sentence before. The symmetrical ones open as well, and the
# ones of `REVERSED` close only where German order („…“ »…«) has opened.
CLOSERS = "”’»›)]}）］｝】〕〉》」』｣〗〙¹²³⁰⁴⁵⁶⁷⁸⁹"  # and the numbers of notes
REVERSED = "“‘«‹"
SYMMETRIC = "\"'*_~`"
OPENERS = "“‘„‚«‹([{（［｛【〔〈《「『｢〖〘»›"
BRACKETS_OPEN = "([{（［｛【〔〈《「『｢〖〘"
BRACKETS_CLOSE = ")]}）］｝】〕〉》」』｣〗〙"
BULLETS = "•⁃◦‣▪●■–—―-→⇒►"
HARD_BULLETS = "•⁃◦‣▪●"  # these start an item wherever they stand
CLAUSE = ",;:،؛，、；：﹐﹑﹔﹕၊፣፤፥·՝"
INVERTED = "¿¡"
MONEY = "$€£¥₹₽₩₺฿¢#+@№"

ZERO_WIDTH = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f\u00ad\u061c"
EMOJI = (
    "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa\u25fb-\u25fe"
    "\u20e3\U000e0020-\U000e007f"
)
COMBINING = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
NEWLINES = "\n\r\u2028\u2029\x85\x0b\x0c"

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"

_m = re.escape(MARKS)
_close = re.escape(CLOSERS) + ZERO_WIDTH + COMBINING
# Citations and notes, the target of a link whose text ended in the mark, the end of TeX, closing
# tags; and their beginnings.
_note = r"\[{1,2}(?:\^?\d{1,3}(?:[,–-] ?\d{1,3}){0,7}|\^[\w-]{1,24})"
_attached = (
    rf"{_note}\]{{1,2}}(?:\([^)\s]{{0,200}}\))?|【\d[^】\s]{{0,40}}】|\]\([^)\s]{{0,200}}\)"
    r"|\${1,2}(?!\w)|\\[\])]|[ \t]{0,3}</[A-Za-z][^<>\n]{0,80}>"
)
_tag_begun = r"[ \t]{0,3}<(?:/?(?:[A-Za-z][^<>\n]{0,200})?)?"
UNFINISHED = re.compile(
    rf"(?:\[{{1,2}}\^?|{_note}(?:[,–-] ?|\])?|【\d?[^】\s]{{0,40}}|\]\([^)\s]{{0,200}}|\\"
    rf"|{_tag_begun})$"
)
UNFINISHED_TAG = re.compile(f"(?:{_tag_begun}|[:;=]['-]?)$")  # or an emoticon
_spaced = r"[ \u00a0\u202f]+(?:»|[\"”](?=[\s,.;:!?)]))"
# A sign for a face is no bracket, and hangs on the sentence before as an emoji does.
_EMOTICON = r"(?<=\s)(?:[:;=]['-]?[)(DPp/|](?!\w)|<3(?!\w))"


def _tail(*, paired: bool, reversed_order: bool) -> re.Pattern[str]:
    """What follows a mark, from the mark on: the run of marks (spaced dots too), closers, gap.

    `paired`: a symmetrical quote, a guillemet or emphasis is open, so an attached one closes
    whatever follows it, and one behind a space may close as well.
    """
    close = _close + (REVERSED if reversed_order else "")
    symmetric = r"[\"'*_~`]+" if paired else r"[\"'*_~`]+(?!\w)"
    spaced = f"|{_spaced}" if paired else ""
    return re.compile(
        rf"(?P<marks>(?:;|[{_m}]+)(?:[ \u00a0]\.(?!\w))*)"
        rf"(?P<close>(?:{_attached}|[{close}{_m}]|{symmetric}{spaced})*)"
        rf"(?P<gap>(?:[\s{ZERO_WIDTH}{EMOJI}]|{_EMOTICON})*)"
    )


TAILS = {(p, r): _tail(paired=p, reversed_order=r) for p in (False, True) for r in (False, True)}
# What may stand between the gap and the first word of the next sentence.
_lead = rf"\s\"”'*_~¿¡{re.escape(OPENERS + BULLETS)}{ZERO_WIDTH}{EMOJI}"
LEAD = re.compile(rf"(?:[{_lead}]|<[A-Za-z][^<>\n]{{0,200}}>)*")
# A word for the tables: anything but white space and punctuation (Python's \w lacks vowel signs).
WORD = re.compile(r"[^\s!-&(-/:-@\[-`{-~¡-©«¬®°»¿‐-‘“-⁞、-〟！-／：-＠।॥؟؛،۔…]+")

# Where the scanner stops; everything else is passed over at the speed of `re`.
_stops = rf"{_m}{NEWLINES}`<;\"“”„«»*_~{re.escape(BRACKETS_OPEN + BRACKETS_CLOSE + HARD_BULLETS)}"
STOPS = re.compile(f"[{_stops}]")
STOPS_AND_CLAUSES = re.compile(rf"[{_stops}{re.escape(CLAUSE)}–—]")
SURROGATE = re.compile("[\ud800-\udfff]")
ALNUM = re.compile(r"[^\W_]")


def case_of(char: str) -> str:
    """`upper`, `lower`, `digit`, `caseless` (a letter without case) or `other`."""
    if char.isdigit():
        return "digit"
    if char.islower():
        return "lower"
    if char.isupper() or char.istitle():
        return "upper"
    return "caseless" if char.isalpha() else "other"
