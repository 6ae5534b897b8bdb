"""Sessions that talk: each publishes turns token by token, and listens to itself."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from firstword import keys
from firstword.client import Firstword, Session
from firstword.errors import FirstwordError
from firstword.ids import id_key
from tests.chaos.hearing import Hearing, Sentence, Tally, Turn
from tests.doubles.stamp_synthesizer import samples_of

MS_PER_CHAR = 15.0
"""How fast the stamp double speaks here."""
PIECE_CHARS = 9
TAILS = (
    "of the long way home.",
    "and goes on for a little while!",
    "is it heard by all of them?",
    "with a few more words behind it, as people do.",
)


@dataclass(frozen=True, slots=True)
class Manner:
    """How the sessions of a scenario talk. Pauses in seconds."""

    turns: int = 3
    sentences: int = 2
    token_s: float = 0.05
    pause_s: float = 1.5
    kind: str = "plain"
    """`plain`, `cancels`, `two publishers` or `shell`."""
    patience_s: float = 40.0
    """After its last text a session must have ended all turns within this time."""


class Talk:
    """One session: what it published, and what was heard of it."""

    def __init__(self, clients: Sequence[Firstword], number: int, manner: Manner) -> None:
        self.name = f"chaos-{number}"
        self.number = number
        self.turns: list[Turn] = []
        self.hearing = Hearing(number)
        self._clients = clients
        self._manner = manner
        self._numbers = itertools.count(1)
        self._random = random.Random(number)
        self._heard_more = asyncio.Event()
        self._troubles: list[str] = []

    async def run(self) -> None:
        """Talk and listen until every turn has ended, or patience has."""
        sessions = [client.session(self.name) for client in self._clients]
        async with sessions[0]:
            listening = asyncio.create_task(self._listen(sessions[0]))
            try:
                await self._pause()
                async with asyncio.TaskGroup() as tasks:
                    for publish in self._publishers(sessions):
                        tasks.create_task(publish)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._manner.patience_s):
                        await self._wait_for(lambda: all(map(self._has_ended, self.turns)))
                await sessions[0].close()
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    @property
    def planned(self) -> int:
        """How many turns it will publish."""
        match self._manner.kind:
            case "cancels":
                return 4 * self._manner.turns + 1
            case "two publishers":
                return 2 * self._manner.turns
            case "shell" if self.number % 2 == 0:
                return 2 * self._manner.turns
            case _:
                return self._manner.turns

    @property
    def ended(self) -> int:
        """How many turns have ended."""
        return sum(map(self._has_ended, self.turns))

    @property
    def speaking(self) -> bool:
        """Whether a turn is open: published in part, and not ended."""
        return any(turn.opened_ms and not self._has_ended(turn) for turn in self.turns)

    def tally(self) -> Tally:
        """What came of it."""
        tally = self.hearing.tally(self.turns)
        tally.odd += len(self._troubles)
        tally.problems += [f"{self.name}: {told}" for told in self._troubles]
        return tally

    # -- listening --------------------------------------------------------------------------------

    async def _listen(self, session: Session) -> None:
        try:
            async for event in session.listen():
                self.hearing.feed(event)
                self._heard_more.set()
        except FirstwordError as error:
            self._troubles.append(f"its listener ended: {error.code}")

    async def _wait_for(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._heard_more.clear()
            await self._heard_more.wait()

    def _has_ended(self, turn: Turn) -> bool:
        name = self.hearing.name_of(turn)
        answered = self.hearing.receipts[name] >= turn.cancels
        never_begun = turn.cancels > 0 and not turn.opened_ms
        return answered and (name in self.hearing.ends or never_begun)

    # -- publishing -------------------------------------------------------------------------------

    def _publishers(self, sessions: Sequence[Session]) -> list[Coroutine[Any, Any, None]]:
        match self._manner.kind:
            case "cancels":
                return [self._cancel_much(sessions[0])]
            case "two publishers":
                return [self._speak(session) for session in sessions]
            case "shell" if self.number % 2:
                return [self._speak_from_a_shell(named=False)]
            case "shell":  # unnamed text would join the turn that the client has open
                return [self._speak(sessions[0]), self._speak_from_a_shell(named=True)]
            case _:
                return [self._speak(sessions[0])]

    async def _speak(self, session: Session) -> None:
        for _ in range(self._manner.turns):
            turn, text = self._new_turn(self._manner.sentences, named=True)
            await self._publish(session, turn, text)
            await self._pause()

    async def _publish(self, session: Session, turn: Turn, text: str) -> None:
        async def pieces() -> AsyncIterator[str]:
            for piece in _pieces(text):
                yield piece
                await asyncio.sleep(self._manner.token_s)

        def accepted(_piece: str, entry_id: str) -> None:
            turn.opened_ms = turn.opened_ms or id_key(entry_id)[0]

        await session.stream(pieces(), turn=turn.name, on_published=accepted)

    async def _speak_from_a_shell(self, *, named: bool) -> None:
        """Whole turns through the door, one entry each."""
        streams = self._clients[0].streams
        for _ in range(self._manner.turns):
            turn, text = self._new_turn(self._manner.sentences, named=named)
            fields = {"session": self.name, "text": text, "end": "1"}
            if turn.name is not None:
                fields["turn"] = turn.name
            entry_id = await streams.append(keys.DOOR, fields)
            turn.opened_ms = id_key(entry_id)[0]
            await self._pause()

    async def _cancel_much(self, session: Session) -> None:
        """Turns that are stopped at any moment, many of them twice, and then one that is not."""
        for _ in range(4 * self._manner.turns):
            turn, text = self._new_turn(self._manner.sentences, named=True)
            publishing = asyncio.create_task(self._publish(session, turn, text))
            await asyncio.sleep(self._random.uniform(0, 1.2))
            for _ in range(self._random.choice((1, 1, 2))):
                turn.cancels += 1
                receipt = await session.cancel(turn.name, timeout_s=self._manner.patience_s)
                if receipt.turn != turn.name:
                    self._troubles.append("a receipt of another turn")
            await publishing
        turn, text = self._new_turn(self._manner.sentences, named=True)
        await self._publish(session, turn, text)

    def _new_turn(self, sentences: int, *, named: bool) -> tuple[Turn, str]:
        numbers = [next(self._numbers) for _ in range(sentences)]
        texts = [
            f"Session {self.number} says sentence {number} {self._random.choice(TAILS)}"
            for number in numbers
        ]
        said = [
            Sentence(number, samples_of(len(text), MS_PER_CHAR))
            for number, text in zip(numbers, texts, strict=True)
        ]
        turn = Turn(tuple(said), f"turn-{numbers[0]}" if named else None)
        self.turns.append(turn)
        return turn, " ".join(texts)

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(0, 2) * self._manner.pause_s)


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]
