"""A session's token source: who answers, the conversation so far, and one reply at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, nullcontext

from firstword import telemetry
from services.agent.core import Say
from services.agent.memory import Memory, MemoryLimits
from services.agent.scripted import ScriptedSource
from services.agent.source import Ask, SourceError, TokenSource

MakeSource = Callable[[], TokenSource]


class Talk:
    """One session. Whoever listens to its events feeds them to `memory`."""

    def __init__(
        self, session: str, source: TokenSource, limits: MemoryLimits, patience_s: float | None
    ) -> None:
        self.session = session
        self.memory = Memory(limits)
        self._source = source
        self._as_it_is = ScriptedSource()
        self._patience_s = patience_s
        self._order = asyncio.Lock()
        self._writing: dict[str, _Writing] = {}

    async def write(
        self, turn: str, say: Say, after: asyncio.Event | None
    ) -> AsyncGenerator[str, None]:
        """Write the turn, piece by piece, and remember it.

        Prompts are answered one after the other, so that each answer knows the ones before: a turn
        `after` another waits until that has begun, then until it is written. Raises what the source
        raises. Closing the iterator ends it between two pieces, `stop` at once.
        """
        writing = self._writing[turn] = _Writing()
        try:
            if say.is_prompt and after is not None:
                await after.wait()  # before the lock, whose holder never waits for us
            async with self._order if say.is_prompt else nullcontext():
                if writing.stopped:
                    return
                async with aclosing(self._pieces(turn, say, writing)) as pieces:
                    async for piece in pieces:
                        yield piece
        finally:
            if self._writing.get(turn) is writing:  # two callers may use the same turn name
                del self._writing[turn]

    def stop(self, turn: str) -> None:
        """Nobody wants the rest of this turn: if it is being written, close its source now."""
        if turn in self._writing:
            self._writing[turn].stop()

    async def _pieces(self, turn: str, say: Say, writing: _Writing) -> AsyncGenerator[str, None]:
        asked = say.is_prompt
        source, patience_s = (self._source, self._patience_s) if asked else (self._as_it_is, None)
        self.memory.ask(turn, say.text if asked else "")
        ask = Ask(
            text=say.text,
            session=self.session,
            turn=turn,
            tokens_per_second=say.tokens_per_second,
            messages=self.memory.messages(turn),
        )
        clock = asyncio.get_running_loop().time
        asked_at: float | None = clock() if asked else None
        async with aclosing(source.stream(ask)) as pieces:
            while (piece := await writing.next(pieces, patience_s)) is not None:
                if asked_at is not None:
                    telemetry.model_first_text.observe(clock() - asked_at)
                    asked_at = None
                self.memory.write(turn, piece)
                yield piece


class _Writing:
    """A turn that is being written."""

    def __init__(self) -> None:
        self.stopped = False
        self._waiting: asyncio.Timeout | None = None

    async def next(self, pieces: AsyncIterator[str], patience_s: float | None) -> str | None:
        """The next piece; None at the end, and once stopped. Raises SourceError."""
        if self.stopped:
            return None
        try:
            async with asyncio.timeout(patience_s) as self._waiting:
                return await anext(pieces, None)
        except TimeoutError as error:
            if self.stopped:
                return None
            if self._waiting is None or not self._waiting.expired():
                raise  # the source's own
            raise SourceError(
                "source_silent", f"the model wrote nothing for {patience_s:g} s", retryable=True
            ) from error
        finally:
            self._waiting = None

    def stop(self) -> None:
        self.stopped = True
        if self._waiting is not None:
            self._waiting.reschedule(0)


class Talks:
    """The talks of all sessions; of more than `sessions` the least recently used are forgotten.

    `make` makes a session's token source. `patience_s`: how long a model may write nothing.
    """

    def __init__(
        self, make: MakeSource, limits: MemoryLimits, sessions: int, patience_s: float | None
    ) -> None:
        self._make = make
        self._limits = limits
        self._sessions = sessions
        self._patience_s = patience_s
        self._talks: OrderedDict[str, Talk] = OrderedDict()

    def of(self, session: str) -> Talk:
        """The talk of this session, which counts as used now."""
        talk = self._talks.get(session)
        if talk is None:
            talk = Talk(session, self._make(), self._limits, self._patience_s)
            self._talks[session] = talk
        self._talks.move_to_end(session)
        while len(self._talks) > self._sessions:
            self._talks.popitem(last=False)
        return talk

    def forget(self, session: str) -> None:
        """The session is over."""
        self._talks.pop(session, None)
