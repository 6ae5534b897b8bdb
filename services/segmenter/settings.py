"""Settings of the segmenter service."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.keys import DEFAULT_MAX_QUEUED, DEFAULT_PARTITIONS, MAX_PARTITIONS
from firstword.redis_client import check_url
from firstword.server_check import FULL_SHARE
from firstword.server_errors import without_password
from firstword.settings import setting
from services.segmenter.core import SegmenterOptions
from services.segmenter.options import WAIT_S
from services.segmenter.turns import Defaults


@dataclass(frozen=True, slots=True)
class SegmenterSettings:
    """Read with `firstword.settings.load`."""

    redis_url: str = setting(
        "redis://127.0.0.1:6379",
        "FIRSTWORD_REDIS_URL",
        "server that carries the streams",
        check=check_url,
        shown=without_password,
    )
    partitions: int = setting(
        DEFAULT_PARTITIONS,
        "FIRSTWORD_PARTITIONS",
        "ingress partitions; the same for every service of a deployment",
        minimum=1,
        maximum=MAX_PARTITIONS,
    )
    http_host: str = setting(
        "127.0.0.1", "FIRSTWORD_SEGMENTER_HOST", "address of /livez, /readyz and /metrics"
    )
    http_port: int = setting(
        9101, "FIRSTWORD_SEGMENTER_PORT", "its port; 0 picks a free one", minimum=0, maximum=65535
    )
    voice: str = setting("af_heart", "FIRSTWORD_VOICE", "voice of a session that names none")
    lang: str = setting(
        "auto", "FIRSTWORD_LANG", "language of a session that names none; auto goes by script"
    )
    mode: str = setting(
        "safe",
        "FIRSTWORD_SEGMENTER_MODE",
        "safe decides one token after a mark, eager at the mark where nothing speaks against it",
        choices=("safe", "eager"),
    )
    stall_s: float = setting(
        0.25,
        "FIRSTWORD_SEGMENTER_STALL_S",
        "seconds without a token after which a likely sentence end is taken as one, at least 0.05; "
        "0 is never",
        minimum=WAIT_S[0],
        maximum=WAIT_S[1],
        or_zero=True,
    )
    max_chars: int = setting(
        400,
        "FIRSTWORD_SEGMENTER_MAX_CHARS",
        "longest segment in characters; 0 is no limit",
        minimum=0,
    )
    max_wait_s: float = setting(
        0.0,
        "FIRSTWORD_SEGMENTER_MAX_WAIT_S",
        "longest time text may be held, cut at the last clause then, at least 0.05; 0 is no limit",
        minimum=WAIT_S[0],
        maximum=WAIT_S[1],
        or_zero=True,
    )
    min_chars: int = setting(
        0, "FIRSTWORD_SEGMENTER_MIN_CHARS", "shorter segments join the next one", minimum=0
    )
    first_clause: int = setting(
        0,
        "FIRSTWORD_SEGMENTER_FIRST_CLAUSE",
        "least words of a clause that may be a turn's first segment; 0 waits for the sentence",
        minimum=0,
    )
    turn_idle_s: float = setting(
        30.0,
        "FIRSTWORD_TURN_IDLE_S",
        "seconds without input after which a turn is flushed and ended",
        minimum=1,
    )
    resume_wait_s: float = setting(
        1.0,
        "FIRSTWORD_RESUME_WAIT_S",
        "seconds that a turn published again waits for its listeners to say what they have",
        minimum=0.1,
        maximum=10,
    )
    max_queued: int = setting(
        DEFAULT_MAX_QUEUED,
        "FIRSTWORD_MAX_QUEUED_SEGMENTS",
        "segments of a session that may wait to be spoken before its text is refused",
        minimum=1,
    )
    memory_limit_share: float = setting(
        FULL_SHARE,
        "FIRSTWORD_MEMORY_LIMIT_SHARE",
        "share of the server's maxmemory in use from which on new sessions are refused",
        minimum=0.1,
        maximum=1,
    )
    session_ttl_s: int = setting(
        86_400, "FIRSTWORD_SESSION_TTL_S", "seconds a session's state outlives its last use"
    )

    def defaults(self) -> Defaults:
        """What a session gets that does not say otherwise."""
        options = SegmenterOptions(
            lang=self.lang,
            mode="eager" if self.mode == "eager" else "safe",
            stall=self.stall_s,
            max_chars=self.max_chars,
            max_wait=self.max_wait_s,
            min_chars=self.min_chars,
            first_clause=self.first_clause,
        )
        return Defaults(
            voice=self.voice,
            lang=self.lang,
            turn_idle_s=self.turn_idle_s,
            resume_wait_s=self.resume_wait_s,
            max_queued=self.max_queued,
            options=options,
        )
