"""Who may come in, from where, and how much of it: decisions only, no socket, no clock.

A caller is known by a bearer token; the agent holds only the tokens' hashes. Each token has its own
sessions (`Caller.full`), so that nobody can hear or interrupt another's. Without tokens there is
one caller: everyone on this machine.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from firstword.errors import FirstwordError
from services.agent.core import RequestError, check_label

PROTOCOL = "firstword"
"""The WebSocket subprotocol that is selected if a client offers any."""
BEARER_PROTOCOL = "firstword.bearer."
"""Prefix of the token as a second offered subprotocol: browsers cannot set headers."""

ALLOWED_METHODS = "GET, POST, OPTIONS"
ALLOWED_HEADERS = "Authorization, Content-Type, Last-Event-ID"
EXPOSED_HEADERS = "Retry-After"
PREFLIGHT_KEPT_S = 600

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MINUTE_S = 60.0


class AccessError(RequestError):
    """A caller, or a start, that cannot be let in.

    `status` is the HTTP status; `retry_after_s`: when it may be let in, if that is known.
    """

    def __init__(
        self, code: str, message: str, *, status: int = 403, retry_after_s: int | None = None
    ) -> None:
        super().__init__(code, message, retryable=retry_after_s is not None)
        self.status = status
        self.retry_after_s = retry_after_s


# -- tokens ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Token:
    """A caller's name, and the SHA-256 of the secret that it shows."""

    name: str
    digest: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking; without tokens everyone, whose name is empty."""

    name: str = ""

    def full(self, session: str) -> str:
        """The name on the server of what the caller calls `session`. Raises RequestError."""
        return check_label(f"{self.name}:{session}" if self.name else session)

    def own(self, full: str) -> str:
        """The caller's name for a session on the server."""
        return full.removeprefix(f"{self.name}:") if self.name else full


EVERYONE = Caller()


def read_tokens(setting: str) -> tuple[Token, ...]:
    """`name:sha256hex`, several with commas between. Raises AccessError without quoting any."""
    tokens: dict[str, Token] = {}
    for number, entry in enumerate(setting.split(","), 1) if setting.strip() else ():
        name, _, digest = entry.strip().partition(":")
        if not _NAME.fullmatch(name) or not _DIGEST.fullmatch(digest.lower()) or name in tokens:
            raise AccessError(
                "bad_tokens",
                f"entry {number} of FIRSTWORD_API_TOKENS is not name:sha256hex with a name of its "
                "own: `firstword token NAME` makes one",
            )
        tokens[name] = Token(name, bytes.fromhex(digest))
    return tuple(tokens.values())


def presented(authorization: str | None, protocols: Iterable[str] = ()) -> str | None:
    """The token in `Authorization: Bearer …`, else among a WebSocket's offered subprotocols."""
    kind, _, secret = (authorization or "").strip().partition(" ")
    if kind.lower() == "bearer" and secret.strip():
        return secret.strip()
    for protocol in protocols:
        if protocol.startswith(BEARER_PROTOCOL):
            return protocol.removeprefix(BEARER_PROTOCOL)
    return None


def identify(secret: str | None, tokens: Iterable[Token]) -> Caller:
    """Whose token this is, in constant time. Raises AccessError, status 401."""
    digest = hashlib.sha256((secret or "").encode("utf-8", "surrogateescape")).digest()
    found: Caller | None = None
    for token in tokens:
        if hmac.compare_digest(token.digest, digest):
            found = Caller(token.name)
    if secret is None or found is None:
        told = "send a token: `Authorization: Bearer …`" if secret is None else "unknown token"
        raise AccessError("unauthorized", told, status=401)
    return found


# -- from where -----------------------------------------------------------------------------------


def check_exposure(host: str, tokens: Iterable[Token]) -> None:
    """Raises AccessError if `host` can be reached from other machines and there are no tokens."""
    if not is_loopback(host) and not any(True for _ in tokens):
        raise AccessError(
            "no_tokens",
            f"FIRSTWORD_AGENT_HOST={host} opens the agent to other machines, and no token is asked "
            "for: make one with `firstword token NAME` and set FIRSTWORD_API_TOKENS, or listen on "
            "127.0.0.1",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address of this name."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(header: str | None) -> None:
    """Without tokens, a browser's `Host` must mean this machine: another name that resolves to it
    (DNS rebinding) would let any page in. Raises AccessError."""
    try:
        host = urlsplit(f"//{header or ''}").hostname or ""
    except ValueError:
        host = ""
    if not is_loopback(host):
        raise AccessError(
            "bad_host", "without tokens the agent answers to localhost and 127.0.0.1 only"
        )


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of other sites whose pages may use the agent: `https://app.example`, exactly."""

    allowed: frozenset[str] = frozenset()

    def is_other(self, origin: str | None, host: str | None) -> bool:
        """Whether this is an allowed origin of another site, which then needs CORS headers.

        Raises AccessError if it is not.
        """
        if origin is None:
            return False
        if origin in self.allowed:
            return True
        try:
            ours = urlsplit(origin).netloc == host
        except ValueError:
            ours = False
        if not ours:
            raise AccessError(
                "bad_origin",
                "pages of other sites are not served: FIRSTWORD_AGENT_CORS_ORIGINS lists those "
                "that are",
            )
        return False


def read_origins(setting: str) -> Origins:
    """Origins, separated by commas. Raises AccessError."""
    found = [entry.strip() for entry in setting.split(",") if entry.strip()]
    for entry in found:
        try:
            parts = urlsplit(entry)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or entry != f"{parts.scheme}://{parts.netloc}":
            raise AccessError(
                "bad_origins",
                f"FIRSTWORD_AGENT_CORS_ORIGINS: {entry!r} is no origin; they look like "
                "https://app.example:8443, without a path",
            )
    return Origins(frozenset(found))


def cors_headers(origin: str) -> dict[str, str]:
    """The headers that an allowed page of another site needs in every response."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": EXPOSED_HEADERS,
        "Vary": "Origin",
    }


def preflight_headers(origin: str) -> dict[str, str]:
    """The headers that its browser's preflight request needs."""
    return {
        **cors_headers(origin),
        "Access-Control-Allow-Methods": ALLOWED_METHODS,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": str(PREFLIGHT_KEPT_S),
    }


# -- how much -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quota:
    """What each token may have at once, and per minute; 0: no limit."""

    sessions: int = 0
    characters_per_minute: int = 0


@dataclass(slots=True)
class _Account:
    balance: float
    counted_at: float
    sessions: Counter[str] = field(default_factory=Counter)


class Ledger:
    """What every caller has open and has used. `now`: any monotonic clock, in seconds."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._accounts: dict[str, _Account] = {}

    def enter(self, caller: Caller, session: str, now: float) -> None:
        """Count one more use of this session, until `leave`; raises AccessError, status 429, if
        that is one session too many."""
        account = self._account(caller, now)
        limit = self._quota.sessions
        if limit and caller.name and session not in account.sessions:
            if len(account.sessions) >= limit:
                raise AccessError(
                    "too_many_sessions",
                    f"this token may have {limit} sessions at once: end one, or wait",
                    status=429,
                    retry_after_s=5,
                )
        account.sessions[session] += 1

    def leave(self, caller: Caller, session: str) -> None:
        """Count one use less."""
        sessions = self._accounts[caller.name].sessions
        sessions[session] -= 1
        if not sessions[session]:
            del sessions[session]

    def open_sessions(self, caller: Caller) -> int:
        """How many sessions the caller has now."""
        account = self._accounts.get(caller.name)
        return 0 if account is None else len(account.sessions)

    def spend(self, caller: Caller, characters: int, now: float) -> None:
        """Take characters off the quota; if too few are left, take none and raise AccessError,
        status 429."""
        limit = self._quota.characters_per_minute
        account = self._account(caller, now)
        if not limit or not caller.name:
            return
        if characters > limit:
            raise AccessError(
                "too_large",
                f"this token may speak {limit} characters a minute: send it in parts",
                status=400,
            )
        missing = characters - account.balance
        if missing > 0:
            raise AccessError(
                "quota",
                f"this token has spoken its {limit} characters of this minute",
                status=429,
                retry_after_s=math.ceil(missing / limit * _MINUTE_S),
            )
        account.balance -= characters

    def charge(self, caller: Caller, characters: int, now: float) -> None:
        """Take off what was written meanwhile. It may exceed the quota: later requests wait."""
        self._account(caller, now).balance -= characters

    def _account(self, caller: Caller, now: float) -> _Account:
        limit = self._quota.characters_per_minute
        account = self._accounts.setdefault(caller.name, _Account(limit, now))
        gained = (now - account.counted_at) / _MINUTE_S * limit
        account.balance = min(float(limit), account.balance + gained)
        account.counted_at = now
        return account


# -- how slowly -----------------------------------------------------------------------------------


class Patience:
    """Whether a listener has stopped reading, judged by repeated looks at what waits for it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._held = 0

    def is_over(self, now: float, *, waiting: bool, held: int) -> bool:
        """`waiting`: a write is blocked; `held`: bytes that it has not read."""
        if not waiting or self._since is None or held < self._held:
            self._since = now if waiting else None
        self._held = held
        return self._since is not None and now - self._since >= self._seconds


TOO_SLOW = FirstwordError(
    "too_slow", "you took nothing for too long: come back from the last event that you have"
)
"""Why a listener was cut off."""
