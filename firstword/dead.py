"""Dead letters: entries that could not be used, kept on `fw:dead` with the reason.

Their fields are what a publisher sent and may hold what a customer said. So they are shown only to
an operator who asks for one of them, never in a list or a log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstword import codec, keys, telemetry
from firstword.errors import DecodeError, FirstwordError
from firstword.ids import START, is_entry_id
from firstword.streams import DEAD_FIELD, Entry, Streams


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One entry as it was found.

    `id` is its id on `fw:dead`, `source` and `entry` the stream and id it had before. `cut` is its
    original size in bytes if only the beginning was kept, else 0.
    """

    id: str
    source: str
    entry: str
    reason: str
    fields: Mapping[bytes, bytes]
    cut: int = 0

    @property
    def size(self) -> int:
        """Bytes of the original entry."""
        return self.cut or sum(len(name) + len(value) for name, value in self.fields.items())

    def messages(self) -> list[Any]:
        """Its messages, as far as this version can read them; raises DecodeError."""
        if self.source.endswith(":segments"):
            message = codec.unpack(self.fields.get(b"m", b""), codec.SEGMENTS)
            return [] if message is None else [message]
        return list(codec.decode_ingress(self.fields))


async def put_aside(
    streams: Streams, source: str, entry: Entry, reason: str, session: str | None = None
) -> None:
    """Put an unusable entry among the dead letters; it is counted and logged. `session`: whose it
    is, if that is known and not in the log's context already."""
    telemetry.dead_letters.labels(reason).inc()
    streams.flood.came(_now())
    names = {"stream": source, "entry": entry.id} | ({"session": session} if session else {})
    telemetry.logger().warning("dead_letter", reason=reason, **names)
    await streams.dead_letter(source, entry, reason)


def flood(streams: Streams) -> str | None:
    """The reason for `/readyz` if entries are put aside in floods; None when well."""
    return streams.flood.problem(_now())


async def read(streams: Streams, limit: int) -> list[DeadLetter]:
    """The newest `limit` dead letters, oldest first."""
    found = await streams.commands.xrevrange(keys.DEAD, count=limit)
    return [_letter(Entry(entry_id.decode(), fields)) for entry_id, fields in reversed(found)]


async def find(streams: Streams, letter_id: str) -> DeadLetter:
    """One dead letter by its id; raises FirstwordError if there is none."""
    entries = []
    if is_entry_id(letter_id):
        entries = await streams.commands.xrange(keys.DEAD, min=letter_id, max=letter_id)
    if not entries:
        raise FirstwordError(
            "no_such_letter",
            f"there is no dead letter {letter_id[:64]}: `firstword dead list` tells their ids",
        )
    [(entry_id, fields)] = entries
    return _letter(Entry(entry_id.decode(), fields))


async def replay(streams: Streams, letter_id: str) -> str:
    """Append a dead letter's fields to its source again and remove it; returns the new entry id.

    It comes after everything published since. Raises FirstwordError, and keeps it, if it could not
    be used now either, or would break the order of what is spoken.
    """
    letter = await find(streams, letter_id)
    _check_usable(letter)
    # The door's mark would make the session take it for a repetition.
    fields = {name: value for name, value in letter.fields.items() if name != b"src"}
    new_id = await streams.append(letter.source, fields)
    await streams.commands.xdel(keys.DEAD, letter.id)
    return new_id


def _check_usable(letter: DeadLetter) -> None:
    if letter.cut:
        raise FirstwordError(
            "not_whole",
            f"only the beginning of dead letter {letter.id} was kept, of {letter.cut} bytes: "
            "publish its text again, in smaller pieces",
        )
    if letter.source.endswith(":segments"):
        raise FirstwordError(
            "not_replayable",
            f"dead letter {letter.id} is a segment, and its turn went on without it: "
            "publish its text again",
        )
    try:
        known = letter.messages()
    except DecodeError as error:
        raise FirstwordError(
            "still_dead", f"dead letter {letter.id} cannot be read now either: {error.message}"
        ) from error
    if not known:
        raise FirstwordError(
            "still_dead", f"dead letter {letter.id} is of a type that this version does not know"
        )


def _letter(entry: Entry) -> DeadLetter:
    plain = {n.decode(): v.decode() for n, v in entry.fields.items() if not _is_original(n)}
    return DeadLetter(
        id=entry.id,
        source=plain.get("source", ""),
        entry=plain.get("id", START),
        reason=plain.get("reason", ""),
        cut=int(plain.get("cut", "0")),
        fields={
            name.removeprefix(DEAD_FIELD): value
            for name, value in entry.fields.items()
            if _is_original(name)
        },
    )


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_original(name: bytes) -> bool:
    return name.startswith(DEAD_FIELD)
