"""Where the time of a turn went: figures from events, and the picture of them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword.tokens import tokens
from firstword.waterfall import Heard, Row, Token, Waterfall, build, render

RATE = 24_000
TEXT = "You hear this while it is written. The next sentence is on its way. Done"
SEGMENTS = [(0, 34), (35, 67), (68, 72)]
T0 = 1_700_000_000_000


def spoken(*, turn: str = "t", text_every_ms: int = 80) -> tuple[list[Token], list[Heard]]:
    """Three segments of 2.24 s of audio that take 2.4 s each to make, one after the other."""
    written = [Token(piece, T0 + i * text_every_ms) for i, piece in enumerate(tokens(TEXT))]
    events = [Heard(T0 + 3_000, m.TurnStarted(turn=turn, voice="af_heart", sample_rate=RATE))]
    free_at = T0
    for n, (start, end) in enumerate(SEGMENTS):
        committed = T0 + text_every_ms * (8 + 8 * n)
        begun = max(free_at, committed)
        first_audio, free_at = begun + 2_400, begun + 2_440
        started = m.SegmentStarted(
            turn=turn,
            n=n,
            text=TEXT[start:end],
            start=start,
            end=end,
            committed_at=f"{committed}-3",
            ttfb_ms=2_400.0,
        )
        events.append(Heard(first_audio, started))
        for k in range(7):
            chunk = m.AudioChunk(turn=turn, n=n, offset=k * 7_680, data=bytes(2 * 7_680))
            events.append(Heard(first_audio + 5 * k, chunk))
        events.append(Heard(free_at, m.SegmentDone(turn=turn, n=n, samples=7 * 7_680)))
    return written, events


PICTURE = """\
     0 s           2 s            4 s            6 s
  0  ░░░░▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█                                      You hear this while it is written.
  1      ░░░░░·············▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█                    The next sentence is on its way.
  2           ░░░░░··························▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█  Done
     ░ text being written   · waiting for its turn   ▒ synthesis   █ audio arriving

    first token  mark (token)  committed (token)  synthesis  first audio (token)     done    audio
  0      0.00 s    0.56 s (8)         0.64 s (9)     0.64 s          3.04 s (17)   3.08 s   2.24 s
  1      0.64 s   1.20 s (16)        1.28 s (17)     3.08 s          5.48 s (17)   5.52 s   2.24 s
  2      1.28 s   1.28 s (17)        1.92 s (17)     5.52 s          7.92 s (17)   7.96 s   2.24 s
"""

ASCII_PICTURE = """\
     0 s      2 s       4 s       6 s
  0  ...===========##                         You hear this while it is written.
  1     ...---------===========##             The next sentence is on its way.
  2        ...------------------===========#  Done
     . text being written   - waiting for its turn   = synthesis   # audio arriving
"""


def test_the_figures_of_a_turn() -> None:
    waterfall = build("t", *spoken(), RATE)
    assert waterfall.ttfa_ms == 3_040
    assert waterfall.tokens == 17
    assert waterfall.text_ms == 1_280
    assert waterfall.done_ms == 7_960
    assert round(waterfall.audio_s, 6) == 6.72
    assert waterfall.real_time_factor == 3 * 2.44 / waterfall.audio_s
    assert waterfall.waits_ms == [200.0, 200.0]  # 2.24 s of audio every 2.44 s
    second = waterfall.rows[1]
    assert (second.first_token_ms, second.mark_ms, second.mark_token) == (640, 1_200, 16)
    assert (second.committed_ms, second.synthesis_ms) == (1_280, 3_080)
    assert (second.first_audio_ms, second.done_ms) == (5_480, 5_520)
    first = waterfall.rows[0]
    assert (first.mark_token, first.committed_token, first.first_audio_token) == (8, 9, 17)


def test_the_picture() -> None:
    assert render(build("t", *spoken(), RATE)) == PICTURE


def test_the_picture_without_unicode() -> None:
    assert render(build("t", *spoken(), RATE), width=80, ascii_only=True).startswith(ASCII_PICTURE)


def test_plain_data_is_json_with_rounded_times() -> None:
    data = json.loads(json.dumps(build("t", *spoken(), RATE).as_data()))
    assert data["ttfa_ms"] == 3_040
    assert data["real_time_factor"] == 1.089
    assert data["waits_ms"] == [200.0, 200.0]
    assert data["segments"][2] == {
        "n": 2,
        "text": "Done",
        "first_token_ms": 1_280,
        "mark_ms": 1_280,
        "mark_token": 17,
        "committed_ms": 1_920,
        "synthesis_ms": 5_520.0,
        "first_audio_ms": 7_920,
        "committed_token": 17,
        "first_audio_token": 17,
        "done_ms": 7_960,
        "audio_s": 2.24,
    }


def test_other_turns_do_not_count() -> None:
    written, events = spoken()
    _, others = spoken(turn="other")
    both = sorted([*events, *others], key=lambda heard: heard.at_ms)
    assert build("t", written, both, RATE) == build("t", written, events, RATE)


def test_a_segment_that_came_again_counts_its_audio_once() -> None:
    written, events = spoken()
    again = [heard for heard in events if getattr(heard.message, "n", None) == 0]
    restart = Heard(again[-1].at_ms, m.SegmentRestarted(turn="t", n=0))
    done = events.index(again[-1])
    events[done:done] = [restart, *again[:-1]]
    assert round(build("t", written, events, RATE).audio_s, 6) == 6.72


def test_nothing_spoken() -> None:
    done = Heard(T0, m.SegmentDone(turn="t", n=0, samples=0))
    silent = build("t", [Token("…", T0)], [done], RATE)
    assert silent.ttfa_ms is None
    assert silent.real_time_factor is None
    assert silent.waits_ms == []
    assert silent.done_ms == 0
    assert render(silent) == "  nothing was spoken\n"


def test_what_cannot_be_known_is_left_open() -> None:
    started = m.SegmentStarted(turn="t", n=4, text="Longer than what came", start=90, end=99)
    waterfall = build("t", [Token("Hi", T0)], [Heard(T0 + 500, started)], RATE)
    row = waterfall.rows[0]
    assert (row.first_token_ms, row.mark_ms, row.mark_token) == (None, None, None)
    assert (row.committed_ms, row.done_ms) == (None, None)
    assert waterfall.real_time_factor is None
    lines = render(waterfall).splitlines()
    assert lines[1].startswith("  4 ")
    assert lines[-1].split() == "4 - - (-) - (-) 0.50 s 0.50 s (1) - 0.00 s".split()


times = st.floats(0, 1e6)
rows = st.builds(
    Row,
    n=st.integers(0, 999),
    text=st.text(),
    first_token_ms=st.none() | times,
    mark_ms=st.none() | times,
    mark_token=st.none() | st.integers(1, 9999),
    committed_ms=st.none() | times,
    synthesis_ms=st.floats(-1e6, 1e6),
    first_audio_ms=times,
    done_ms=st.none() | times,
    audio_s=st.floats(0, 999),
)


@given(st.lists(rows, max_size=5), st.integers(70, 200), st.booleans())
def test_any_turn_can_be_drawn_within_the_width(
    found: list[Row], width: int, ascii_only: bool
) -> None:
    waterfall = Waterfall(turn="t", tokens=1, text_ms=0.0, rows=found)
    picture = render(waterfall, width=width, ascii_only=ascii_only)
    bars = picture.splitlines()[: len(found) + 1] if found else []
    assert all(len(line) <= width for line in bars)
    if ascii_only and all(row.text.isascii() for row in found):
        assert picture.isascii()


def test_a_text_does_not_steer_the_terminal() -> None:
    row = Row(0, "\x1b[2JHi\x9b", 0.0, 1.0, 1, 1.0, 2.0, 3.0, 4.0, 1.0)
    picture = render(Waterfall("t", 1, 1.0, [row]), width=100)
    assert "\\x1b[2JHi\\u009b" in picture
    assert not {"\x1b", "\x9b"} & set(picture)
