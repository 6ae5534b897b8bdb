"""Settings of services that a deployment changes: `-c inference_env='BATCH=everything …'`.

Each is checked as the service checks it when it starts, so that a wrong one is told here and not by
containers that do not come up.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstword.errors import SettingsError
from firstword.logs import LEVEL_VARIABLE, LEVELS
from firstword.settings import load, table
from services.agent.settings import AgentSettings
from services.inference.settings import InferenceSettings
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway.settings import GatewaySettings

SHARED = "FIRSTWORD_"
TRACING = re.compile(r"OTEL_[A-Z_]+")
"""OpenTelemetry's own; what they may say is its affair."""
OURS = "what the deployment says itself"


@dataclass(frozen=True, slots=True)
class _Service:
    """`taken`: variables that have a choice of their own, or that the deployment alone knows."""

    settings: type[Any]
    prefix: str
    taken: Mapping[str, str]
    traced: bool = True


_SERVICES: Mapping[str, _Service] = {
    "inference": _Service(
        InferenceSettings,
        "FIRSTWORD_INFERENCE_",
        {
            "FIRSTWORD_INFERENCE_HOST": OURS,
            "FIRSTWORD_INFERENCE_PORT": OURS,
            "FIRSTWORD_INFERENCE_ENGINE": "the choice engine",
        },
        traced=False,  # its network is isolated: it reaches no collector
    ),
    "segmenter": _Service(
        SegmenterSettings,
        "FIRSTWORD_SEGMENTER_",
        {
            "FIRSTWORD_REDIS_URL": OURS,
            "FIRSTWORD_SEGMENTER_HOST": OURS,
            "FIRSTWORD_SEGMENTER_PORT": OURS,
            "FIRSTWORD_PARTITIONS": "the choice partitions",
        },
    ),
    "gateway": _Service(
        GatewaySettings,
        "FIRSTWORD_GATEWAY_",
        {
            "FIRSTWORD_REDIS_URL": OURS,
            "FIRSTWORD_UPSTREAM": OURS,
            "FIRSTWORD_OPENAI_API_KEY": OURS,
            "FIRSTWORD_GATEWAY_HOST": OURS,
            "FIRSTWORD_GATEWAY_PORT": OURS,
            "FIRSTWORD_GATEWAY_MAX_SESSIONS": "the choice gateway_sessions",
        },
    ),
    "agent": _Service(
        AgentSettings,
        "FIRSTWORD_AGENT_",
        {
            "FIRSTWORD_REDIS_URL": OURS,
            "FIRSTWORD_AGENT_HOST": OURS,
            "FIRSTWORD_AGENT_PORT": OURS,
            "FIRSTWORD_AGENT_AGENTCORE_PORT": OURS,
            "FIRSTWORD_AGENT_SOURCE": "the choice agent_source",
            "FIRSTWORD_AGENT_MODEL": "the choice agent_model",
            "FIRSTWORD_AGENT_OPENAI_URL": "the choice agent_openai_url",
            "FIRSTWORD_AGENT_OPENAI_KEY": "the choice agent_openai_secret",
            "FIRSTWORD_API_TOKENS": "the choice tokens_secret",
        },
    ),
}


def as_text(value: Any) -> str:
    """A choice as `-c` has it; an object of cdk.json as `NAME=VALUE` with blanks between."""
    if isinstance(value, Mapping):
        return shlex.join(f"{name}={_plain(each)}" for name, each in value.items())
    return str(value)


def environment(service: str, text: str) -> dict[str, str]:
    """The variables that `text` sets, by their whole names.

    `text` is `NAME=VALUE` with blanks between, quoted as in a shell; the names of the service's
    settings, whole or without what they begin with. Raises SettingsError that names every problem.
    """
    kind = _SERVICES[service]
    known = {name for name, _, _ in table(kind.settings)} | {LEVEL_VARIABLE}
    made: dict[str, str] = {}
    problems: list[str] = []
    try:
        words = shlex.split(text)
    except ValueError:
        raise SettingsError([f"{service}_env: a quotation mark has no other"]) from None
    for word in words:
        said, is_one, value = word.partition("=")
        name = _whole(said, kind, known)
        if not is_one:
            problems.append(f"{service}_env: {word!r} must be NAME=VALUE")
        elif name in kind.taken:
            problems.append(f"{service}_env: {said} is not set here but by {kind.taken[name]}")
        elif name == LEVEL_VARIABLE and value.upper() not in LEVELS:
            problems.append(f"{service}_env: {said}={value!r}: must be one of {', '.join(LEVELS)}")
        elif name:
            made[name] = value
        else:
            problems.append(f"{service}_env: {said} is no setting of it{_meant(said, kind, known)}")
    try:
        load(kind.settings, made)
    except SettingsError as error:
        problems += [f"{service}_env: {problem}" for problem in error.problems]
    if problems:
        raise SettingsError(problems)
    return made


def _plain(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _whole(said: str, kind: _Service, known: set[str]) -> str:
    """The variable that is meant; empty if there is none."""
    if kind.traced and TRACING.fullmatch(said):
        return said
    candidates = (said, f"{kind.prefix}{said}", f"{SHARED}{said}")
    return next((name for name in candidates if name in known), "")


def _meant(said: str, kind: _Service, known: set[str]) -> str:
    short = {
        name.removeprefix(kind.prefix).removeprefix(SHARED) for name in known - set(kind.taken)
    }
    begun = said.upper().removeprefix(kind.prefix).removeprefix(SHARED)
    close = difflib.get_close_matches(begun, short, 1)
    every = ", ".join(sorted(short))
    return f"; did you mean {close[0]}?" if close else f": there are {every}"
