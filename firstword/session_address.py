"""Where a container takes sessions: the path of its WebSocket. Pure."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit, urlunsplit

PATH: Final = "/invocations-bidirectional-stream"
"""As SageMaker asks for it, and so the usual one everywhere."""


def whole(url: str) -> str:
    """A `ws://` or `wss://` URL with the usual path, where it has none; any other as it is."""
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL at all, which whoever opens it will say
        return url
    if parts.scheme not in ("ws", "wss") or parts.path.strip("/"):
        return url
    return urlunsplit(parts._replace(path=PATH))
