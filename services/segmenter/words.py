"""What the word behind a mark says: does it start a sentence, or go on with one?

Each answers `END`, `NOT` or, while the word is not complete, `WAIT`.
"""

from __future__ import annotations

import re
from typing import Final

from .characters import WORD, case_of
from .tables import ENDS, Table

END: Final = "end"
NOT: Final = "not"
WAIT: Final = "wait"

MAX_WORD: Final = 24  # no starter is longer; a longer run is no starter
MAX_TAG: Final = 32  # nor is what says who spoke
MAX_GLUED_TAG: Final = 8
MAX_ITEM: Final = 4  # letters in a marker such as "(viii)"

_EXTENSIONS = frozenset(
    (
        "com net org edu gov io ai app dev co uk js ts py md json "
        "html css net ru de fr es it pt br jp cn"
    ).split()
)
_HUMP = re.compile(r"[A-Z][a-z]+[A-Z]")  # the name of a class in code
_REFERENCE = re.compile(r"[IVXLC]+|[A-Z]")
_TAG_END = re.compile(r"[.।,!?:。，！？：\n]")
_DENIED = re.compile(r"नहीं|(?<!\S)[안못]\s|않")  # "nobody answered" is no tag
_IN_ADDRESS = frozenset("@/\\_=(:#&")
_LINKS = ("http://", "https://", "www.")
_ASIDE = re.compile(r"[^\[\]*\n]{1,40}[\]*]{1,3}\s{1,4}")
_ASIDE_BEGUN = re.compile(r"[^\[\]*\n]{1,40}(?:[\]*]{1,3}\s{0,4})?$")
_CLITIC = re.compile(r"[^\W\d_]{1,2}\s{1,4}")
_CLITIC_BEGUN = re.compile(r"[^\W\d_]{1,2}\s{0,4}$")
# What may open a sentence in small letters, by the character before it: `[sighs] Well`,
# `*waves* Hello`, Dutch `'s Avonds`.
_SMALL_OPENINGS = {
    **dict.fromkeys("[*", (_ASIDE, _ASIDE_BEGUN)),
    **dict.fromkeys("'’", (_CLITIC, _CLITIC_BEGUN)),
}


def speech_tag(text: str, final: bool, table: Table) -> str:
    """`"Why?" I asked.` is one sentence, although a capital follows."""
    if text[0] != "I" or text[1:2].isalnum():
        return END
    verb = next_word(text[2:], final)
    if len(text) < 3 or verb is None:
        if final:
            return END
        return WAIT if may_be(text[2:], table.speech_verbs) else END
    return NOT if verb in table.speech_verbs else END


def caseless_tag(text: str, final: bool, table: Table, limit: int = MAX_TAG) -> str:
    """`speech_tag` where no letter has a case: "توقف!" صرخ الرجل, "रुको!" उसने कहा।"""
    if table.tag_openers:
        word = next_word(text, final)
        if word is None:
            return WAIT if may_be(text, table.tag_openers) else END
        return NOT if word in table.tag_openers else END
    if not table.tag_closers:
        return END
    found = _TAG_END.search(text, 0, limit)
    if found is None and not final and len(text) < limit:
        return WAIT
    clause = text[: found.start()] if found is not None else text
    new = (found is not None and found[0] in ":：") or _DENIED.search(clause)
    return NOT if clause.endswith(table.tag_closers) and not new else END


def quote_particle(text: str, final: bool, table: Table) -> str:
    """「…。」と言った goes on; 「…。」とても… does not: the particle's next character tells."""
    for size in (3, 2, 1):
        exceptions = table.quote_particles.get(text[:size])
        if exceptions is None or len(text) < size:
            continue
        if len(text) == size and exceptions and not final:
            return WAIT
        return END if text[size : size + 1] and text[size] in exceptions else NOT
    if not final and any(k.startswith(text) for k in table.quote_particles):
        return WAIT
    return END


def glued_word(text: str, final: bool) -> str:
    """`over.Then` and `over.I` are two sentences; `ASP.NET`, `Ada.Lee@b.org`, `np.NaN` are not."""
    word = next_word(text, final)
    if word is None:
        return WAIT
    following = text[len(word) : len(word) + 1] if len(word) < MAX_WORD else ""
    if following in _IN_ADDRESS or word.lower() in _EXTENSIONS:
        return NOT
    inner = word[1:2].isupper() or _HUMP.match(word) is not None
    return NOT if inner else END


def lower_start(text: str, lead: str, final: bool) -> str:
    """A small letter goes on, unless it begins an address, a name (`iPhone`) or an item (`(b)`).

    Nor does it if all that is in small letters is an aside or a clitic (`_SMALL_OPENINGS`).
    """
    opening = _SMALL_OPENINGS.get(lead[-1:])
    if opening is not None:
        whole, begun = opening
        found = whole.match(text)
        if found is not None and case_of(text[found.end() : found.end() + 1]) == "upper":
            return END
        if not final and begun.match(text):
            return WAIT
    for link in _LINKS:
        if text.startswith(link):
            return END
        if link.startswith(text) and not final:
            return WAIT
    word = next_word(text, final)
    if word is None:
        return WAIT
    if lead.endswith("(") and len(word) <= MAX_ITEM and text[len(word) : len(word) + 1] == ")":
        return END
    return END if any(c.isupper() for c in word) else NOT


def reference(text: str, final: bool, flags: int, table: Table) -> str:
    """`NOT` if what follows "Fig." or "No." is a letter or a Roman numeral, else `END`."""
    found = _REFERENCE.match(text)
    if found is None:
        return END
    if found.end() == len(text) and not final:
        return WAIT
    if text[found.end() : found.end() + 1].isalpha():
        return END
    return END if flags & ENDS and found[0].lower() in table.starters else NOT


def starter(text: str, final: bool, starters: frozenset[str]) -> str:
    """`END` if the next word starts sentences; waits while it still may become one that does."""
    word = next_word(text, final)
    if word is None:
        return WAIT if may_be(text, starters) else NOT
    if len(word) == 1 and text[1:2] == ".":
        return NOT  # an initial
    low = word.lower().replace("’", "'")
    return END if low in starters or low.split("'", 1)[0] in starters else NOT


def next_word(text: str, final: bool) -> str | None:
    """The first word of `text`; `None` while it is not known to be complete."""
    found = WORD.match(text, 0, MAX_WORD)
    if found is None:
        return ""
    if found.end() == len(text) and not final and len(text) < MAX_WORD:
        return None
    return found[0]


def may_be(text: str, words: frozenset[str]) -> bool:
    low = text.lower().replace("’", "'")
    low = low.split("'", 1)[0]
    return any(word.startswith(low) for word in words)
