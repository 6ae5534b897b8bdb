"""Malformed requests and frames for the agent's doors, the same for the same seed: bytes only."""

from __future__ import annotations

import json
import os
import random
import struct
from typing import Any

POSTS = (
    "/invocations",
    "/v1/audio/speech",
    *(f"/v1/sessions/f{{}}/{kind}" for kind in ("text", "end", "flush", "cancel", "open", "close")),
)
GETS = (
    "/",
    "/ws",
    "/v1/voices",
    "/v1/agent",
    "/v1/models",
    "/v1/models/kokoro-82m",
    "/ping",
    "/readyz",
)
BODIES: tuple[dict[str, Any], ...] = (
    {"text": "Hi.", "mode": "stream", "tokens_per_second": 0, "session": "f0", "turn": "t"},
    {"prompt": "Hi.", "voice": "af_heart", "speed": 1.0, "lang": "en-us"},
    {"model": "tts-1", "input": "Hi.", "voice": "alloy", "response_format": "pcm", "speed": 1},
    {"text": "Hi.", "turn": "t", "seq": 0, "again": 0, "end": True},
    {"turn": "t", "played": {"turn": "t", "n": 0, "samples": 0}},
    {"voice": "af_heart", "sample_rate": 24000, "pace": "none", "meta": {"segmenter": {}}},
)
FRAMES: tuple[dict[str, Any], ...] = (
    {"type": "say", "text": "Hi.", "turn": "t", "tokens_per_second": 0},
    {"type": "say", "prompt": "Hi.", "mode": "batch"},
    {"type": "cancel", "turn": "t", "played": {"turn": "t", "n": 0, "samples": 0}},
    {"type": "sing"},
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**64, 10**40, 0.5, 1e308, -1e-9),
    *("", " ", "t", "\x00", "\ud800", "﷽" * 20, "a/b", "../..", "x" * 300, "é", "0"),
    *([], {}, [[]], [1, "x"], {"": ""}, {"id": "x"}, {"turn": "t"}),
)
NAMES = (
    "text",
    "prompt",
    "turn",
    "seq",
    "end",
    "mode",
    "type",
    "input",
    "voice",
    "speed",
    "played",
)


class Malformed:
    """Makes them. Some are as they should be, so that what lies behind the checks is met too."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def pick(self, count: int) -> int:
        return self._random.randrange(count)

    # -- requests ---------------------------------------------------------------------------------

    def request(self) -> bytes:
        """One HTTP request, or what is none."""
        dice = self._random
        kind = dice.random()
        if kind < 0.08:
            return self._noise(dice.randrange(1, 200)) + b"\r\n\r\n"
        whole = self._post() if kind < 0.7 else self._get()
        return self._damaged(whole) if dice.random() < 0.3 else whole

    def _post(self) -> bytes:
        dice = self._random
        path = dice.choice(POSTS).format(dice.randrange(8))
        body = self._body(dice.choice(BODIES))
        headers = [f"Content-Length: {len(body)}"]
        if dice.random() < 0.1:
            headers[0] = dice.choice(
                (
                    *("Content-Length: x", "Content-Length: -1", "Transfer-Encoding: chunked"),
                    *(f"Content-Length: {len(body) + 7}", "Content-Encoding: gzip", "X: y"),
                )
            )
        return self._head("POST", path, headers) + body

    def _get(self) -> bytes:
        dice = self._random
        path = dice.choice((*GETS, f"/v1/sessions/f{dice.randrange(8)}/events"))
        if dice.random() < 0.3:
            path += "?" + self._text(dice.randrange(30))
        if dice.random() < 0.1:
            path = "/" + self._text(dice.randrange(60))
        method = dice.choice(
            ("GET", "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "get", "X")
        )
        return self._head(method, path, [])

    def _head(self, method: str, path: str, headers: list[str]) -> bytes:
        dice = self._random
        if dice.random() < 0.2:
            headers = [*headers, self._header()]
        host = "127.0.0.1" if dice.random() < 0.95 else self._text(12)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
        return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n"

    def _header(self) -> str:
        dice = self._random
        name = dice.choice(
            (
                *("Origin", "Authorization", "Last-Event-ID", "Upgrade", "Expect", "Range"),
                *("Sec-WebSocket-Protocol", "Content-Type", "Accept-Encoding", "Cookie", "Te"),
            )
        )
        value = dice.choice(
            (
                *("null", "http://[", "Bearer", "Bearer x", "9999999999999-0", "websocket", "gzip"),
                *("100-continue", "firstword.bearer.x", self._text(40), "x" * 9000),
            )
        )
        return f"{name}: {value}"

    # -- frames -----------------------------------------------------------------------------------

    def frames(self) -> tuple[bytes, int]:
        """Some frames of a WebSocket client, and how many."""
        dice = self._random
        count = dice.randrange(1, 12)
        return b"".join(self._frame() for _ in range(count)), count

    def _frame(self) -> bytes:
        dice = self._random
        kind = dice.random()
        if kind < 0.75:
            return frame(1, self._body(dice.choice(FRAMES)))
        if kind < 0.85:
            return frame(dice.choice((2, 9, 10)), self._noise(dice.randrange(100)))
        if kind < 0.9:
            return frame(1, self._noise(30))  # no UTF-8
        if kind < 0.94:
            return frame(dice.randrange(16), b"x", final=dice.random() < 0.5)
        if kind < 0.96:
            return b"\x81\xff" + struct.pack(">Q", dice.choice((2**62, 2**31, 2_000_000)))
        if kind < 0.98:
            return frame(8, self._noise(dice.randrange(4)))
        return self._noise(dice.randrange(1, 40))

    # -- what they are made of --------------------------------------------------------------------

    def _body(self, like: dict[str, Any]) -> bytes:
        dice = self._random
        kind = dice.random()
        if kind < 0.1:
            return self._noise(dice.randrange(80))
        if kind < 0.15:
            return b"[" * dice.randrange(5_000)
        body = dict(like)
        for _ in range(dice.randrange(4)):
            name = dice.choice((*body, *NAMES, self._text(5)))
            if dice.random() < 0.25:
                body.pop(name, None)
            else:
                body[name] = dice.choice(VALUES)
        if "turn" in body and dice.random() < 0.5:
            body["turn"] = f"t{dice.randrange(10**6)}"
        text = json.dumps(body, ensure_ascii=dice.random() < 0.8)
        data = text.encode("utf-8", "surrogatepass")
        return self._damaged(data) if dice.random() < 0.2 else data

    def _damaged(self, data: bytes) -> bytes:
        dice = self._random
        out = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(out) + 1)
            match dice.randrange(4):
                case 0:
                    out[at : at + 1] = self._noise(1)
                case 1:
                    del out[at : at + dice.randrange(1, 9)]
                case 2:
                    out[at:at] = self._noise(dice.randrange(1, 9))
                case _:
                    del out[at:]
        return bytes(out)

    def _noise(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def _text(self, count: int) -> str:
        return "".join(self._random.choice("ab%/?&=.-:\\ <\x7fé\x00{}") for _ in range(count))


def frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A masked frame, as clients send them."""
    first = bytes([opcode | 0x80 * final])
    if len(payload) < 126:
        length = bytes([0x80 | len(payload)])
    else:
        length = bytes([0x80 | 126]) + struct.pack(">H", len(payload) % 65_536)
        payload = payload[:65_535]
    mask = os.urandom(4)
    return first + length + mask + bytes(b ^ mask[at % 4] for at, b in enumerate(payload))
