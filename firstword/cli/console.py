"""What a command says: results on standard output, progress and notes on standard error.

Whoever reads the results may go away, and that ends a command that has nothing else to do: `say`
raises then. Nobody to read the notes is no reason for anything.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from typing import IO, TextIO

from firstword.cli.output import drop
from firstword.terminal import visible

_BAR_CELLS = 30


class Console:
    """The two streams of a command, and what the terminal behind them can show."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._status = 0  # columns of the line that is being overwritten

    @property
    def interactive(self) -> bool:
        """Whether a person looks at standard output."""
        return self._out.isatty()

    @property
    def ascii_only(self) -> bool:
        """Whether standard output cannot show block characters."""
        try:
            "░▒█·".encode(self._out.encoding or "ascii")
        except UnicodeEncodeError:
            return True
        return False

    @property
    def width(self) -> int:
        """Columns to fill: the terminal's, within reason; 100 where there is none."""
        return min(160, max(80, shutil.get_terminal_size((100, 24)).columns))

    @property
    def binary(self) -> IO[bytes]:
        """Standard output for bytes."""
        return self._out.buffer

    def say(self, text: str) -> None:
        """A result: standard output, whole lines, at once."""
        self._clear_status()
        self._write(self._out, text)

    def greet(self, text: str) -> None:
        """A result that nobody has to read."""
        with _unread(self._out):
            self.say(text)

    def note(self, text: str) -> None:
        """What happens, or what a person should know: standard error."""
        self._clear_status()
        with _unread(self._err):
            self._write(self._err, text)

    def status(self, text: str) -> None:
        """Progress that the next line replaces; nothing where nobody would see it."""
        if self._err.isatty():
            text = visible(text)[: self.width - 1]
            with _unread(self._err):
                self._err.write("\r" + text.ljust(self._status))
                self._err.flush()
            self._status = len(text)

    def bar(self, what: str, done: int, total: int) -> None:
        """Bytes on their way as a status."""
        if total <= 0:
            self.status(what + (f"  {done / 1e6:.1f} MB" if done else ""))
            return
        cells = min(_BAR_CELLS, done * _BAR_CELLS // total)
        bar = "#" * cells + "." * (_BAR_CELLS - cells)
        self.status(f"[{bar}] {done / 1e6:.1f} of {total / 1e6:.1f} MB  {what}")

    def _clear_status(self) -> None:
        if self._status:
            with _unread(self._err):
                self._err.write("\r" + " " * self._status + "\r")
                self._err.flush()
            self._status = 0

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        encoding = stream.encoding or "utf-8"
        if stream.isatty():  # somebody's text must not steer it
            text = visible(text)
        # A terminal that cannot show a character of somebody's text must not end the command.
        stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        stream.flush()


@contextlib.contextmanager
def _unread(stream: TextIO) -> Iterator[None]:
    """Writing to it may fail, and then nothing more is written to it."""
    try:
        yield
    except OSError:
        drop(stream)
