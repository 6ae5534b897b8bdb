"""What becomes of a command whose input or output fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TextIO


def failed(error: OSError, note: Callable[[str], None]) -> int:
    """Say what the system refused, and of which file, in one line; nothing where the reader of
    standard output has enough. Returns the exit status."""
    if isinstance(error, BrokenPipeError):
        drop(sys.stdout)
        return 1
    note(f"firstword: {in_words(error)}")
    try:
        sys.stdout.flush()
    except OSError:
        drop(sys.stdout)
    return 1


def in_words(error: OSError) -> str:
    """What the system refused, and of which file."""
    what = error.strerror or str(error) or type(error).__name__
    return f"cannot use {error.filename}: {what}" if error.filename else f"input or output: {what}"


def drop(stream: TextIO) -> None:
    """What is still held for a stream goes nowhere: the interpreter would try it again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
