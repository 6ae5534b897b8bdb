"""Text that arrives in pieces: joins characters that were cut between two entries.

The codec hands over UTF-8 bytes that do not decode alone as U+DC80..U+DCFF (`surrogateescape`),
and some publishers cut UTF-16 pairs. Both are held until they are complete; what can never be
completed becomes U+FFFD.
"""

from __future__ import annotations

import codecs
import re

from .characters import SURROGATE

_BYTES = "\udc80-\udcff"
_BROKEN = re.compile(f"[\ud800-\udbff][\udc00-\udfff]|[{_BYTES}]+|[\ud800-\udfff]")
_HELD = re.compile(f"(?:[\ud800-\udbff]|[{_BYTES}]{{1,3}})$")


def repair(text: str, final: bool) -> tuple[str, str]:
    """Returns the text without surrogates, and the end of it that may still be completed."""
    if text.isascii() or SURROGATE.search(text) is None:
        return text, ""
    held = ""
    tail = None if final else _HELD.search(text)
    if tail is not None:
        keep = tail.start()
        if text[keep] < "\ud800" or text[keep] > "\udbff":
            keep = _incomplete(text)
        text, held = text[:keep], text[keep:]
    return _BROKEN.sub(_join, text), held


def _incomplete(text: str) -> int:
    """Where the last, unfinished character of a run of bytes starts (the end if there is none)."""
    start = len(text)
    while start and "\udc80" <= text[start - 1] <= "\udcff":
        start -= 1
    if start and "\ud800" <= text[start - 1] <= "\udbff":
        start += 1  # the first one completes a UTF-16 pair
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(text[start:].encode("utf-8", "surrogateescape"))
    return len(text) - len(decoder.getstate()[0])


def _join(found: re.Match[str]) -> str:
    piece = found[0]
    if len(piece) == 2 and "\ud800" <= piece[0] <= "\udbff":
        return piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    if "\udc80" <= piece[0] <= "\udcff":
        return piece.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "\ufffd"
