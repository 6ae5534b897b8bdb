"""Segments of a text on standard input, printed as they come.

    python -m services.segmenter.stdin --lang en < text

Reads whatever is there, cut anywhere, and prints one segment a line (`--json`: one event a line,
tentative segments and revokes too).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import BinaryIO, Final, TextIO

from firstword.cli import output
from firstword.cli.console import Console
from firstword.cli.loop import INTERRUPTED
from firstword.terminal import visible

from .core import Event, Segment, Segmenter, SegmenterOptions
from .settings import SegmenterSettings

READ_SIZE: Final = 65_536


def run(options: SegmenterOptions, source: BinaryIO, out: TextIO, *, as_json: bool) -> None:
    """Segment UTF-8 from `source` until its end; every event is written and flushed at once.

    Bytes that do not decode alone are left to the segmenter, which joins them with the next read.
    """
    segmenter = Segmenter(options)
    read = getattr(source, "read1", source.read)  # what is there, not all that will come
    while data := read(READ_SIZE):
        text = data.decode("utf-8", "surrogateescape")
        _write(segmenter.push(text, time.monotonic()), out, as_json)
    _write(segmenter.flush(time.monotonic()), out, as_json)


def _write(events: list[Event], out: TextIO, as_json: bool) -> None:
    for event in events:
        if as_json:
            line = {"type": type(event).__name__.lower(), **asdict(event)}
            text = json.dumps(line, ensure_ascii=False)
        elif isinstance(event, Segment):
            text = event.text
        else:
            continue
        out.write((visible(text) if out.isatty() else text) + "\n")
        out.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: options from `arguments`, text from standard input."""
    parser = argparse.ArgumentParser(
        prog="segment", description="Print the segments of a text as soon as they are certain."
    )
    service = SegmenterSettings()  # what it does unless told otherwise
    parser.add_argument(
        "--lang", default=service.lang, help="ISO 639-1 code (default: by the text)"
    )
    parser.add_argument("--mode", choices=("safe", "eager"), default=service.mode)
    parser.add_argument(
        "--min-chars", type=int, default=service.min_chars, help="merge shorter segments forward"
    )
    parser.add_argument(
        "--max-chars", type=int, default=service.max_chars, help="cut longer segments (0: never)"
    )
    parser.add_argument(
        "--first-clause",
        type=int,
        default=service.first_clause,
        help="the first segment may be a clause of N words",
    )
    parser.add_argument("--skip-code", choices=("read", "announce", "skip"), default="read")
    parser.add_argument("--json", action="store_true", help="one event a line, hints too")
    given = parser.parse_args(arguments)
    options = SegmenterOptions(
        lang=given.lang,
        mode=given.mode,
        min_chars=given.min_chars,
        max_chars=given.max_chars,
        first_clause=given.first_clause,
        skip_code=given.skip_code,
    )
    try:
        run(options, sys.stdin.buffer, sys.stdout, as_json=given.json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return output.failed(error, Console().note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
