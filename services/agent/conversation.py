"""A caller's turns: a token source writes them, we publish them, and their events come back."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from firstword import messages as m
from firstword import telemetry, tracing
from firstword.client import Event, Listener, Manner, Session
from firstword.errors import FirstwordError
from services.agent.core import RequestError, Say
from services.agent.source import SourceError
from services.agent.talk import Talk


class Farewells:
    """What is still to do for callers who have gone, in tasks of its own: theirs are cancelled."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def see_to(self, farewell: Coroutine[Any, Any, None]) -> None:
        """Begin it; it is not waited for."""
        task = asyncio.create_task(farewell)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Wait for all, and cancel what is not done in time: it must not outlive the connection."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(self._tasks, timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class CallerGone(Exception):
    """The caller has hung up: nobody is listening."""


class Outlet(Protocol):
    """How a caller gets events. Every method raises CallerGone when the caller is gone."""

    async def text(self, turn: str, piece: str, start: int) -> None: ...
    async def event(self, event: Event) -> None: ...
    async def error(self, turn: str | None, error: FirstwordError) -> None: ...


@dataclass(slots=True)
class Turn:
    """A turn that this caller requested and that is not over."""

    name: str
    say: Say
    asked_at: float
    after: asyncio.Event | None
    """Set once the previous turn's first piece is on the stream, or never will be."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    written: bool = False
    heard: bool = False
    text: str = ""
    """What was shown to the caller so far."""


class Conversation:
    """One caller in one session. `write` and `follow` run side by side, in tasks of the caller."""

    def __init__(
        self,
        session: Session,
        listener: Listener,
        talk: Talk,
        outlet: Outlet,
        patience_s: float,
    ) -> None:
        self.turns: dict[str, Turn] = {}
        self._session = session
        self._listener = listener
        self._talk = talk
        self._outlet = outlet
        self._patience_s = patience_s
        self._silenced: set[str] = set()
        self._newest: Turn | None = None

    def begin(self, say: Say) -> Turn:
        """Name a turn and start its clock; `write` it next. Raises RequestError."""
        if say.turn in self.turns:
            raise RequestError("turn_taken", "a turn of this name is not over: name it otherwise")
        now = asyncio.get_running_loop().time()
        after = None if self._newest is None else self._newest.begun
        turn = Turn(say.turn or f"t-{secrets.token_hex(6)}", say, now, after)
        self.turns[turn.name] = self._newest = turn
        return turn

    async def write(self, turn: Turn) -> None:
        """Have the turn written and publish it: piece by piece, or in batch mode as a whole.

        Turns are spoken in the order of their first entries, so each waits for the one before.
        Raises FirstwordError if it cannot be published, CallerGone as the outlet does. If the
        source fails, the caller is told, and what it wrote is spoken.
        """
        try:
            with tracing.span("firstword.reply"):
                await self._publish(turn)
        finally:
            turn.begun.set()
        turn.written = True

    async def _publish(self, turn: Turn) -> None:
        say = turn.say
        manner = Manner(voice=say.voice, speed=say.speed, lang=say.lang)
        pieces = self._told(turn)
        if say.mode == "stream":
            await self._session.stream(
                pieces, turn=turn.name, manner=manner, on_published=lambda *_: turn.begun.set()
            )
            return
        async with aclosing(pieces):
            whole = "".join([piece async for piece in pieces])
        if turn.name in self.turns:
            await self._session.say(whole, turn=turn.name, manner=manner)

    async def follow(self, last: Turn | None = None) -> None:
        """Pass events to the caller until the session is closed, or the turn `last` is over."""
        while last is None or last.name in self.turns:
            try:
                async with asyncio.timeout(self._patience_s):
                    event = await anext(self._listener)
            except StopAsyncIteration:
                return
            except TimeoutError:
                await self._give_up_on_written_turns()
                continue
            await self._hand_on(event)

    @property
    def position(self) -> str:
        """The id of the last event that was passed on, to continue listening from."""
        return self._listener.position

    def listen_with(self, listener: Listener) -> None:
        """Follow another listener from now on. Must not be called while `follow` runs."""
        self._listener = listener

    def silence(self, name: str | None) -> None:
        """The caller wants this turn, or without a name all its turns, stopped: their audio is not
        passed on any more, and what is not published yet never is."""
        stopped = set(self.turns) if name is None else {name}
        self._silenced |= stopped
        for turn in [self.turns[name] for name in stopped & set(self.turns)]:
            if not turn.begun.is_set():  # no receipt will name it
                self._silenced.discard(turn.name)
                self._talk.memory.unsaid(turn.name)
                self.end(turn.name, "cancelled")

    async def _hand_on(self, event: Event) -> None:
        message = event.message
        if isinstance(message, m.AudioChunk) and message.turn in self._silenced:
            return
        self._talk.memory.take(message)
        self._time_first_audio(message)
        await self._outlet.event(event)
        if isinstance(message, m.TurnDone):
            self._silenced.discard(message.turn)
            self.end(message.turn, "complete")
        elif isinstance(message, m.TurnCancelled):
            for turn in message.stopped:
                self._silenced.discard(turn)
                self.end(turn, "cancelled")

    def end(self, name: str, outcome: str) -> None:
        """Count a turn of ours as over; a name that is not ours changes nothing."""
        turn = self.turns.pop(name, None)
        if turn is not None:
            turn.begun.set()
            self._talk.stop(name)
            telemetry.caller_turns.labels(outcome).inc()

    async def hang_up(self, *, close: bool) -> None:
        """The caller has left; `close`: the session was made for this caller alone."""
        await self.leave()
        if close:
            with contextlib.suppress(FirstwordError):  # the gateway closes idle sessions too
                await self._session.close()

    async def leave(self) -> None:
        """The caller is gone: cancel its turns."""
        for name in list(self.turns):
            self.end(name, "gone")
            try:
                self._talk.memory.take(await self._session.cancel(name))
            except FirstwordError as error:
                session = self._session.name
                telemetry.logger().warning(
                    "cancel_failed", session=session, turn=name, code=error.code
                )

    async def _told(self, turn: Turn) -> AsyncGenerator[str, None]:
        """The source's pieces, each sent to the caller before it is published, until the turn is
        over."""
        if turn.name not in self.turns:
            return
        pieces = self._talk.write(turn.name, turn.say, turn.after)
        try:
            async for piece in pieces:
                if turn.after is not None:
                    await turn.after.wait()
                if turn.name not in self.turns:
                    break
                start, turn.text = len(turn.text), turn.text + piece
                await self._outlet.text(turn.name, piece, start)
                yield piece
        except CallerGone:
            raise
        except Exception as error:
            broken_off = _broken_off(error, session=self._session.name, turn=turn.name)
            await self._outlet.error(turn.name, broken_off)
        finally:
            await pieces.aclose()

    async def _give_up_on_written_turns(self) -> None:
        for turn in [turn for turn in self.turns.values() if turn.written]:
            self.end(turn.name, "lost")
            silence = FirstwordError(
                "no_speech",
                f"nothing was heard for {self._patience_s:g} s: are a segmenter, a gateway and an "
                "inference service running?",
                retryable=True,
            )
            await self._outlet.error(turn.name, silence)

    def _time_first_audio(self, message: m.Audio) -> None:
        turn = self.turns.get(message.turn) if isinstance(message, m.AudioChunk) else None
        if turn is not None and not turn.heard:
            turn.heard = True
            now = asyncio.get_running_loop().time()
            telemetry.client_first_audio.labels(turn.say.mode).observe(now - turn.asked_at)


def _broken_off(error: Exception, **names: str) -> FirstwordError:
    """The error for the caller when a model failed; the reason goes to the agent's log."""
    # A library's error may quote the prompt: only its type may be logged.
    ours = error if isinstance(error, SourceError) else None
    why, code = (ours.message, ours.code) if ours else (type(error).__name__, "other")
    telemetry.logger().warning("source_failed", error=why, code=code, **names)
    telemetry.model_failures.labels(code).inc()
    return FirstwordError(
        "source_failed",
        "the reply broke off; what was written of it is spoken",
        retryable=ours.retryable if ours else True,
    )
