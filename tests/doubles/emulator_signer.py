"""Signature Version 4 as a client makes it, for tests that must sign what no SDK would."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime

from firstword.emulator.eventstream import Message, Timestamp, Value, encode, encode_headers
from firstword.emulator.signatures import KeyPair, Request

EVENTS = "STREAMING-AWS4-HMAC-SHA256-EVENTS"
PATH = "/endpoints/demo/invocations-bidirectional-stream"


def part(
    data: bytes, data_type: str | None = None, completion: str | None = None, **more: Value
) -> Message:
    """A request's event before it is signed."""
    headers: dict[str, Value] = {
        ":message-type": "event",
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
    }
    if data_type is not None:
        headers["DataType"] = data_type
    if completion is not None:
        headers["CompletionState"] = completion
    return Message({**headers, **more}, data)


class Signer:
    """One request and its events. `at` is the time of all of them; None: now."""

    def __init__(
        self, key: KeyPair, *, region: str = "us-east-1", at: datetime | None = None
    ) -> None:
        self.region = region
        self.service = "sagemaker"
        self._key = key
        self._at = at
        self.prior = ""

    def request(self, path: str = PATH, query: str = "", **headers: str) -> Request:
        """A signed request; names of `headers` are written with _ for -."""
        now = self._now()
        unsigned = {
            "content-type": "application/vnd.amazon.eventstream",
            "host": "localhost:8443",
            "x-amz-content-sha256": EVENTS,
            "x-amz-date": f"{now:%Y%m%dT%H%M%SZ}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if self._key.session_token is not None:
            unsigned["x-amz-security-token"] = self._key.session_token
        names = ";".join(sorted(unsigned))
        lines = "".join(f"{name}:{unsigned[name]}\n" for name in sorted(unsigned))
        canonical = f"POST\n{path}\n{query}\n{lines}\n{names}\n{EVENTS}"
        scope = f"{now:%Y%m%d}/{self.region}/{self.service}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{now:%Y%m%dT%H%M%SZ}\n{scope}\n{digest}"
        self.prior = self._sign(now, text).hex()
        unsigned["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._key.access_key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={self.prior}"
        )
        return Request("POST", path, query, list(unsigned.items()))

    def event(self, inner: Message) -> bytes:
        """The next event of the request, signed."""
        return self.wrap(encode(inner))

    def end(self) -> bytes:
        """The empty event that ends the request."""
        return self.wrap(b"")

    def wrap(self, payload: bytes) -> bytes:
        """Any bytes at all, signed as the next event."""
        now = self._now()
        date = Timestamp(int(now.timestamp() * 1000))
        head = hashlib.sha256(encode_headers({":date": date})).hexdigest()
        scope = f"{now:%Y%m%d}/{self.region}/{self.service}/aws4_request"
        text = (
            f"AWS4-HMAC-SHA256-PAYLOAD\n{now:%Y%m%dT%H%M%SZ}\n{scope}\n{self.prior}\n{head}\n"
            f"{hashlib.sha256(payload).hexdigest()}"
        )
        signature = self._sign(now, text)
        self.prior = signature.hex()
        return encode(Message({":date": date, ":chunk-signature": signature}, payload))

    def _now(self) -> datetime:
        return self._at or datetime.now(UTC)

    def _sign(self, now: datetime, text: str) -> bytes:
        key = f"AWS4{self._key.secret}".encode()
        for step in (f"{now:%Y%m%d}", self.region, self.service, "aws4_request", text):
            key = hmac.new(key, step.encode(), hashlib.sha256).digest()
        return key
