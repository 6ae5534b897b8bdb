"""Text of others as a terminal may show it: what would steer the terminal is written out."""

from __future__ import annotations

import unicodedata

# Format characters that turn the direction of what follows; the others, as in emoji, do no harm.
_TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_KEPT = {ord("\n"), ord("\t")}
_CONTROLS = {
    code for code in range(0x100) if unicodedata.category(chr(code)) == "Cc" and code not in _KEPT
}
_WRITTEN_OUT = {  # those that may stand in JSON as they are, as JSON writes them
    code: f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}" for code in _CONTROLS | _TURNING
}


def visible(text: str) -> str:
    """`text` with control characters, such as ESC, written as `\\x1b`; lines and tabs stay."""
    return text.translate(_WRITTEN_OUT)
