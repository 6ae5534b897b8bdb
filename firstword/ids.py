"""Arithmetic on stream entry ids (`milliseconds-sequence`, the server's clock)."""

from __future__ import annotations

import re

START = "0-0"
_LAST = 2**64 - 1  # either half of an id is a 64-bit number
_ENTRY_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}", re.ASCII)


def is_entry_id(text: str) -> bool:
    """Whether this is a complete entry id, as the server writes it."""
    return _ENTRY_ID.fullmatch(text) is not None


def id_key(entry_id: str) -> tuple[int, int]:
    """Entry ids in order: `1700000000000-3` as numbers."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)


def id_after(entry_id: str) -> str:
    """The least id greater than this one."""
    milliseconds, sequence = id_key(entry_id)
    return f"{milliseconds}-{sequence + 1}" if sequence < _LAST else f"{milliseconds + 1}-0"


def id_before(entry_id: str) -> str:
    """The greatest id less than this one."""
    milliseconds, sequence = id_key(entry_id)
    if sequence:
        return f"{milliseconds}-{sequence - 1}"
    return f"{milliseconds - 1}-{_LAST}" if milliseconds else START


def seconds_between(earlier: str, later: str) -> float:
    """Time between two entry ids on the server's clock, in seconds."""
    return (id_key(later)[0] - id_key(earlier)[0]) / 1000
