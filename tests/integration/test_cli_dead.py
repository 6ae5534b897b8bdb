"""`firstword dead`: what nobody could use, listed, shown and replayed."""

from __future__ import annotations

import asyncio
import json

import pytest
import redis

from firstword import codec, dead, keys
from firstword import messages as m
from firstword.cli import main
from firstword.errors import FirstwordError
from firstword.ids import START
from firstword.streams import DEAD_BYTES, Entry, Streams

pytestmark = pytest.mark.streams

GOOD = {b"session": b"demo", b"text": b"A secret.", b"end": b"1"}
POISON = {b"session": b"demo", b"m": b"\xc1 secret"}
SOURCE = keys.ingress(3)
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_use(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTWORD_REDIS_URL", redis_url)


async def bury(streams: Streams, fields: dict[bytes, bytes], source: str = SOURCE) -> str:
    """Make an entry a dead letter; returns its id there."""
    await streams.dead_letter(source, Entry("7-1", fields), "a_reason")
    return await streams.last_id(keys.DEAD)


def buried(url: str, fields: dict[bytes, bytes], source: str = SOURCE) -> str:
    """`bury` for tests of the command, which wants the main thread and a loop of its own."""

    async def connected() -> str:
        streams = Streams(url)
        try:
            return await bury(streams, fields, source)
        finally:
            await streams.close()

    return asyncio.run(connected())


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    status = main(["dead", *words])
    out, err = capsys.readouterr()
    return status, out, err


# -- the command ----------------------------------------------------------------------------------


def test_nothing_is_said_in_a_word(capsys: Capture) -> None:
    assert run(capsys, "list") == (0, "", "No dead letters.\n")


def test_a_list_tells_why_and_where_and_never_what(redis_url: str, capsys: Capture) -> None:
    ids = [buried(redis_url, GOOD), buried(redis_url, POISON, "fw:text")]
    status, out, _err = run(capsys, "list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ids
    assert "a_reason" in out
    assert "fw:text:{3} 7-1, 28 bytes" in out
    assert "secret" not in out
    _status, out, _err = run(capsys, "list", "--json", "--limit", "1")
    about = json.loads(out)
    assert (about["id"], about["source"], about["entry"]) == (ids[1], "fw:text", "7-1")
    assert "secret" not in out


def test_one_is_shown_whole(redis_url: str, capsys: Capture) -> None:
    letter = buried(redis_url, GOOD)
    _status, out, _err = run(capsys, "show", letter)
    shown = json.loads(out)
    assert shown["fields"] == {"session": "demo", "text": "A secret.", "end": "1"}
    assert [message["type"] for message in shown["messages"]] == ["text", "end"]
    poison = buried(redis_url, POISON)
    _status, out, _err = run(capsys, "show", poison)
    shown = json.loads(out)
    assert shown["fields"]["m"] == "\\xc1 secret"
    assert shown["problem"] == "field m must be a msgpack map"


def test_a_replayed_one_is_on_its_stream_again_and_gone_here(
    redis_url: str, capsys: Capture
) -> None:
    letter = buried(redis_url, {**GOOD, b"src": b"5-5"})
    status, out, _err = run(capsys, "replay", letter)
    assert status == 0
    with redis.Redis.from_url(redis_url) as link:
        assert link.xrange(SOURCE) == [(out.strip().encode(), GOOD)]
        assert link.xlen(keys.DEAD) == 0


@pytest.mark.parametrize("verb", ["show", "replay"])
@pytest.mark.parametrize("letter", ["1-1", "nonsense"])
def test_an_unknown_id_is_told(capsys: Capture, verb: str, letter: str) -> None:
    status, out, err = run(capsys, verb, letter)
    assert (status, out) == (1, "")
    assert f"there is no dead letter {letter}" in err


@pytest.mark.parametrize("words", [[], ["list", "--limit", "0"], ["list", "--limit", "x"]])
def test_wrong_usage_is_status_2(capsys: Capture, words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["dead", *words])
    assert raised.value.code == 2


def test_a_server_that_is_not_there_is_told(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTWORD_REDIS_URL", "redis://127.0.0.1:1")
    monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0)
    for words in (["list"], ["show", "1-1"], ["replay", "1-1"]):
        status, _out, err = run(capsys, *words)
        assert status == 1
        assert "no Redis server answers" in err


# -- what is not replayed -------------------------------------------------------------------------


UNKNOWN = codec.pack(m.Close(session="demo"), "demo").replace(b"close", b"clear")
SEGMENT = codec.pack(m.Revoke(turn="t", n=1), "demo")


@pytest.mark.parametrize(
    ("fields", "source", "code"),
    [
        (POISON, SOURCE, "still_dead"),
        ({b"m": UNKNOWN}, SOURCE, "still_dead"),
        ({b"m": SEGMENT}, keys.segments("demo"), "not_replayable"),
        ({b"session": b"demo", b"text": b"x" * DEAD_BYTES}, SOURCE, "not_whole"),
    ],
)
async def test_what_cannot_be_spoken_in_order_stays(
    streams: Streams, fields: dict[bytes, bytes], source: str, code: str
) -> None:
    letter = await bury(streams, fields, source)
    with pytest.raises(FirstwordError) as raised:
        await dead.replay(streams, letter)
    assert raised.value.code == code
    assert await streams.last_id(source) == START
    assert [entry.id for entry in await streams.range(keys.DEAD, START)] == [letter]


async def test_segments_are_read_as_such(streams: Streams) -> None:
    segments = keys.segments("demo")
    letter = await dead.find(streams, await bury(streams, {b"m": SEGMENT}, segments))
    assert letter.messages() == [m.Revoke(turn="t", n=1)]
    letter = await dead.find(streams, await bury(streams, {b"m": UNKNOWN}, segments))
    assert letter.messages() == []


async def test_of_a_giant_only_the_beginning_is_kept(streams: Streams) -> None:
    giant = {b"session": b"demo", b"text": b"x" * 1_000_000, b"end": b"1"}
    letter = await dead.find(streams, await bury(streams, giant))
    assert letter.size == 1_000_000 + len(b"sessiondemotextend1")
    assert sum(len(name) + len(value) for name, value in letter.fields.items()) == DEAD_BYTES
