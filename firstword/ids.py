"""Arithmetic on stream entry ids (`milliseconds-sequence`, the server's clock)."""

from __future__ import annotations

START = "0-0"


def id_key(entry_id: str) -> tuple[int, int]:
    """Entry ids in order: `1700000000000-3` as numbers."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)


def id_after(entry_id: str) -> str:
    """The least id greater than this one."""
    milliseconds, sequence = id_key(entry_id)
    return f"{milliseconds}-{sequence + 1}"


def id_before(entry_id: str) -> str:
    """The greatest id less than this one."""
    milliseconds, sequence = id_key(entry_id)
    if sequence:
        return f"{milliseconds}-{sequence - 1}"
    return f"{milliseconds - 1}-{2**64 - 1}" if milliseconds else START


def seconds_between(earlier: str, later: str) -> float:
    """Time between two entry ids on the server's clock, in seconds."""
    return (id_key(later)[0] - id_key(earlier)[0]) / 1000
