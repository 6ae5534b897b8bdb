"""The errors Firstword raises, each saying what to do and whether trying again can help."""

from __future__ import annotations


class FirstwordError(Exception):
    """Base of every error of the library.

    `code` is a stable word for programs, `message` a sentence for people that says what to do,
    `retryable` whether the same call may succeed later without a change.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable


class DecodeError(FirstwordError):
    """A message that cannot be read: malformed, oversized or of the wrong shape.

    `session` is the session of the message, if that much could be read.
    """

    session: str | None = None


class SettingsError(FirstwordError):
    """One or more settings are wrong; the message names each and what it accepts."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("bad_settings", "; ".join(problems))
        self.problems = problems


class LeaseLost(FirstwordError):
    """Another worker owns the unit now; nothing was written. Leave it alone."""

    def __init__(self, unit: str) -> None:
        super().__init__("lease_lost", f"{unit} belongs to another worker now")
        self.unit = unit


class StateLost(FirstwordError):
    """The server no longer has what was committed to it (restart, failover, FLUSHALL)."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "state_lost",
            f"the server lost or rewound {what}: publish the open turn again, "
            "listen again from the start",
            retryable=True,
        )


class BrokenState(FirstwordError):
    """The state of a session cannot be read or written: damaged, or another version's."""

    def __init__(self, session: str, raw: bytes = b"") -> None:
        super().__init__("broken_state", f"the state of session {session} makes no sense")
        self.raw = raw


class UpstreamError(FirstwordError):
    """The synthesis backend failed: unreachable, broke off, refused, or answered nonsense."""
