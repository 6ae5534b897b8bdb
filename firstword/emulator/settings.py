"""What an emulator is told at its start."""

from __future__ import annotations

from dataclasses import dataclass, field

from firstword.emulator.signatures import KeyPair


@dataclass(frozen=True)
class Settings:
    """All of it with a default but the container."""

    container: str
    """`ws://host:port` of the container."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    region: str = "us-east-1"
    key: KeyPair = field(
        default_factory=lambda: KeyPair("EMULATORACCESSKEY", "emulator-secret-access-key")
    )
    """The only credentials that are known."""
    endpoints: frozenset[str] = frozenset()
    """Names of endpoints that exist; empty: any."""
    variant: str = "AllTraffic"
    open_timeout_s: float = 10.0
    """For the container to take the WebSocket."""
    ping_s: float = 60.0
    ping_misses: int = 5
    max_duration_s: float = 1800.0
    normal_close_is_error: bool = True
    """Whether a container's close with 1000 reaches the client as ModelStreamError."""
    cap_is_error: bool = True
    """Whether a stream at its longest duration ends with ModelStreamError, or just ends."""
