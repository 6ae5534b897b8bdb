"""Every FIRSTWORD_… variable that something reads, to tell one that nothing does. Pure.

A misspelt name is no error by itself: the setting that was meant keeps its default without a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

PREFIX: Final = "FIRSTWORD_"

READ: Final = frozenset(
    PREFIX + name
    for name in """
    AGENT_AGENTCORE_PORT AGENT_CORS_ORIGINS AGENT_HOST AGENT_MAX_CHARS_PER_MINUTE
    AGENT_MAX_SESSIONS AGENT_MAX_TEXT_CHARS AGENT_MAX_TOKENS AGENT_MAX_TURNS AGENT_MEMORY_CHARS
    AGENT_MEMORY_MESSAGES AGENT_MEMORY_SESSIONS AGENT_MODEL AGENT_OPENAI_KEY AGENT_OPENAI_URL
    AGENT_PATIENCE_S AGENT_PORT AGENT_REGION AGENT_RESUME_S AGENT_SCRIPT AGENT_SOURCE
    AGENT_SOURCE_PATIENCE_S AGENT_STALL_S AGENT_STRANDS AGENT_SYSTEM_PROMPT
    AGENT_TOKENS_PER_SECOND API_TOKENS AUDIO_RETENTION_BYTES AUDIO_RETENTION_S EMULATOR_CA
    EMULATOR_CONTAINER EMULATOR_PORT GATEWAY_HOST GATEWAY_MAX_SESSIONS GATEWAY_PORT
    INFERENCE_BATCH INFERENCE_DEVICE INFERENCE_DRAIN_S INFERENCE_ENGINE
    INFERENCE_FIRST_CHUNK_WORDS INFERENCE_HANG_S INFERENCE_HOST INFERENCE_LEXICON
    INFERENCE_MAX_BATCH INFERENCE_MAX_QUEUED INFERENCE_MAX_TEXT_CHARS INFERENCE_MAX_WAITING
    INFERENCE_MAX_WAIT_S INFERENCE_PORT INFERENCE_PRECISION INFERENCE_SEND_TIMEOUT_S
    INFERENCE_THREADS INFERENCE_VOICE INFERENCE_WORKERS LANG LOG_LEVEL MAX_AHEAD_S
    MAX_QUEUED_SEGMENTS MEMORY_LIMIT_SHARE MODEL_DIR OPENAI_API_KEY PARTITIONS REDIS_URL
    RESUME_WAIT_S SEGMENTER_FIRST_CLAUSE SEGMENTER_HOST SEGMENTER_MAX_CHARS SEGMENTER_MAX_WAIT_S
    SEGMENTER_MIN_CHARS SEGMENTER_MODE SEGMENTER_PORT SEGMENTER_STALL_S SESSION_IDLE_S
    SESSION_TTL_S TURN_IDLE_S UPSTREAM UPSTREAM_ATTEMPTS UPSTREAM_BETWEEN_FRAMES_S
    UPSTREAM_FIRST_BYTE_S UPSTREAM_PATIENCE_S UPSTREAM_PING_S VOICE
    """.split()
)
"""By a service, the library or a command."""

DEPLOYED: Final = frozenset(
    PREFIX + name
    for name in """
    EXTRAS FLAVOUR LICENCES REDIS_MEMORY REDIS_PORT SERVICE TRACES_URL WEIGHTS
    """.split()
)
"""By the images and deploy/compose.yaml alone: a shell may hold them for that."""

KNOWN: Final = READ | DEPLOYED


def unknown(names: Iterable[str]) -> list[tuple[str, str | None]]:
    """Of these names, in their order, those with our prefix that nothing reads, each with the known
    one that is most like it; None where none is."""
    found = []
    for name in sorted(names):
        if name.startswith(PREFIX) and name not in KNOWN:
            near = get_close_matches(name, sorted(READ), n=1, cutoff=0.8)
            found.append((name, near[0] if near else None))
    return found


def told(name: str, near: str | None) -> str:
    """That in words."""
    return f"nothing reads {name}" + (f": {near}?" if near else "")
