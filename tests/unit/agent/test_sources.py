"""Which token source the settings mean, and what is said where it cannot be."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from firstword.errors import SettingsError
from services.agent.openai import OpenAISource
from services.agent.scripted import ScriptedSource
from services.agent.settings import AgentSettings
from services.agent.source import Ask, TokenSource
from services.agent.sources import chosen

models = pytest.mark.skipif(
    find_spec("boto3") is None or find_spec("strands") is None,
    reason="the extras `bedrock` and `strands` are not installed",
)


async def source_of(**settings: Any) -> TokenSource:
    async with chosen(AgentSettings(**settings)) as make:
        return make()


async def refused(**settings: Any) -> str:
    with pytest.raises(SettingsError) as told:
        await source_of(**settings)
    (problem,) = told.value.problems
    return problem


async def test_without_a_setting_it_repeats_what_it_is_asked() -> None:
    source = await source_of()
    ask = Ask(text="Say this.", session="s", turn="t")
    assert "".join([piece async for piece in source.stream(ask)]) == "Say this."


async def test_a_script_is_read_and_each_session_begins_it(tmp_path: Path) -> None:
    script = tmp_path / "replies.txt"
    script.write_text("Grüße!\n\nBye.\n", encoding="utf-8")
    ask = Ask(text="Hello?", session="s", turn="t")
    async with chosen(AgentSettings(script=str(script))) as make:
        for source in (make(), make()):
            assert "".join([piece async for piece in source.stream(ask)]) == "Grüße!"


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read"), (b"\xff", "cannot be"), (b"\n \n", "no reply")]
)
async def test_a_script_that_is_none(tmp_path: Path, content: bytes | None, words: str) -> None:
    script = tmp_path / "replies.txt"
    if content is not None:
        script.write_bytes(content)
    problem = await refused(script=str(script))
    assert problem.startswith(f"FIRSTWORD_AGENT_SCRIPT={str(script)!r}: ")
    assert words in problem


async def test_a_chat_server_s_connections_are_shared_and_closed() -> None:
    async with chosen(AgentSettings(source="openai")) as make:
        source = make()
        assert isinstance(source, OpenAISource)
        assert make() is source
        http = source._http
    assert http.closed


@models
async def test_bedrock_s_client_is_shared() -> None:
    async with chosen(AgentSettings(source="bedrock", model="m")) as make:
        assert type(make()).__name__ == "BedrockSource"
        assert make() is make()


@models
async def test_each_session_has_a_strands_agent_of_its_own() -> None:
    named = AgentSettings(source="strands", strands_agent="tests.doubles.strands_model:make")
    async with chosen(named) as make:
        assert type(make()).__name__ == "StrandsSource"
        assert make() is not make()
    assert type(await source_of(source="strands", model="m")).__name__ == "StrandsSource"


@models
@pytest.mark.parametrize("source", ["bedrock", "strands"])
async def test_bedrock_needs_a_model(source: str) -> None:
    assert "FIRSTWORD_AGENT_MODEL=''" in await refused(source=source)


@pytest.mark.parametrize("source", ["bedrock", "strands"])
async def test_an_extra_that_is_missing_is_named(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"services.agent.{source}", None)
    assert f"pip install 'firstword[{source}]'" in await refused(source=source, model="m")


@models
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("tests.nowhere:make", "nothing that can be imported"),
        ("tests.support:nothing", "nothing that can be imported"),
        ("tests.support", "nothing that can be imported"),
        (":make", "nothing that can be imported"),
        ("tests.support:__name__", "makes a Strands agent"),
    ],
)
async def test_an_agent_that_is_named_wrongly(place: str, words: str) -> None:
    problem = await refused(source="strands", strands_agent=place)
    assert problem.startswith(f"FIRSTWORD_AGENT_STRANDS={place!r}: ")
    assert words in problem


async def test_a_scripted_source_is_made_for_each_session() -> None:
    async with chosen(AgentSettings()) as make:
        assert isinstance(make(), ScriptedSource)
        assert make() is not make()
