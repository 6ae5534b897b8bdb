"""Signature Version 4 as a server sees it: the request's own, and the chain over its events.

Each event's signature covers that of the event before it, the first one covers the request's; so an
event lost, repeated or moved shows at once. Every refusal says what does not match.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import parse_qsl, quote

from firstword.emulator.eventstream import Message, Timestamp, encode_headers
from firstword.errors import FirstwordError

SERVICE = "sagemaker"
MAX_SKEW = timedelta(minutes=5)

_ALGORITHM = "AWS4-HMAC-SHA256"
_EVENTS = "STREAMING-AWS4-HMAC-SHA256-EVENTS"
_STAMP = "%Y%m%dT%H%M%SZ"
_AUTHORIZATION = re.compile(
    rf"{_ALGORITHM} Credential=(?P<key>[^/,\s]+)/(?P<day>\d{{8}})/(?P<region>[^/,\s]+)/"
    r"(?P<service>[^/,\s]+)/aws4_request,\s*SignedHeaders=(?P<signed>[^,\s]+),\s*"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_MUST_BE_SIGNED = {"host", "x-amz-date"}


class SignatureRefused(FirstwordError):
    """`code` is the name of AWS's error, `message` says what does not match."""


@dataclass(frozen=True)
class KeyPair:
    """Credentials that a caller may have."""

    access_key_id: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Request:
    """What of a request is signed. Names of headers are lower case; `host` is among them."""

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]

    def header(self, name: str) -> str | None:
        """Its value, those of a repeated header joined; None if it is not there."""
        values = [value for key, value in self.headers if key == name]
        return ",".join(values) if values else None


@dataclass(frozen=True)
class _Scope:
    day: str
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


class EventChain:
    """The signatures over the events of one request, in their order."""

    def __init__(self, key: KeyPair, region: str, signature: str) -> None:
        self._key = key
        self._region = region
        self._prior = signature
        self._count = 0
        self._ended = False

    def verify(self, message: Message, now: datetime) -> bytes | None:
        """The event inside, as its bytes; None for the empty one that ends the request.

        Raises SignatureRefused, after which the request is lost.
        """
        self._count += 1
        if self._ended:
            raise _refused(f"event {self._count} came after the one that ends the request")
        date, given = message.headers.get(":date"), message.headers.get(":chunk-signature")
        if not isinstance(date, Timestamp) or not isinstance(given, bytes):
            raise _refused(f"event {self._count} has no :date or no :chunk-signature")
        moment = _moment(date)
        _check_skew(moment, now, f"event {self._count}")
        scope = _Scope(moment.strftime("%Y%m%d"), self._region, SERVICE)
        text = "\n".join(
            [
                f"{_ALGORITHM}-PAYLOAD",
                moment.strftime(_STAMP),
                str(scope),
                self._prior,
                sha256(encode_headers({":date": date})).hexdigest(),
                sha256(message.payload).hexdigest(),
            ]
        )
        expected = _sign(self._key, scope, text)
        if not hmac.compare_digest(expected, given):
            raise _refused(
                f"the signature of event {self._count} does not match: wrong secret, or events "
                "lost, repeated or out of order"
            )
        self._prior = expected.hex()
        self._ended = not message.payload
        return message.payload or None


def verify_request(
    request: Request, keys: Mapping[str, KeyPair], region: str, now: datetime
) -> EventChain:
    """Check who asks; returns the chain for the request's events. Raises SignatureRefused."""
    authorization = request.header("authorization")
    if authorization is None:
        raise SignatureRefused(
            "MissingAuthenticationTokenException", "the request has no Authorization header"
        )
    given = _AUTHORIZATION.fullmatch(authorization)
    if given is None:
        raise SignatureRefused(
            "IncompleteSignatureException", f"the Authorization header is no {_ALGORITHM}"
        )
    key = _known_key(given["key"], keys, request.header("x-amz-security-token"))
    scope = _Scope(given["day"], given["region"], given["service"])
    _check_scope(scope, region, request.header("x-amz-date"), now)
    if request.header("x-amz-content-sha256") != _EVENTS:
        raise _refused(f"x-amz-content-sha256 is not {_EVENTS}")
    signed = given["signed"].split(";")
    _check_signed(signed, request)
    text = "\n".join(
        [
            _ALGORITHM,
            request.header("x-amz-date") or "",
            str(scope),
            sha256(_canonical(request, signed).encode()).hexdigest(),
        ]
    )
    expected = _sign(key, scope, text).hex()
    if not hmac.compare_digest(expected, given["signature"]):
        raise _refused("the request's signature does not match: wrong secret, or a changed header")
    return EventChain(key, region, expected)


def _known_key(name: str, keys: Mapping[str, KeyPair], token: str | None) -> KeyPair:
    key = keys.get(name)
    if key is None:
        raise SignatureRefused("UnrecognizedClientException", f"there is no access key {name}")
    if key.session_token != token:
        what = "is not that of this access key" if token else "is missing"
        if token and key.session_token is None:
            what = "does not belong to this access key, which has none"
        raise SignatureRefused("UnrecognizedClientException", f"the session token {what}")
    return key


def _check_scope(scope: _Scope, region: str, stamp: str | None, now: datetime) -> None:
    if scope.service != SERVICE:
        raise _refused(f"signed for the service {scope.service}, not {SERVICE}")
    if scope.region != region:
        raise _refused(f"signed for the region {scope.region}, this is {region}")
    try:
        moment = datetime.strptime(stamp or "", _STAMP).replace(tzinfo=UTC)
    except ValueError:
        raise _refused("x-amz-date is missing or not like 20261129T120000Z") from None
    if moment.strftime("%Y%m%d") != scope.day:
        raise _refused("x-amz-date is not of the day that the credential's scope names")
    _check_skew(moment, now, "the request")


def _check_skew(moment: datetime, now: datetime, what: str) -> None:
    if abs(moment - now) > MAX_SKEW:
        raise _refused(f"{what} is dated {moment:%Y-%m-%dT%H:%M:%SZ}, more than 5 minutes off")


def _check_signed(signed: Sequence[str], request: Request) -> None:
    """What decides over the request must be covered, and what is covered must be there."""
    names = {name for name, _ in request.headers}
    must = _MUST_BE_SIGNED | {
        name for name in names if name.startswith("x-amz-") or name == "content-type"
    }
    if missing := sorted(must - set(signed)):
        raise _refused(f"not among the signed headers: {', '.join(missing)}")
    if absent := sorted(set(signed) - names):
        raise _refused(f"signed, but not among the headers: {', '.join(absent)}")


def _canonical(request: Request, signed: Sequence[str]) -> str:
    query = sorted(
        (quote(name, safe=""), quote(value, safe=""))
        for name, value in parse_qsl(request.query, keep_blank_values=True)
    )
    headers = [f"{name}:{' '.join((request.header(name) or '').split())}\n" for name in signed]
    return "\n".join(
        [
            request.method,
            quote(request.path, safe="/"),
            "&".join(f"{name}={value}" for name, value in query),
            "".join(headers),
            ";".join(signed),
            _EVENTS,
        ]
    )


def _sign(key: KeyPair, scope: _Scope, text: str) -> bytes:
    secret = f"AWS4{key.secret}".encode()
    for part in (scope.day, scope.region, scope.service, "aws4_request", text):
        secret = hmac.digest(secret, part.encode(), "sha256")
    return secret


def _moment(date: Timestamp) -> datetime:
    try:
        return datetime.fromtimestamp(date.ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise _refused("an event's :date is no date") from None


def _refused(why: str) -> SignatureRefused:
    return SignatureRefused("InvalidSignatureException", why)
