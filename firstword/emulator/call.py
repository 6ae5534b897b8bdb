"""One invocation: a client's stream joined to the container's WebSocket until either ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime

from firstword.emulator.bridge import (
    ToClient,
    ToContainer,
    model_stream_error,
    stream_failure,
)
from firstword.emulator.container import Closed, Container
from firstword.emulator.eventstream import Decoder, Message, decode, encode
from firstword.emulator.faults import Kind, StreamFaults
from firstword.emulator.http2 import ClientGone, Stream
from firstword.emulator.settings import Settings
from firstword.emulator.signatures import EventChain
from firstword.errors import DecodeError, FirstwordError

CLOSE_TIMEOUT_S = 10.0
REQUEST_END_S = 1.0
"""A client that said its last event ends its request next. Were the response over first, the
official client would fail to end what is ended, and print so."""
_LAST_EVENT_TIMEOUT_S = 2.0
_ANSWERS = (1000, 1005, 1006)  # to our own close: its echo, one without a code, none
_NORMAL, _GOING_AWAY, _POLICY = 1000, 1001, 1008


@dataclass(frozen=True)
class Ending:
    """Why a call is over: what the client is told, if anything, and the container."""

    why: str
    last: Message | None = None
    code: int = _NORMAL
    client_gone: bool = False


class Call:
    """An open invocation."""

    def __init__(
        self,
        stream: Stream,
        chain: EventChain,
        container: Container,
        faults: StreamFaults,
        settings: Settings,
    ) -> None:
        self.ins = 0
        """Parts that came from the client."""
        self.outs = 0
        """Parts that went to it."""
        self._stream = stream
        self._chain = chain
        self._container = container
        self._faults = faults
        self._settings = settings
        self._sending = asyncio.Lock()  # held from an event's first byte to its last
        self._half_closed = False
        self._request_over = asyncio.Event()
        self._owed = 0  # window that was used and not given back

    @property
    def window(self) -> int:
        """Bytes that the client may send before more window is given back."""
        return self._stream.window

    def faults_changed(self) -> None:
        """What was switched on or off since holds from now on."""
        self._settle()
        self._strike()

    async def run(self) -> str:
        """Carry parts both ways until the end; returns why it ended, in a few words."""
        parts: list[Callable[[], Coroutine[None, None, Ending]]] = [
            self._from_client,
            self._from_container,
            self._ping,
            self._cap,
            self._watch,
        ]
        tasks = [asyncio.create_task(part()) for part in parts]
        try:
            self._strike()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ending = next(task for task in tasks if task in done).result()
            await self._end(ending, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._stream.acknowledge(self._owed)  # the connection's share
        return ending.why

    async def _end(self, ending: Ending, tasks: list[asyncio.Task[Ending]]) -> None:
        self._container.close(ending.code)
        if ending.client_gone:
            return
        try:
            async with asyncio.timeout(_LAST_EVENT_TIMEOUT_S), self._sending:
                for task in tasks:
                    task.cancel()
                if ending.last is not None:
                    await self._stream.send(encode(ending.last))
                await self._stream.send(b"", end=True)
        except TimeoutError:  # the client takes nothing: an event is left unfinished
            self._stream.reset()
        except ClientGone:
            pass

    # -- the five ways to an end --

    async def _from_client(self) -> Ending:
        """Parts to the container, until the client ends its side and the container agrees."""
        decoder, bridge = Decoder(), ToContainer()
        try:
            while (piece := await self._stream.receive()) is not None:
                data, size = piece
                for message in decoder.feed(data):
                    await self._forward(message, bridge)
                self._owed += size
                self._settle()
            if decoder.pending:
                raise DecodeError("bad_event", "the request ends inside an event")
        except ClientGone:
            return Ending("client gone", code=_GOING_AWAY, client_gone=True)
        except FirstwordError as error:
            return Ending(error.message, stream_failure(error), _POLICY)
        self._half_close()
        self._request_over.set()
        await asyncio.sleep(CLOSE_TIMEOUT_S)
        return Ending("client ended; the container did not answer the close")

    async def _forward(self, message: Message, bridge: ToContainer) -> None:
        """Verify one event and hand its part on. Raises FirstwordError."""
        inner = self._chain.verify(message, datetime.now(UTC))
        if inner is None:
            self._half_close()
            return
        await self._container.send(bridge.frame(decode(inner)))
        self.ins += 1
        self._strike()

    def _half_close(self) -> None:
        self._half_closed = True
        self._container.close(_NORMAL)

    async def _from_container(self) -> Ending:
        """Frames to the client, until the container closes or is lost."""
        bridge = ToClient()
        try:
            while not isinstance(received := await self._container.receive(), Closed):
                await self._send_part(encode(bridge.part(received)))
        except ClientGone:
            return Ending("client gone", code=_GOING_AWAY, client_gone=True)
        if self._half_closed and received.code in _ANSWERS:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._request_over.wait(), REQUEST_END_S)
            return Ending("client ended")
        why = f"container closed with {received.code}"
        if received.code == _NORMAL and not self._settings.normal_close_is_error:
            return Ending(why)
        return Ending(why, model_stream_error(str(received.code), received.reason or why))

    async def _send_part(self, event: bytes) -> None:
        number = self.outs + 1
        await asyncio.sleep(self._faults.out_delay_s(number))
        async with self._sending:
            if self._faults.cuts(number):
                await self._stream.send(event[: len(event) // 2])
                self._stream.connection.abort()
                raise ClientGone
            await self._stream.send(event, piece=self._faults.piece_bytes(number))
        self.outs = number
        self._strike()

    async def _ping(self) -> Ending:
        """Pings, and the end when the container has answered too few.

        Each has the time to the next one to be answered. While we do not read from it, because the
        client takes nothing, pongs may lie unread: then none are sent.
        """
        await asyncio.sleep(self._settings.ping_s)
        while self._container.unanswered < self._settings.ping_misses:
            if self._container.reading:
                self._container.ping()
            await asyncio.sleep(self._settings.ping_s)
        why = f"container left {self._settings.ping_misses} pings unanswered"
        return Ending(why, model_stream_error("1006", why), _GOING_AWAY)

    async def _cap(self) -> Ending:
        """The end of the longest time that a stream may live."""
        longest = self._faults.max_duration_s(self._settings.max_duration_s)
        await asyncio.sleep(longest)
        why = f"stream reached its longest duration of {longest:g} s"
        if self._settings.cap_is_error:
            return Ending(why, model_stream_error("ModelInvocationTimeExceeded", why), _GOING_AWAY)
        return Ending(why, code=_GOING_AWAY)

    async def _watch(self) -> Ending:
        """The end when the client is gone while nobody talks to it."""
        await self._stream.lost()
        return Ending("client gone", code=_GOING_AWAY, client_gone=True)

    # -- faults --

    def _settle(self) -> None:
        """Give the window back that was used, unless a fault withholds it."""
        if not self._faults.withholds(self.ins, self.outs):
            self._stream.acknowledge(self._owed)
            self._owed = 0

    def _strike(self) -> None:
        """Break what is to break now."""
        for fault in self._faults.strike(self.ins, self.outs):
            if fault.kind is Kind.GOAWAY:
                self._stream.connection.go_away()
            elif fault.kind is Kind.RST:
                self._stream.reset(int(fault.value))
            else:
                self._stream.connection.abort()
