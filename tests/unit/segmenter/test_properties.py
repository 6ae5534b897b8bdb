"""What holds for any text and any way to cut it."""

from __future__ import annotations

import json
import random
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.segmenter.core import Event, Revoke, Segment, Segmenter, SegmenterOptions, Tentative
from services.segmenter.scanner import TAIL_LIMIT

from .streams import events_of, segments_of
from .test_cases import SENTENCES

# Text that looks like a reply, with everything the scanner stops at.
FRAGMENTS = st.sampled_from(
    (
        "Hello there|Dr|U.S|p.m|e.g|z|B|No|5|3|1|a|I|www.x.com|so|Then|the|. |.|! |?|...|…|\n|"
        "\r\n|, |: |; |\"|'|“|”|«|»|(|)|[1]|](u.v)|[|*|**|_|`|```|```\n|<b>|</b>|<spell>|"
        "</spell>|<|1. |2) |- |• |# || |。|！|」|「|と|好|नमस्ते|।|😀|👨\u200d👩|\u0301|\ufe0f|"
        "\u200b| |  |\xa0|—| — |¿|¡|é|ß|3.14|$|~~|~~~|````|[sighs] |*waves* |'s A|》|kbps|no"
    ).split("|")
)
REPLY = st.lists(FRAGMENTS, max_size=40).map("".join)
ANYTHING = st.text(max_size=120)
TEXT = REPLY | ANYTHING | st.sampled_from([text for _, text, _ in SENTENCES])
LANG = st.sampled_from(["en", "de", "fr", "es", "zh", "ja", "ko", "th", "hi", "ar", "tr", "auto"])
OPTIONS = st.fixed_dictionaries(
    {"lang": LANG},
    optional={
        "min_chars": st.integers(0, 30),
        "max_chars": st.integers(4, 60),
        "first_clause": st.integers(0, 4),
        "skip_code": st.sampled_from(["read", "announce", "skip"]),
    },
)


def cut(text: str, seed: int) -> list[str]:
    """`text` in pieces of chance."""
    chance, pieces, at = random.Random(seed), [], 0
    while at < len(text):
        size = chance.choice((0, 1, 1, 2, 3, 5, 8, 40))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def visible(text: str) -> str:
    return "".join(text.split())


@given(text=TEXT, options=OPTIONS, seed=st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_the_segments_do_not_depend_on_how_the_text_is_cut(
    text: str, options: dict[str, Any], seed: int
) -> None:
    whole = segments_of([text], **options)
    assert segments_of(list(text), **options) == whole
    assert segments_of(cut(text, seed), **options) == whole


@given(text=TEXT, lang=LANG, mode=st.sampled_from(["safe", "eager"]), seed=st.integers(0, 10_000))
@settings(max_examples=120, deadline=None)
def test_nothing_is_lost_doubled_or_moved(text: str, lang: str, mode: str, seed: int) -> None:
    at = 0
    for segment in segments_of(cut(text, seed), lang=lang, mode=mode):
        assert text[segment.start : segment.end] == segment.text
        assert any(c.isalnum() for c in segment.spoken)
        between = text[at : segment.start]
        assert not any(c.isalnum() for c in between) or "<" in between
        at = segment.end
    tail = text[at:]
    fenced = "`" in text or "~~~" in text
    assert not any(c.isalnum() for c in tail) or set("<[&") & set(tail) or fenced


@given(text=TEXT, options=OPTIONS, mode=st.sampled_from(["safe", "eager"]), seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_a_restored_segmenter_goes_on_as_if_nothing_had_happened(
    text: str, options: dict[str, Any], mode: Any, seed: int
) -> None:
    made = SegmenterOptions(**{**options, "mode": mode, "max_wait": 1.0})
    steady, moved = Segmenter(made), Segmenter(made)
    for step, piece in enumerate(cut(text, seed)):
        now = step * 0.1
        assert moved.push(piece, now) == steady.push(piece, now)
        state = json.loads(json.dumps(moved.snapshot()))
        moved = Segmenter.restore(made, state)
        assert (moved.timer(), moved.holding) == (steady.timer(), steady.holding)
        if step % 5 == 4:
            assert moved.idle(now + 0.3) == steady.idle(now + 0.3)
    assert moved.flush(100.0) == steady.flush(100.0)


@given(data=st.binary(max_size=80), seed=st.integers(0, 10_000), options=OPTIONS)
@settings(max_examples=100, deadline=None)
def test_bytes_cut_anywhere_are_as_good_as_whole(
    data: bytes, seed: int, options: dict[str, Any]
) -> None:
    whole = segments_of([data.decode("utf-8", "replace")], **options)
    chance, pieces, at = random.Random(seed), [], 0
    while at < len(data):
        size = chance.randint(1, 4)
        pieces.append(data[at : at + size].decode("utf-8", "surrogateescape"))
        at += size
    assert segments_of(pieces, **options) == whole


@given(
    pieces=st.lists(
        st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE010), max_size=6), max_size=8
    )
)
@settings(max_examples=80, deadline=None)
def test_stray_surrogates_never_come_out(pieces: list[str]) -> None:
    for segment in segments_of(["a ", *pieces, " b"]):
        segment.text.encode()
        segment.spoken.encode()


@given(text=TEXT, lang=LANG, seed=st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_what_is_announced_is_kept_or_taken_back(text: str, lang: str, seed: int) -> None:
    announced: Tentative | None = None
    for event in events_of(cut(text, seed), lang=lang):
        match event:
            case Tentative():
                assert announced is None
                announced = event
            case Revoke():
                assert announced is not None
                announced = None
            case Segment():
                assert announced is None or announced.text == event.spoken
                announced = None
    assert announced is None


@given(text=TEXT, options=OPTIONS, seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_the_timers_lose_nothing_either(text: str, options: dict[str, Any], seed: int) -> None:
    segmenter = Segmenter(SegmenterOptions(**{**options, "max_wait": 0.5}))
    chance, now = random.Random(seed), 0.0
    events: list[Event] = []
    for piece in cut(text, seed):
        events += segmenter.push(piece, now)
        at = segmenter.timer()
        if at is not None and chance.random() < 0.3:
            now = max(now, at)
            events += segmenter.idle(now)
    events += segmenter.flush(now)
    assert segmenter.timer() is None
    assert not segmenter.holding
    places = [(e.start, e.end, e.text) for e in events if isinstance(e, Segment)]
    assert all(text[start:end] == said for start, end, said in places)
    assert all(one[1] <= two[0] for one, two in pairwise(places))


@given(text=REPLY, limit=st.integers(4, 40))
@settings(max_examples=80, deadline=None)
def test_no_segment_is_longer_than_the_limit(text: str, limit: int) -> None:
    for segment in segments_of([text], max_chars=limit):
        assert len(segment.text) <= limit


@pytest.mark.parametrize(
    "piece",
    [
        " word",
        ". ",
        "a. b ",
        "1) ",
        "“",
        "`a ",
        "<a ",
        "\n.",
        "* ",
        "Dr. ",
        "😀",
        "[a](b",
        "|",
        "?!",
    ],
)
def test_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    """Four times the text takes four times the steps, and what is undecided stays short."""

    def steps(count: int) -> int:
        segmenter, taken = Segmenter(SegmenterOptions(lang="en")), 0

        def note(*_: object) -> None:
            nonlocal taken
            taken += 1

        sys.setprofile(note)
        try:
            for _ in range(count):
                segmenter.push(piece, 0.0)
        finally:
            sys.setprofile(None)
        assert len(segmenter.snapshot()["scanner"]["tail"]) <= TAIL_LIMIT
        return taken

    assert steps(8_000) < 5 * steps(2_000)
