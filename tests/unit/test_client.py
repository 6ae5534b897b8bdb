"""What the client refuses before it needs a server."""

from __future__ import annotations

import pytest

from firstword.client import Firstword
from firstword.errors import DecodeError, FirstwordError


async def test_without_a_server_it_says_how_to_get_one() -> None:
    environ = {"XDG_CACHE_HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent"}
    with pytest.raises(FirstwordError, match="firstword up") as raised:
        async with Firstword(environ=environ):
            pass
    assert raised.value.code == "no_server"


async def test_the_environment_names_the_server() -> None:
    async with Firstword(environ={"FIRSTWORD_REDIS_URL": "redis://127.0.0.1:1"}) as firstword:
        assert firstword.streams.url == "redis://127.0.0.1:1"


async def test_a_url_of_something_else_is_refused_without_its_password() -> None:
    with pytest.raises(FirstwordError) as raised:
        async with Firstword("https://user:secret@example.org"):
            pass
    assert raised.value.code == "bad_url"
    assert "secret" not in raised.value.message


async def test_it_must_be_entered() -> None:
    with pytest.raises(FirstwordError, match="async with"):
        await Firstword("redis://127.0.0.1:1").session().open()


def test_a_session_has_a_valid_name() -> None:
    with pytest.raises(DecodeError, match="session names are"):
        Firstword("redis://127.0.0.1:1").session("with a space")


@pytest.mark.parametrize("turn", ["", "with a space", "ä"])
async def test_a_turn_has_a_valid_name(turn: str) -> None:
    async with Firstword("redis://127.0.0.1:1") as firstword:
        with pytest.raises(DecodeError, match="turn names are"):
            await firstword.session().text("Hello.", turn)


@pytest.mark.parametrize("position", ["", "$", "yesterday", "1-", "-1", "1-2-3", "１-0"])
async def test_a_position_is_an_entry_id(position: str) -> None:
    async with Firstword("redis://127.0.0.1:1") as firstword:
        with pytest.raises(FirstwordError) as raised:
            await firstword.session().listener(position)
    assert raised.value.code == "bad_id"
