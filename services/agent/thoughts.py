"""Reasoning that a model writes into its answer, between tags, is not spoken. Pure.

Servers that know their model return its reasoning apart from its answer. Others pass on what it
wrote: a tag at the very beginning, and everything up to the closing tag is reasoning.
"""

from __future__ import annotations

_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}


class Thoughts:
    """Takes an answer's pieces, cut anywhere, and returns what of them is to be spoken."""

    def __init__(self) -> None:
        self._held = ""
        self._close = ""
        self._take = self._begin

    def feed(self, piece: str) -> str:
        """What can be spoken now."""
        self._held += piece
        return self._take()

    def end(self) -> str:
        """The answer is over: what was held back in case it became a tag."""
        return self._held if self._take == self._begin else ""

    def _begin(self) -> str:
        begin = self._held.lstrip()
        for tag, close in _TAGS.items():
            if tag.startswith(begin):
                return ""  # it may become the tag
            if begin.startswith(tag):
                self._held, self._close, self._take = begin[len(tag) :], close, self._think
                return self._think()
        self._take = self._say
        return self._say()

    def _think(self) -> str:
        _thought, closed, after = self._held.partition(self._close)
        if not closed:
            self._held = self._held[-len(self._close) + 1 :]  # the tag may be cut anywhere
            return ""
        self._held, self._take = after, self._wake
        return self._take()

    def _wake(self) -> str:
        """The answer does not begin with the white space after the reasoning."""
        self._held = self._held.lstrip()
        if self._held:
            self._take = self._say
        return self._say()

    def _say(self) -> str:
        said, self._held = self._held, ""
        return said
