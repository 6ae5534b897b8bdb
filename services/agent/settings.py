"""Settings of the agent service."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.redis_client import check_url_if_given
from firstword.server_errors import without_password
from firstword.settings import setting
from services.agent.core import Limits
from services.agent.memory import MemoryLimits
from services.agent.talk import MakeSource, Talks

SOURCES = ("scripted", "openai", "bedrock", "strands")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Read with `firstword.settings.load`."""

    redis_url: str = setting(
        "redis://127.0.0.1:6379",
        "FIRSTWORD_REDIS_URL",
        "server that carries the streams",
        check=check_url_if_given,
        shown=without_password,
    )
    http_host: str = setting(
        "127.0.0.1",
        "FIRSTWORD_AGENT_HOST",
        "address that callers connect to; others than this machine's need tokens",
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
    model: str = setting(
        "",
        "FIRSTWORD_AGENT_MODEL",
        "model that answers: its name at the chat server, or its id at Bedrock",
    )
    system_prompt: str = setting(
        "You are heard, not read: answer in a few plain spoken sentences, without lists, headings, "
        "links or markup.",
        "FIRSTWORD_AGENT_SYSTEM_PROMPT",
        "what the model is told first; empty: nothing",
    )
    max_tokens: int = setting(
        1024,
        "FIRSTWORD_AGENT_MAX_TOKENS",
        "longest answer, reasoning included; 0 leaves it to the model",
        minimum=0,
    )
    openai_url: str = setting(
        "http://127.0.0.1:8080/v1",
        "FIRSTWORD_AGENT_OPENAI_URL",
        "server of source openai, up to before /chat/completions",
    )
    openai_key: str = setting("", "FIRSTWORD_AGENT_OPENAI_KEY", "its key; empty: none is sent")
    region: str = setting(
        "", "FIRSTWORD_AGENT_REGION", "AWS region of Bedrock; empty: as AWS's tools find it"
    )
    strands_agent: str = setting(
        "",
        "FIRSTWORD_AGENT_STRANDS",
        "module:function that makes a Strands agent, once a session; empty: one without tools on "
        "Bedrock",
    )
    agentcore_port: int = setting(
        8080,
        "FIRSTWORD_AGENT_AGENTCORE_PORT",
        "port of services.agent.agentcore; the managed runtime wants 8080",
        minimum=1,
        maximum=65535,
    )
    script: str = setting(
        "",
        "FIRSTWORD_AGENT_SCRIPT",
        "file of the scripted source: a reply a paragraph, round and round; empty: it repeats the "
        "prompt",
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

    api_tokens: str = setting(
        "",
        "FIRSTWORD_API_TOKENS",
        "who may come in: name:sha256hex, several with commas between (`firstword token NAME`)",
    )
    cors_origins: str = setting(
        "",
        "FIRSTWORD_AGENT_CORS_ORIGINS",
        "pages of other sites that may ask: https://app.example, several with commas between",
    )
    max_sessions: int = setting(
        100, "FIRSTWORD_AGENT_MAX_SESSIONS", "sessions of one token at once; 0: any", minimum=0
    )
    max_chars_per_minute: int = setting(
        60_000,
        "FIRSTWORD_AGENT_MAX_CHARS_PER_MINUTE",
        "characters that one token may have spoken a minute; 0: any",
        minimum=0,
    )
    resume_s: float = setting(
        20.0,
        "FIRSTWORD_AGENT_RESUME_S",
        "seconds in which a WebSocket caller whose line broke may come back to its turns; 0: none",
        minimum=0,
    )
    stall_s: float = setting(
        20.0,
        "FIRSTWORD_AGENT_STALL_S",
        "seconds after which a listener who takes nothing is cut off",
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
