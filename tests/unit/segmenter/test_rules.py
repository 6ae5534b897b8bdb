"""The decision itself: what stands left and right of a mark, and what follows from it."""

from __future__ import annotations

import pytest

from services.segmenter import cuts, left, lists
from services.segmenter.right import Right, look_ahead
from services.segmenter.rules import decide
from services.segmenter.tables import load
from services.segmenter.words import END, NOT, WAIT


def ahead(tail: str, *, paired: bool = False) -> Right:
    return look_ahead(tail, 256, paired=paired, reversed_order=False)


def verdict(before: str, tail: str, *, lang: str = "en", final: bool = False) -> str:
    table = load(lang)
    return decide(left.classify(before, True, tail[0], table), tail[0], ahead(tail), final, table)


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ("", left.NOTHING),
        ("( ", left.NOTHING),
        ("12", left.MARKER),
        ("b", left.MARKER),
        ("iv", left.MARKER),
        ("It is 12", left.DIGITS),
        ("It is $3,000", left.DIGITS),
        ("King Louis XIV", left.ROMAN),
        ("George W", left.INITIAL),
        ("in the W.H.O", left.ACRONYM),
        ("at noon, e.g", left.LISTED),
        ("Oak Blvd", left.LISTED),
        ("the Mstr", left.SHORT),
        ("see example.com", left.ADDRESS),
        ("use `ls`", left.ADDRESS),
        ("it is done", left.PLAIN),
        ("Step 2", left.STEP),
    ],
)
def test_what_a_dot_hangs_on(before: str, kind: str) -> None:
    assert left.classify(before, True, ".", load("en")).kind == kind


def test_abbreviations_of_two_parts_are_known_with_a_space() -> None:
    german = load("de")
    assert left.classify("Obst, z. B", True, ".", german).kind == left.LISTED
    assert left.classify("Er aß B", True, ".", german).kind == left.INITIAL


@pytest.mark.parametrize(
    ("before", "tail", "wanted"),
    [
        ("it is done", ".", WAIT),
        ("it is done", ". ", WAIT),
        ("it is done", ". N", END),
        ("it is done", '. "', END),
        ("it is done", ".\n", END),
        ("it is done", ". and", WAIT),  # "andOS" would be a name
        ("it is done", ". and ", NOT),
        ("it is done", ". h", WAIT),  # "http" may come
        ("it is done", ". https://", END),
        ("example", ".c", NOT),
        ("it is 3", ".1", NOT),
        ("it is over", ".Sent", WAIT),
        ("it is over", ".Sentence two", END),
        ("ask Dr", ". W", NOT),
        ("in the U.S", ". S", WAIT),
        ("in the U.S", ". Th", WAIT),
        ("in the U.S", ". Senator", NOT),
        ("in the U.S", ". She ", END),
        ("it is done", ".</sp", WAIT),
        ("it is done", ".</speak> N", END),
        ("it is done", ", so", NOT),
        ("Is it", "? y", WAIT),
        ("Is it", "? yes ", NOT),
        ("Is it", "? 5", END),
        ("Is it", "? % 5", END),
        ("I", "... I", WAIT),
        ("Hmm", "... W", END),
        ("it is done", ". [sighs", WAIT),
        ("it is done", ". [sighs] ", WAIT),
        ("it is done", ". [sighs] W", END),
        ("it is done", ". [sighs] w", NOT),
        ("it is done", ". *waves* Hello", END),
        ("it is done", ". [" + "x" * 41 + " ", NOT),
        ("het regent", ". 's", WAIT),
        ("het regent", ". 's A", END),
        ("it is done", ". 'so ", WAIT),
        ("it is done", ". 'soft ", NOT),
        ("he said 「はい", "。」 and", WAIT),
        ("he said 「はい", "。」 and ", NOT),
        ("he said 「はい", "。」 And", END),
        ("the film 《はい", "！》は", NOT),
        ("at 128 kbps", ". Music", END),
        ("room no", ". 5", NOT),
        ("I said no", ". 5", END),
        ("no", ". 5", END),
        ("well, no", ". 5", END),
        ("so: no", ". 5", END),
    ],
)
def test_a_decision_is_taken_as_soon_as_it_is_certain(before: str, tail: str, wanted: str) -> None:
    if tail[0] == ",":
        tail = "!" + tail
    assert verdict(before, tail) == wanted


def test_a_full_stop_in_quotes_is_no_speech_tag() -> None:
    assert verdict('"Why', '?" I asked') == WAIT
    assert verdict('"Why', '?" I asked ') == NOT
    assert verdict('It is "odd', '." I called ') == END


def test_at_the_end_of_the_text_nothing_is_waited_for() -> None:
    assert verdict("it is done", ". [sighs] ", final=True) == NOT
    assert verdict("it is done", ". ", final=True) == END
    assert verdict("ask Dr", ".", final=True) == NOT
    assert verdict("in the U.S", ". The", final=True) == END


def test_a_tail_that_is_too_long_is_decided_as_it_is() -> None:
    tail = "." + " " * 300
    assert verdict("it is done", tail) == END
    assert verdict("ask Dr", tail) == NOT


@pytest.mark.parametrize(
    ("tail", "close", "end", "text"),
    [
        (". Next", 1, 1, "Next"),
        ('.") Next', 3, 3, "Next"),
        ("!! 🎉 Next", 2, 4, "Next"),
        (".[1][2] Next", 7, 7, "Next"),
        (".](http://a.b) Next", 14, 14, "Next"),
        (". . . Next", 5, 5, "Next"),
        (". «Next", 1, 1, "Next"),
        (". <b>Next", 1, 1, "Next"),
    ],
)
def test_what_belongs_to_the_sentence_and_what_does_not(
    tail: str, close: int, end: int, text: str
) -> None:
    right = ahead(tail)
    assert (right.close, right.end, right.text) == (close, end, text)


def test_an_open_quote_closes_behind_a_space() -> None:
    assert ahead('. " Next', paired=True).close == 3
    assert ahead('. "Next', paired=True).lead == '"'


def test_a_tail_must_begin_with_a_mark() -> None:
    with pytest.raises(ValueError, match="begins with a mark"):
        ahead("word")


def test_a_clause_must_begin_with_its_mark() -> None:
    with pytest.raises(ValueError, match="clause mark"):
        cuts.clause_end("a", "word", final=False)


def test_markers_follow_each_other_in_their_own_style() -> None:
    assert lists.follows("3", lists.Item("1", 2)) == lists.Item("1", 3)
    assert lists.follows("b", lists.Item("a", 1)) == lists.Item("a", 2)
    assert lists.follows("ii", lists.Item("i", 1)) == lists.Item("i", 2)
    assert lists.follows("b", lists.Item("1", 1)) is None
    assert lists.follows("b", None) is None
