"""The command that segments standard input."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from services.segmenter import stdin
from services.segmenter.core import SegmenterOptions


class Trickle(io.BytesIO):
    """Three bytes a read, so that characters are cut."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read(3)


def test_segments_are_printed_one_a_line() -> None:
    out = io.StringIO()
    source = Trickle("Grüß dich. Es geht gut".encode())
    stdin.run(SegmenterOptions(lang="de"), source, out, as_json=False)
    assert out.getvalue() == "Grüß dich.\nEs geht gut\n"


def test_json_tells_every_event() -> None:
    out = io.StringIO()
    stdin.run(SegmenterOptions(lang="en"), Trickle(b"Go to a.b now"), out, as_json=True)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[-1] == {
        "type": "segment",
        "text": "Go to a.b now",
        "spoken": "Go to a.b now",
        "start": 0,
        "end": 13,
    }


def test_the_command_takes_its_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Hi there. Yes, all is well")))
    assert stdin.main(["--lang", "en", "--mode", "eager", "--max-chars", "20"]) == 0
    assert capsys.readouterr().out == "Hi there.\nYes, all is well\n"


class Terminal(io.StringIO):
    """A stream with a person behind it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("as_json", [False, True])
def test_a_text_does_not_steer_the_terminal(as_json: bool) -> None:
    out = Terminal()
    source = io.BytesIO("Red \x1b[31m\x9b31m now".encode())
    stdin.run(SegmenterOptions(), source, out, as_json=as_json)
    assert not {"\x1b", "\x9b"} & set(out.getvalue())
    assert "\\u009b31m" in out.getvalue()


def test_the_defaults_are_those_of_the_service(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long = b"and so on " * 100
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(long)))
    assert stdin.main([]) == 0
    lengths = [len(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lengths) > 1
    assert max(lengths) <= 400


@pytest.mark.parametrize("command", [["services.segmenter.stdin"], ["firstword.cli", "segment"]])
def test_a_full_disk_is_one_line(command: list[str]) -> None:
    with open(os.open("/dev/full", os.O_WRONLY), "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", *command], input=b"Hi. Ho.", stdout=full, stderr=-1, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr == b"firstword: input or output: No space left on device\n"


def test_an_interrupt_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stdin, "run", interrupted)
    assert stdin.main([]) == 130
    assert capsys.readouterr() == ("", "")
