"""Settings of the gateway service."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.redis_client import check_url
from firstword.server_errors import without_password
from firstword.session_address import PATH
from firstword.settings import setting
from services.tts_gateway.actions import Limits
from services.tts_gateway.retention import Retention


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Read with `firstword.settings.load`."""

    redis_url: str = setting(
        "redis://127.0.0.1:6379",
        "FIRSTWORD_REDIS_URL",
        "server that carries the streams",
        check=check_url,
        shown=without_password,
    )
    upstream: str = setting(
        f"ws://127.0.0.1:8080{PATH}",
        "FIRSTWORD_UPSTREAM",
        "synthesis backend: ws://host:port or wss://… of an inference container, "
        "openai+http://host:port/v1 or openai+https://… of an OpenAI-compatible speech server, "
        "sagemaker://endpoint?region=… of a SageMaker endpoint (docs/SAGEMAKER.md)",
    )
    openai_api_key: str = setting(
        "", "FIRSTWORD_OPENAI_API_KEY", "key for the speech server of an openai+… upstream"
    )
    http_host: str = setting(
        "127.0.0.1", "FIRSTWORD_GATEWAY_HOST", "address of /livez, /readyz and /metrics"
    )
    http_port: int = setting(
        9102, "FIRSTWORD_GATEWAY_PORT", "its port; 0 picks a free one", minimum=0, maximum=65535
    )
    max_sessions: int = setting(
        500, "FIRSTWORD_GATEWAY_MAX_SESSIONS", "sessions this process takes at most", minimum=1
    )
    attempts: int = setting(
        3,
        "FIRSTWORD_UPSTREAM_ATTEMPTS",
        "tries in a row that may break off before a segment is given up; one that gets further "
        "than any before it counts as the first",
        minimum=1,
    )
    patience_s: float = setting(
        30.0,
        "FIRSTWORD_UPSTREAM_PATIENCE_S",
        "seconds to wait for a backend that is away or has no room before segments are given up",
        minimum=0,
    )
    first_byte_s: float = setting(
        30.0,
        "FIRSTWORD_UPSTREAM_FIRST_BYTE_S",
        "seconds from synthesis request to first audio before the connection is dropped",
        minimum=0.1,
    )
    between_frames_s: float = setting(
        15.0,
        "FIRSTWORD_UPSTREAM_BETWEEN_FRAMES_S",
        "seconds between audio frames before the connection is dropped",
        minimum=0.1,
    )
    ping_s: float = setting(
        45.0,
        "FIRSTWORD_UPSTREAM_PING_S",
        "seconds of silence after which an idle upstream connection is asked whether it is there",
        minimum=1,
    )
    max_ahead_s: float = setting(
        10.0,
        "FIRSTWORD_MAX_AHEAD_S",
        "seconds of audio a realtime session may be ahead of its listener",
        minimum=1,
    )
    retention_s: float = setting(
        120.0, "FIRSTWORD_AUDIO_RETENTION_S", "seconds that audio is kept for replay", minimum=1
    )
    retention_bytes: int = setting(
        16_000_000, "FIRSTWORD_AUDIO_RETENTION_BYTES", "bytes of audio kept per session", minimum=1
    )
    idle_s: float = setting(
        300.0,
        "FIRSTWORD_SESSION_IDLE_S",
        "seconds without work after which a session's upstream connection is closed",
        minimum=1,
    )
    session_ttl_s: int = setting(
        86_400, "FIRSTWORD_SESSION_TTL_S", "seconds a session's state outlives its last use"
    )
    ecs_agent: str = setting(
        "",
        "ECS_AGENT_URI",
        "set by ECS itself: its task is then protected from scale-in while it has sessions",
    )

    def limits(self) -> Limits:
        """What the core goes by."""
        return Limits(
            attempts=self.attempts,
            patience_s=self.patience_s,
            first_byte_s=self.first_byte_s,
            between_frames_s=self.between_frames_s,
            ping_s=self.ping_s,
            max_ahead_s=self.max_ahead_s,
        )

    def retention(self) -> Retention:
        """A fresh memory of what one session's audio stream holds."""
        return Retention(self.retention_s, self.retention_bytes)
