"""What is open at a point of the text: quotes, brackets, emphasis."""

from __future__ import annotations

from typing import Final

from .characters import BRACKETS_CLOSE, BRACKETS_OPEN

TRACKED: Final = frozenset('"“”„«»*_~' + BRACKETS_OPEN + BRACKETS_CLOSE)
MAX_DEPTH: Final = 32


class Nesting:
    """Follows the opening and closing characters of a line.

    `quote` and `angle` hold the character that opened; so «…» and »…«, “…” and „…“ both work.
    A stray mark (an inch sign, an unmatched bracket) is forgotten at the end of the line.
    """

    __slots__ = ("angle", "brackets", "emphasis", "quote", "run")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing is open: a new line, a flush."""
        self.quote = ""
        self.angle = ""
        self.brackets = 0
        self.emphasis = 0
        self.run = 0  # +1 or -1 while inside a run of emphasis characters that opens or closes

    @property
    def open(self) -> bool:
        """True if anything is open."""
        return bool(self.quote or self.angle or self.brackets or self.emphasis)

    @property
    def paired(self) -> bool:
        """True if an attached quote or emphasis can only be a closing one."""
        return bool(self.quote or self.angle or self.emphasis)

    @property
    def reversed(self) -> bool:
        """True if German order has opened: “ or « will close."""
        return self.quote == "„" or self.angle == "»"

    def see(self, char: str, before: str) -> None:
        """Take one tracked character; `before` is the one to its left (empty at a start)."""
        if char in "*_~":
            self._emphasis(char, before)
        elif char == '"':
            if self.quote:
                self.quote = ""
            elif not before.isdigit():
                self.quote = char
        elif char in "“”„":
            closes = char == "”" or (char == "“" and self.quote == "„")
            self.quote = "" if self.quote and closes else char
        elif char in "«»":
            self.angle = "" if self.angle and self.angle != char else char
        elif char in BRACKETS_OPEN:
            self.brackets = min(self.brackets + 1, MAX_DEPTH)
        else:
            self.brackets = max(self.brackets - 1, 0)

    def _emphasis(self, char: str, before: str) -> None:
        if before != char:
            opens = not before or before.isspace() or (not before.isalnum() and not self.emphasis)
            self.run = 1 if opens else -1
        self.emphasis = min(max(self.emphasis + self.run, 0), MAX_DEPTH)

    def snapshot(self) -> list[str | int]:
        """The state as plain values."""
        return [self.quote, self.angle, self.brackets, self.emphasis, self.run]

    def restore(self, state: list[str | int]) -> None:
        """Take over the state of `snapshot`."""
        self.quote, self.angle = str(state[0]), str(state[1])
        self.brackets, self.emphasis, self.run = int(state[2]), int(state[3]), int(state[4])
