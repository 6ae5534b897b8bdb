"""What a backend may do wrong, on each kind of upstream, and what it may cost.

Every accepted segment ends in exactly one of done, error and cancelled, nothing is heard twice, and
the session speaks afterwards. `Ear` fails on whatever breaks the promises of the audio stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from firstword.streams import Streams
from tests.doubles.gateway_rig import SessionHand, gateway, spoken
from tests.doubles.openai_speech import OpenAISpeech, SpeechPeer
from tests.reports.scripted import Peer, Request, ScriptedContainer
from tests.support import eventually

TEXT = "The rain had stopped, and nobody noticed it at first."
AFTER = "Then everybody did."
PCM = spoken(TEXT)
QUICK = {"first_byte_s": 1.0, "between_frames_s": 1.0, "patience_s": 1.0}

# -- a backend that does it wrong for a while, then right -----------------------------------------


@dataclass(frozen=True)
class Fault:
    """What goes wrong with TEXT the first `times`, and how its segment ends."""

    websocket: Callable[[Peer, Request], Awaitable[None]] | None
    openai: Callable[[SpeechPeer], Awaitable[None]] | None
    times: int = 1
    end: str = "done"


async def ws_cut(peer: Peer, request: Request) -> None:
    await peer.speak(request, 0.5)
    peer.abort()


async def ws_silent(peer: Peer, request: Request) -> None:
    await peer.start(request)


async def ws_stalled(peer: Peer, request: Request) -> None:
    await peer.speak(request, 0.5)


async def ws_busy(peer: Peer, request: Request) -> None:
    told = {"code": "busy", "message": "no room", "retryable": True, "retry_after_ms": 1000}
    await peer.control("error", id=request["id"], **told)


async def ws_failed(peer: Peer, request: Request) -> None:
    told = {"code": "engine_failed", "message": "it broke", "retryable": True}
    await peer.control("error", id=request["id"], **told)


async def ws_refused(peer: Peer, request: Request) -> None:
    told = {"code": "unknown_voice", "message": "nobody", "retryable": False}
    await peer.control("error", id=request["id"], **told)


async def ws_empty(peer: Peer, request: Request) -> None:
    await peer.start(request)
    await peer.complete(request, 0)


async def ws_short(peer: Peer, request: Request) -> None:
    await peer.start(request)
    await peer.audio(PCM[:9_600])
    await peer.complete(request, len(PCM) // 2)


async def ws_odd(peer: Peer, request: Request) -> None:
    await peer.start(request)
    await peer.audio(PCM[:9_601])


async def ws_slow(peer: Peer, request: Request) -> None:
    await peer.start(request)
    for at in range(0, len(PCM), 4_800):
        await peer.audio(PCM[at : at + 4_800])
        await asyncio.sleep(0.02)
    await peer.complete(request, len(PCM) // 2)


async def http_cut(peer: SpeechPeer) -> None:
    await peer.send(PCM[: len(PCM) // 2])
    peer.abort()


async def http_silent(peer: SpeechPeer) -> None:
    await peer.closed.wait()


async def http_stalled(peer: SpeechPeer) -> None:
    await peer.send(PCM[: len(PCM) // 2])
    await peer.closed.wait()


def http_status(status: int, **headers: str) -> Callable[[SpeechPeer], Awaitable[None]]:
    async def answer(peer: SpeechPeer) -> None:
        peer.status, peer.headers = status, {"Content-Type": "application/json", **headers}
        await peer.send(b'{"error": {"message": "not now"}}')
        await peer.finish()

    return answer


async def http_empty(peer: SpeechPeer) -> None:
    await peer.finish()


async def http_torn(peer: SpeechPeer) -> None:
    await peer.send(PCM[:9_601])
    await peer.finish()


async def http_odd(peer: SpeechPeer) -> None:
    for at in range(0, len(PCM), 4_801):
        await peer.send(PCM[at : at + 4_801])
        await asyncio.sleep(0)
    await peer.finish()


async def http_slow(peer: SpeechPeer) -> None:
    for at in range(0, len(PCM), 4_800):
        await peer.send(PCM[at : at + 4_800])
        await asyncio.sleep(0.02)
    await peer.finish()


async def http_mp3(peer: SpeechPeer) -> None:
    peer.headers = {"Content-Type": "audio/mpeg"}
    await peer.send(b"\xff\xfb" * 100)
    await peer.finish()


FOR_EVER = 1_000
FAULTS = {
    "cut in the middle": Fault(ws_cut, http_cut),
    "cut each time": Fault(ws_cut, http_cut, FOR_EVER, "upstream_lost"),
    "never answers": Fault(ws_silent, http_silent),
    "stalls in the middle": Fault(ws_stalled, http_stalled),
    "busy": Fault(ws_busy, http_status(429, **{"Retry-After": "1"})),
    "busy for ever": Fault(ws_busy, http_status(429), FOR_EVER, "busy"),
    "fails once": Fault(ws_failed, http_status(500)),
    "fails each time": Fault(ws_failed, http_status(500), FOR_EVER, ""),
    "refuses": Fault(ws_refused, http_status(400), 1, ""),
    "no audio": Fault(ws_empty, http_empty),
    "no audio each time": Fault(ws_empty, http_empty, FOR_EVER, "no_audio"),
    "less than it says": Fault(ws_short, None),
    "ends in half a sample": Fault(ws_odd, http_torn),
    "cut at odd bytes": Fault(None, http_odd),
    "another format": Fault(None, http_mp3, 1, "unsupported_audio"),
    "slow": Fault(ws_slow, http_slow),
}
CASES = [
    pytest.param(kind, fault, id=f"{kind}: {name}")
    for name, fault in FAULTS.items()
    for kind in ("websocket", "openai")
    if getattr(fault, kind) is not None
]


class Backend:
    """A backend of a kind that speaks, except as the fault says."""

    def __init__(self, kind: str, fault: Fault) -> None:
        self.asked = 0
        self._fault = fault
        self._server: ScriptedContainer | OpenAISpeech
        if kind == "websocket":
            self._server = ScriptedContainer(self._answer)
        else:
            self._server = OpenAISpeech(self._speak)

    @property
    def url(self) -> str:
        return self._server.url

    async def __aenter__(self) -> Backend:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__(None, None, None)

    def _is_wrong(self, text: str) -> bool:
        self.asked += text == TEXT
        return text == TEXT and self.asked <= self._fault.times

    async def _answer(self, peer: Peer, request: Request) -> None:
        if self._fault.websocket is not None and self._is_wrong(request["text"]):
            await self._fault.websocket(peer, request)
        else:
            await peer.speak(request)

    async def _speak(self, peer: SpeechPeer) -> None:
        text = peer.body["input"]
        if self._fault.openai is not None and self._is_wrong(text):
            await self._fault.openai(peer)
        else:
            await peer.send(spoken(text))
            await peer.finish()


@pytest.fixture
async def hand(redis_url: str) -> AsyncIterator[SessionHand]:
    streams = Streams(redis_url)
    yield SessionHand(streams)
    await streams.close()


async def over(hand: SessionHand, turn: str) -> None:
    async def ended() -> bool:
        return turn in (await hand.hear()).turn_ends

    await eventually(ended, f"turn {turn} is over", timeout=30)


@pytest.mark.parametrize(("kind", "fault"), CASES)
async def test_a_fault_costs_at_most_its_own_segment(
    redis_url: str, hand: SessionHand, kind: str, fault: Fault
) -> None:
    async with Backend(kind, fault) as backend, gateway(redis_url, backend.url, **QUICK):
        await hand.say("a", AFTER, TEXT, AFTER)
        await over(hand, "a")
        await hand.say("b", AFTER)
        await over(hand, "b")
        ear = await hand.hear()
    others = {n: ear.segments[n] for n in (1, 3, 4)}
    assert others == dict.fromkeys((1, 3, 4), spoken(AFTER))
    assert {n: ear.ends[n] for n in (1, 3, 4)} == dict.fromkeys((1, 3, 4), "done")
    if fault.end == "done":
        assert ear.ends[2] == "done"
        assert ear.segments[2] == PCM, "whole, in order, once"
    else:
        assert ear.ends[2] == fault.end if fault.end else ear.ends[2] != "done"


@pytest.mark.parametrize("kind", ["websocket", "openai"])
@pytest.mark.parametrize("stalls", [False, True])
async def test_a_cancel_in_the_middle_ends_the_segment_as_cancelled(
    redis_url: str, hand: SessionHand, kind: str, stalls: bool
) -> None:
    """Whether the backend goes on speaking or hangs: the receipt is its one end."""
    fault = Fault(ws_stalled, http_stalled) if stalls else Fault(ws_slow, http_slow)
    async with Backend(kind, fault) as backend, gateway(redis_url, backend.url, **QUICK):
        await hand.say("a", TEXT, AFTER)

        async def audible() -> bool:
            return bool((await hand.hear()).segments.get(1))

        await eventually(audible, "audio of the first segment")
        await hand.cancel("a")
        await hand.say("b", AFTER)
        await over(hand, "b")
        ear = await hand.hear()
    assert 1 not in ear.ends and 2 not in ear.ends, "cancelled with their turn, and only so"
    assert PCM.startswith(bytes(ear.segments[1]))
    assert ear.segments[3] == spoken(AFTER)
    assert ear.ends[3] == "done"
