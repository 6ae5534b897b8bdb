"""Settings of the agent service."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.settings import setting
from services.agent.core import Limits
from services.agent.memory import MemoryLimits
from services.agent.talk import MakeSource, Talks

SOURCES = ("scripted", "openai", "bedrock", "strands")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Read with `firstword.settings.load`."""

    redis_url: str = setting(
        "redis://127.0.0.1:6379", "FIRSTWORD_REDIS_URL", "server that carries the streams"
    )
    http_host: str = setting(
        "127.0.0.1", "FIRSTWORD_AGENT_HOST", "address that callers connect to; no door is locked"
    )
    http_port: int = setting(
        8000, "FIRSTWORD_AGENT_PORT", "its port; 0 picks a free one", minimum=0, maximum=65535
    )
    source: str = setting(
        "scripted",
        "FIRSTWORD_AGENT_SOURCE",
        "who answers prompts: scripted, openai, bedrock or strands",
        choices=SOURCES,
    )
    tokens_per_second: float = setting(
        30.0,
        "FIRSTWORD_AGENT_TOKENS_PER_SECOND",
        "pace of the scripted token source where a caller names none; 0 is as fast as it can",
        minimum=0,
        maximum=100_000,
    )
    max_text_chars: int = setting(
        20_000, "FIRSTWORD_AGENT_MAX_TEXT_CHARS", "longest text or prompt of one turn", minimum=1
    )
    max_turns: int = setting(
        16,
        "FIRSTWORD_AGENT_MAX_TURNS",
        "turns that one caller may have waiting or speaking at once",
        minimum=1,
    )
    patience_s: float = setting(
        60.0,
        "FIRSTWORD_AGENT_PATIENCE_S",
        "seconds without any event after which a turn that is written counts as lost",
        minimum=0.1,
    )

    memory_messages: int = setting(
        40,
        "FIRSTWORD_AGENT_MEMORY_MESSAGES",
        "messages of a session, of both sides, that the model is told",
        minimum=1,
    )
    memory_chars: int = setting(
        40_000, "FIRSTWORD_AGENT_MEMORY_CHARS", "and their characters together", minimum=1
    )
    memory_sessions: int = setting(
        1_000, "FIRSTWORD_AGENT_MEMORY_SESSIONS", "sessions that are remembered", minimum=1
    )
    source_patience_s: float = setting(
        30.0,
        "FIRSTWORD_AGENT_SOURCE_PATIENCE_S",
        "seconds in which a model must write something, first or next",
        minimum=0.1,
    )

    def limits(self) -> Limits:
        """What requests are held to."""
        return Limits(self.max_text_chars, self.tokens_per_second)

    def talks(self, make_source: MakeSource) -> Talks:
        """The sessions' talks, with the sources that `make_source` makes."""
        limits = MemoryLimits(self.memory_messages, self.memory_chars)
        patience_s = None if self.source == "scripted" else self.source_patience_s
        return Talks(make_source, limits, self.memory_sessions, patience_s)
