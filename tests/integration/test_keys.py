"""No key stays behind: each is of the deployment, or a living worker's, or expires.

And every script declares the keys it touches, as clusters and serverless servers demand.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator

import pytest

from firstword import keys, streams
from firstword import messages as m
from firstword.client import Firstword, Listener
from firstword.streams import Streams
from services.segmenter import reader
from services.segmenter.service import SegmenterService
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway.service import GatewayService
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.websocket import WebSocketUpstream
from tests.e2e.stack import Stack
from tests.support import eventually

pytestmark = pytest.mark.streams

PERMANENT = re.compile(
    r"fw:(config|dead|text|text:\{\d+\}|text:\{\d+\}:state|\{fw:text\}:state"
    r"|\{ctl:(segmenter|gateway)\}:(workers|draining|owned|owners|arrivals))"
)
"""Keys of the deployment, told in docs/REDIS.md. Their number is fixed, their size bounded."""

SHORT_S = 0.2


class HastyStack(Stack):
    """Sessions are idle and forgotten at once."""

    async def start_segmenter(self) -> None:
        settings = SegmenterSettings(redis_url=self.redis_url, http_port=0, turn_idle_s=1.0)
        self._run(SegmenterService(settings))

    async def start_gateway(self) -> None:
        settings = GatewaySettings(
            redis_url=self.redis_url, http_port=0, idle_s=SHORT_S, retention_s=SHORT_S
        )
        self._run(GatewayService(settings, WebSocketUpstream(self.upstream_url)))

    def _run(self, service: SegmenterService | GatewayService) -> None:
        self._services.append(asyncio.create_task(service.run(self._stop)))


@pytest.fixture
async def stack(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HastyStack]:
    monkeypatch.setattr(reader, "KEEP_HELD_S", SHORT_S)
    async with HastyStack(redis_url) as running:
        yield running


async def left_behind(connection: Streams) -> list[str]:
    """Keys that nobody would ever remove."""
    commands = connection.commands
    found = []
    async for key in commands.scan_iter(count=1000):
        name = key.decode()
        if not PERMANENT.fullmatch(name) and await commands.ttl(key) == -1:
            found.append(name)
    return found


async def all_is_left(connection: Streams) -> bool:
    """No session has an owner or waits for one, and no key would stay."""
    units = await connection.commands.hkeys(keys.owners("gateway"))
    waiting = await connection.commands.zcard(keys.free("gateway"))
    assert (units, waiting) == ([], 0)
    assert await left_behind(connection) == []
    return True


async def heard(events: Listener, kind: type[m.Audio]) -> None:
    async for event in events:
        if isinstance(event.message, kind):
            return
    raise AssertionError(f"no {kind.__name__} came")


# -- what sessions leave --------------------------------------------------------------------------


async def spoken(firstword: Firstword, name: str) -> None:
    async with firstword.session(name) as session:
        events = await session.listener()
        await session.text("Spoken and left. It", "t")
        await heard(events, m.SegmentDone)
        await session.text(" goes on while a gateway has it.", "t")
        await session.end("t")
        await heard(events, m.TurnDone)


async def closed(firstword: Firstword, name: str) -> None:
    async with firstword.session(name) as session:
        events = await session.listener()
        await session.say("Spoken and closed.")
        await session.close()
        await heard(events, m.Closed)


async def spoken_to_after_its_close(firstword: Firstword, name: str) -> None:
    await closed(firstword, name)
    await firstword.session(name).cancel()


async def cancelled(firstword: Firstword, name: str) -> None:
    async with firstword.session(name) as session:
        turn = await session.say("This is hardly heard. " * 20)
        await session.cancel(turn)


async def cancelled_before_it_began(firstword: Firstword, name: str) -> None:
    await firstword.session(name).cancel("never")


async def opened(firstword: Firstword, name: str) -> None:
    await firstword.session(name).open()


async def refused(firstword: Firstword, name: str) -> None:
    session = firstword.session(name, sample_rate=7)
    events = await session.listener("0-0")
    await session.open()
    await heard(events, m.ErrorEvent)


async def abandoned(firstword: Firstword, name: str) -> None:
    session = firstword.session(name)
    events = await session.listener()
    await session.text("Said and never ended", "t")
    await heard(events, m.TurnDone)


async def spoilt(firstword: Firstword, name: str) -> None:
    """An entry that names the session and cannot be read."""
    events = await firstword.session(name).listener("0-0")
    await firstword.streams.append(keys.DOOR, {"session": name, "text": "x", "seq": "y"})
    await heard(events, m.ErrorEvent)


async def closed_and_never_opened(firstword: Firstword, name: str) -> None:
    await firstword.session(name).close()


async def told_in_vain(firstword: Firstword, name: str) -> None:
    """A flush, an end and a resume of nothing."""
    session = firstword.session(name)
    await session.flush("t")
    resume = m.Resume(session=name, turn="t", start=0, samples=0)
    await firstword.streams.publish(resume, await firstword.partitions())


LIVES = (
    spoken,
    closed,
    spoken_to_after_its_close,
    cancelled,
    cancelled_before_it_began,
    opened,
    refused,
    abandoned,
    spoilt,
    closed_and_never_opened,
    told_in_vain,
)


async def test_sessions_of_every_kind_leave_nothing_behind(stack: HastyStack) -> None:
    connection = stack.firstword.streams
    await asyncio.gather(*(live(stack.firstword, live.__name__) for live in LIVES))
    await eventually(lambda: all_is_left(connection), "nothing is left without an end", 20)


async def test_workers_that_stop_leave_nothing_behind(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they held in that moment is let go by those who come after them."""
    async with Stack(redis_url) as stack:
        await asyncio.gather(*(live(stack.firstword, live.__name__) for live in LIVES[:6]))
    monkeypatch.setattr(reader, "KEEP_HELD_S", SHORT_S)
    async with HastyStack(redis_url) as stack:
        connection = stack.firstword.streams
        await eventually(lambda: all_is_left(connection), "nothing is left without an end", 20)


async def test_what_is_told_to_a_session_without_a_gateway_expires(redis_url: str) -> None:
    connection = Streams(redis_url)
    event = m.ErrorEvent(code="x", message="y", retryable=False)
    await connection.tell("demo", event)
    assert await left_behind(connection) == []
    await connection.acquire([keys.speech_state("demo"), keys.audio("demo")], "token", "w1")
    await connection.tell("demo", event)
    assert len(await left_behind(connection)) == 2, "its owner sees to that"
    await connection.close()


async def test_a_user_of_these_keys_alone_is_enough(redis_url: str) -> None:
    admin = Streams(redis_url)
    await admin.commands.execute_command(
        "ACL SETUSER", "speaker", "reset", "on", ">word", "~fw:*", "+@all", "-@admin", "+cluster"
    )
    try:
        async with Stack(redis_url.replace("redis://", "redis://speaker:word@")) as stack:
            await asyncio.gather(*(live(stack.firstword, live.__name__) for live in LIVES[:4]))
            await spoilt(stack.firstword, "spoilt")
    finally:
        await admin.commands.execute_command("ACL DELUSER", "speaker")
        await admin.close()


# -- what scripts touch ---------------------------------------------------------------------------

SPY = """
local declared, real = {}, redis
for _, key in ipairs(KEYS) do declared[key] = true end
local redis = setmetatable({call = function(name, ...)
  local key = ...
  if name ~= 'TIME' and not declared[key] then
    error('undeclared key ' .. tostring(key) .. ' of ' .. name)
  end
  return real.call(name, ...)
end}, {__index = real})
"""


async def test_scripts_declare_every_key(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[str] = set()
    spied = {name: SPY + script for name, script in streams._SCRIPTS.items()}
    hashes = {name: hashlib.sha1(script.encode()).hexdigest() for name, script in spied.items()}
    monkeypatch.setattr(streams, "_SCRIPTS", spied)
    monkeypatch.setattr(streams, "_HASHES", hashes)
    monkeypatch.setattr(reader, "KEEP_HELD_S", SHORT_S)
    plain = streams._run

    async def noted(client: object, name: str, *args: object) -> object:
        ran.add(name)
        return await plain(client, name, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(streams, "_run", noted)
    async with HastyStack(redis_url) as stack:
        await asyncio.gather(*(live(stack.firstword, live.__name__) for live in LIVES))
        await eventually(lambda: all_ran(ran, set(spied)), "every script runs")


def all_ran(ran: set[str], wanted: set[str]) -> bool:
    assert ran == wanted
    return True


async def test_an_undeclared_key_would_be_found(redis_url: str) -> None:
    connection = Streams(redis_url)
    with pytest.raises(Exception, match="undeclared key other of GET"):
        await connection.commands.eval(SPY + "return redis.call('GET', 'other')", 1, "declared")
    await connection.close()
