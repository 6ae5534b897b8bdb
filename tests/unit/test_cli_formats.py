"""What commands print: replies of the server, events, figures, progress."""

from __future__ import annotations

import base64
import io
import json
import os
from typing import Any

import pytest
from redis.exceptions import ResponseError

from firstword import messages as m
from firstword.cli import report
from firstword.cli.console import Console
from firstword.cli.follow import as_json, as_text
from firstword.cli.performance import Performance, Script
from firstword.cli.redis_command import plain, pretty
from firstword.listener import Event
from firstword.waterfall import Row, Waterfall


@pytest.mark.parametrize(
    ("reply", "for_people", "for_programs"),
    [
        ("OK", "OK", "OK"),
        (3, "(integer) 3", "3"),
        (None, "(nil)", ""),
        (b"1-0", '"1-0"', "1-0"),
        ("é\n\"'\\".encode(), '"é\\n\\"\'\\\\"', "é\n\"'\\"),
        (b'\xff"\x00', '"\\xff\\"\\x00"', '\ufffd"\x00'),
        ([], "(empty array)", ""),
        (ResponseError("no"), "(error) no", "(error) no"),
    ],
)
def test_replies(reply: Any, for_people: str, for_programs: str) -> None:
    assert pretty(reply) == for_people
    assert plain(reply) == for_programs


def test_lists_are_numbered_for_people_and_flat_for_programs() -> None:
    entries = [[b"1-0", [b"session", b"demo"]], [b"2-0", []]]
    assert plain(entries) == "1-0\nsession\ndemo\n2-0\n"
    assert pretty(entries).splitlines() == [
        '1) 1) "1-0"',
        '   2) 1) "session"',
        '      2) "demo"',
        '2) 1) "2-0"',
        "   2) (empty array)",
    ]
    assert pretty(list(range(10))).splitlines()[8:] == [" 9) (integer) 8", "10) (integer) 9"]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            m.TurnStarted(turn="t", voice="af_sky", sample_rate=24000),
            "turn t: af_sky, 24000 Hz",
        ),
        (m.SegmentStarted(turn="t", n=1, text=" Hi.", start=0, end=4), "segment 1: Hi."),
        (m.AudioChunk(turn="t", n=1, offset=0, data=b"ab"), None),
        (m.SegmentRestarted(turn="t", n=1), "segment 1 comes again from its start"),
        (m.SegmentDone(turn="t", n=1, samples=9), "segment 1 done: 9 samples"),
        (
            m.TurnDone(turn="t", segments=1, samples=9, ttfa_ms=12.3, reason="complete"),
            "turn t done (complete): 1 segment, 9 samples, first audio after 12 ms",
        ),
        (
            m.TurnDone(turn="t", segments=0, samples=0, ttfa_ms=None, reason="abandoned"),
            "turn t done (abandoned): 0 segments, 0 samples",
        ),
        (m.TurnCancelled(turn="t", sent={}, already_done=False), "turn t cancelled"),
        (
            m.ErrorEvent(code="gap", message="3 is missing", retryable=True),
            "error: 3 is missing (gap)",
        ),
        (
            m.ErrorEvent(code="timeout", message="too slow", retryable=True, n=4),
            "error in segment 4: too slow (timeout)",
        ),
        (
            m.Gap(first="7-0"),
            "older events are not kept any more: the first there is has id 7-0",
        ),
        (m.Closed(reason="closed"), "session closed: closed"),
    ],
)
def test_events_in_words(message: m.Audio, line: str | None) -> None:
    text = as_text(Event("1700000000000-0", message))
    assert text == (None if line is None else f"1700000000000-0   {line}")


def test_events_for_programs() -> None:
    event = Event("1-0", m.AudioChunk(turn="t", n=1, offset=2, data=b"\xff\x00"))
    fields = {"id": "1-0", "type": "audio", "turn": "t", "n": 1, "offset": 2, "bytes": 2}
    assert json.loads(as_json(event, with_audio=False)) == fields
    whole = json.loads(as_json(event, with_audio=True))
    assert base64.b64decode(whole.pop("data")) == b"\xff\x00"
    assert whole == fields
    closed = Event("2-0", m.Closed(reason="closed"))
    assert json.loads(as_json(closed, with_audio=True)) == {
        "id": "2-0",
        "type": "closed",
        "reason": "closed",
    }


# -- reports --------------------------------------------------------------------------------------


def performance(mode: str, ttfa_ms: float | None, **more: Any) -> Performance:
    """A turn of one segment of 2 s of audio that took 1 s to make; none without `ttfa_ms`."""
    fall = Waterfall(turn="t", tokens=6, text_ms=500.0)
    if ttfa_ms is not None:
        fall.rows = [
            Row(1, "Hi.", 0.0, 500.0, 6, 510.0, ttfa_ms - 900, ttfa_ms, ttfa_ms + 100, 2.0),
        ]
    fields: dict[str, Any] = {"reason": "complete", **more}
    return Performance(Script("Hi.", 12.0, mode), "s-1", 24_000, fall, **fields)


def test_a_report_tells_the_speed() -> None:
    text = report.one(performance("stream", 1_500.0), width=100, ascii_only=True)
    assert text.startswith(
        "stream: each sentence is spoken while the next is being written (6 tokens in 0.5 s)\n"
    )
    assert text.endswith("2.0 s of audio. This machine needed 0.50 s for each second of it.")


def test_a_report_tells_pauses_errors_and_an_early_end() -> None:
    error = m.ErrorEvent(code="unknown_voice", message="no voice xx", retryable=False, n=1)
    bad = performance("stream", 1_500.0, errors=[error], reason="abandoned")
    bad.waterfall.waits_ms = [300.0, 400.0]
    lines = report.one(bad, width=100, ascii_only=True).splitlines()
    assert "2 pauses of 0.7 s in all" in lines[-3]
    assert lines[-2:] == [
        "NOT SPOKEN: segment 1: no voice xx (unknown_voice)",
        "The turn did not end as it should: abandoned.",
    ]
    gone = m.ErrorEvent(code="x", message="gone", retryable=False)
    whole = performance("stream", None, errors=[gone])
    assert "\nERROR: gone (x)" in report.one(whole, width=100, ascii_only=True)


HERE = report.Setting("redis://127.0.0.1:6379")


def test_two_modes_are_compared() -> None:
    both = [performance("batch", 3_000.0), performance("stream", 1_200.0, voice="af_sky")]
    assert report.comparison(both, HERE).splitlines() == [
        "First audio, counted from the first token:",
        "  redis://127.0.0.1:6379, voice af_sky, 3 characters, 6 tokens at the same times in each "
        "mode",
        "  trials that spoke: 1 batch, 1 stream",
        "",
        "  ms                           batch  stream",
        "  ---------------------------  -----  ------",
        "  first segment is written       500     500",
        "  rest of the text is written      0       0",
        "  segmentation                    10      10",
        "  waiting and publishing        1590       0",
        "  synthesis                      900     690",
        "  first audio                   3000    1200",
        "  last audio                    3100    1300",
        "",
        "  Streaming spoke 2.5 times as early.",
        "  Who gets all audio at once, when batch has made the last, waits 2.6 times as long.",
    ]
    data = json.loads(report.as_json(both, HERE, "say.wav"))
    assert (data["ratio"], data["out"], data["trace_ms"]) == (2.5, "say.wav", None)
    assert data["file_ratio"] == 2.583
    assert (data["endpoint"], data["goal"]) == ("redis://127.0.0.1:6379", None)
    assert data["first_audio"]["stream"]["n"] == 1
    assert data["first_audio"]["batch"]["ttfa"] == {"mean": 3000.0, "p50": 3000.0, "p95": 3000.0}
    assert [run["mode"] for run in data["runs"]] == ["batch", "stream"]
    assert [run["voice"] for run in data["runs"]] == ["", "af_sky"]
    assert data["runs"][1]["ttfa_ms"] == 1_200.0
    assert data["runs"][1]["segments"][0]["text"] == "Hi."


@pytest.mark.parametrize(("goal", "verdict"), [(2.4, "reached"), (5.0, "missed")])
def test_a_goal_is_judged(goal: float, verdict: str) -> None:
    both = [performance("batch", 3_000.0), performance("stream", 1_200.0)]
    text = report.comparison(both, report.Setting("redis://x", goal))
    assert text.endswith(f"\n  The goal of {goal:g} times is {verdict}.")


def test_what_was_recorded_is_in_the_document() -> None:
    spoken = performance("stream", 1_200.0)
    spoken.script = Script("Hi.", 12.0, times_s=(0.0, 0.02))
    assert json.loads(report.as_json([spoken], HERE, None))["trace_ms"] == [0.0, 20.0]


def test_a_text_of_marks_alone_is_explained() -> None:
    silent = performance("stream", None)
    assert "no letter or digit" not in report.one(silent, width=100, ascii_only=True)
    silent.script = Script("... 🙂", 12.0)
    assert "There is no letter or digit in the text" in report.one(
        silent, width=100, ascii_only=True
    )


@pytest.mark.parametrize("stream_ms", [2_900.0, 3_500.0])
def test_no_gain_is_not_called_one(stream_ms: float) -> None:
    both = [performance("batch", 3_000.0), performance("stream", stream_ms)]
    assert (
        "  Streaming spoke no earlier: this machine was busy, or the text is too short."
        in report.comparison(both, HERE).splitlines()
    )


def test_nothing_can_be_compared_with_silence() -> None:
    both = [performance("batch", None), performance("stream", 1_200.0)]
    assert "  batch: nothing was spoken" in report.comparison(both, HERE)
    assert "times as early" not in report.comparison(both, HERE)
    assert json.loads(report.as_json(both, HERE, None))["ratio"] is None


# -- the console ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream with a person behind it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Teletype(io.StringIO):
    """A stream that shows ASCII only."""

    encoding = "ascii"


def test_a_status_is_replaced_by_the_next_line() -> None:
    out, err = Terminal(), Terminal()
    console = Console(out, err)
    console.status("longer status")
    console.status("short")
    console.say("result")
    assert err.getvalue() == "\rlonger status\rshort        \r" + " " * 5 + "\r"
    assert out.getvalue() == "result\n"
    assert console.interactive


def test_nobody_sees_a_status_in_a_file() -> None:
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err)
    console.status("status")
    console.bar("model", 1, 2)
    console.note("note")
    assert (out.getvalue(), err.getvalue()) == ("", "note\n")
    assert not console.interactive


def test_a_bar_shows_how_far_it_is() -> None:
    err = Terminal()
    console = Console(io.StringIO(), err)
    console.bar("voices", 500_000, 1_000_000)
    assert err.getvalue() == "\r[" + "#" * 15 + "." * 15 + "] 0.5 of 1.0 MB  voices"
    console.bar("waiting", 0, 0)
    assert err.getvalue().endswith("\rwaiting" + " " * 47)


def test_a_text_does_not_steer_the_terminal() -> None:
    out, err, file = Terminal(), Terminal(), io.StringIO()
    console = Console(out, err)
    console.say("\x1b[2J")
    console.status("\x9b2J")
    Console(file, err).say("\x1b[2J")
    assert out.getvalue() == "\\x1b[2J\n"
    assert err.getvalue().startswith("\r\\u009b2J")
    assert file.getvalue() == "\x1b[2J\n", "a file gets it as it is"


def test_what_a_terminal_cannot_show_does_not_end_the_command() -> None:
    out = Teletype()
    console = Console(out, Teletype())
    console.say("naïve 漢字")
    assert out.getvalue() == "na?ve ??\n"
    assert console.ascii_only
    assert not Console(Terminal(), Terminal()).ascii_only


def test_nobody_has_to_read_the_notes() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:
        console = Console(gone, gone)
        console.note("note")
        console.note("again")
        console.greet("hello")


def test_results_that_nobody_reads_end_the_command() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:
        console = Console(gone, io.StringIO())
        with pytest.raises(BrokenPipeError):
            console.say("result")
        console.greet("so that what is held for it is dropped")
