"""Which token source the settings name; each real one is imported only where it is used."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from firstword.errors import SettingsError
from services.agent.scripted import ScriptedSource, replies_of
from services.agent.settings import AgentSettings
from services.agent.source import TokenSource
from services.agent.talk import MakeSource


@asynccontextmanager
async def chosen(settings: AgentSettings) -> AsyncIterator[MakeSource]:
    """While inside, a function that makes a session's token source, for this event loop.

    Raises SettingsError if what the source needs is missing.
    """
    match settings.source:
        case "openai":
            from services.agent import openai

            server = openai.ChatServer(
                url=settings.openai_url,
                key=settings.openai_key,
                model=settings.model,
                system_prompt=settings.system_prompt,
                max_tokens=settings.max_tokens,
            )
            async with openai.client() as http:
                source = openai.OpenAISource(http, server)
                yield lambda: source
        case "bedrock":
            yield await asyncio.to_thread(_bedrock, settings)
        case "strands":
            yield await asyncio.to_thread(_strands, settings)
        case _:
            replies = await asyncio.to_thread(_replies, settings.script)
            yield lambda: ScriptedSource(replies)


def _replies(path: str) -> list[str]:
    if not path:
        return []
    try:
        replies = replies_of(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _wrong("SCRIPT", path, f"cannot be read ({type(error).__name__})") from error
    if not replies:
        raise _wrong("SCRIPT", path, "holds no reply: write one a paragraph")
    return replies


def _bedrock(settings: AgentSettings) -> MakeSource:
    try:
        from services.agent.bedrock import BedrockModel, BedrockSource
    except ImportError as error:
        raise _missing("bedrock", error) from error
    source: TokenSource = BedrockSource(
        BedrockModel(
            model=_model_of(settings),
            region=settings.region,
            system_prompt=settings.system_prompt,
            max_tokens=settings.max_tokens,
            patience_s=settings.source_patience_s,
        )
    )
    return lambda: source


def _strands(settings: AgentSettings) -> MakeSource:
    try:
        from services.agent.strands import StrandsSource, bedrock_agent
    except ImportError as error:
        raise _missing("strands", error) from error
    if settings.strands_agent:
        make = _named(settings.strands_agent)
    else:
        make = bedrock_agent(
            _model_of(settings), settings.region, settings.system_prompt, settings.max_tokens
        )
    return lambda: StrandsSource(make)


def _named(place: str) -> Callable[[], Any]:
    """The function that `module:function` names."""
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _wrong("STRANDS", place, f"names nothing that can be imported: {error}") from error
    if not callable(found):
        raise _wrong("STRANDS", place, "must name a function that makes a Strands agent")
    return found  # type: ignore[no-any-return]


def _model_of(settings: AgentSettings) -> str:
    if not settings.model:
        raise _wrong("MODEL", "", f"source {settings.source} needs a Bedrock model's id")
    return settings.model


def _missing(source: str, error: ImportError) -> SettingsError:
    why = f"needs pip install 'firstword[{source}]' ({error.name} is not there)"
    return _wrong("SOURCE", source, why)


def _wrong(variable: str, value: str, why: str) -> SettingsError:
    return SettingsError([f"FIRSTWORD_AGENT_{variable}={value!r}: {why}"])
