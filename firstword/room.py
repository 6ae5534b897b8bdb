"""Whether a session can take more text: how much may wait to be spoken is limited."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from firstword import keys, server_errors
from firstword.errors import FirstwordError
from firstword.ids import id_key
from firstword.streams import Streams

CHECK_SEGMENTS = 32
"""About how many are published between two looks at the queue; at most a quarter of the limit."""
LOOK_S = 0.2
CATCH_UP_S = 2.0
"""How long to wait for the segmenter, so that what it has not read yet is counted too."""
_CHARACTERS = 200
_MARKS = ".!?\n。！？"


def estimate(piece: str) -> float:
    """How many segments a piece will make, at most and about."""
    return len(piece) / _CHARACTERS + sum(map(piece.count, _MARKS))


@dataclass(frozen=True, slots=True)
class Queue:
    """How many segments of a session wait to be spoken, of how many that may, and how far the
    segmenter has read (`position`)."""

    waiting: int
    limit: int
    position: str | None

    def has_room_for(self, unread: float) -> bool:
        """Whether more may be published: up to half the limit, so that pieces on their way find
        room. `unread`: published segments that may not be counted yet."""
        return self.waiting + unread <= self.limit // 2


class Room:
    """Counts what is published to a session, and looks at its queue from time to time."""

    def __init__(self, streams: Streams, session: str) -> None:
        self._streams = streams
        self._session = session
        self._published = self._looked_at = self._read = 0.0  # segments, as far as estimated
        self._looks: deque[tuple[str, float]] = deque()  # last entry and `_published` at each
        self._every = CHECK_SEGMENTS // 4  # until the limit is known

    async def check(self) -> None:
        """Raises FirstwordError `busy`, which is retryable, if there is none."""
        queue = await self._look()
        if not queue.has_room_for(0):
            raise busy(queue)

    async def enter(self, piece: str, last_id: str | None, *, wait: bool) -> None:
        """Wait for room for this piece, or raise `busy`. `last_id`: what was published last."""
        since = self._published - self._looked_at
        if since and since + estimate(piece) > self._every:
            await self._find(last_id, wait=wait)
        self._published += estimate(piece)

    async def _find(self, last_id: str | None, *, wait: bool) -> None:
        """The segmenter tells how far it has read once a sentence, or a second: who waited for
        that without need would hold up the words of a sentence that is being written."""
        clock = asyncio.get_running_loop().time
        patient_until = clock() + CATCH_UP_S
        if last_id is not None:
            self._looks.append((last_id, self._published))
        while True:
            queue = await self._look()
            self._note_read(queue.position)
            behind = _is_behind(queue.position, last_id) and clock() < patient_until
            if queue.has_room_for(self._published - self._read if behind else 0):
                break
            if not wait and not behind:
                raise busy(queue)
            await asyncio.sleep(LOOK_S if not behind else LOOK_S / 20)
        self._looked_at = self._published

    def _note_read(self, position: str | None) -> None:
        while self._looks and not _is_behind(position, self._looks[0][0]):
            _, self._read = self._looks.popleft()

    async def _look(self) -> Queue:
        commands = self._streams.commands

        async def ask() -> Queue:
            text, length, limit = await asyncio.gather(
                commands.hmget(keys.text_state(self._session), "waiting", "position"),
                commands.xlen(keys.segments(self._session)),
                commands.hget(keys.CONFIG, "max_queued"),
            )
            waiting, position = text
            return Queue(
                waiting=int(waiting or 0) + int(length),
                limit=int(limit) if limit and limit.isdigit() else keys.DEFAULT_MAX_QUEUED,
                position=None if position is None else position.decode(),
            )

        queue = await server_errors.insist(ask, self._streams.url)
        self._every = max(1, min(CHECK_SEGMENTS, queue.limit // 4))
        return queue


def _is_behind(position: str | None, last_id: str | None) -> bool:
    """Whether the segmenter has not read what was published last; where there is none, it is not
    waited for."""
    return position is not None and last_id is not None and id_key(position) < id_key(last_id)


def busy(queue: Queue) -> FirstwordError:
    """There is no room: what to do."""
    return FirstwordError(
        "busy",
        f"{queue.waiting} segments of this session wait to be spoken, of {queue.limit} that may: "
        "publish more when some of them are",
        retryable=True,
    )
