"""`firstword publish`, `listen` and `partition`: a session's two ends, from a shell."""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from firstword import codec, keys, runfile
from firstword import messages as m
from firstword.cli import loop, stdin
from firstword.cli.console import Console
from firstword.cli.sinks import RawOutput, WavFile
from firstword.client import Event, Firstword
from firstword.errors import FirstwordError, StateLost
from firstword.outbox import NO_MORE
from firstword.server_errors import insist
from firstword.watch import taken_of


def run_publish(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Standard input becomes a turn while it is still being written. Interrupted, it ends the turn:
    one that stays open keeps the session's next turn waiting."""
    keys.check_name("session", options.session)
    turn = f"t-{secrets.token_hex(6)}" if options.turn is None else options.turn

    async def publish() -> int:
        async with Firstword(environ=environ) as firstword:
            session = firstword.session(options.session)
            if options.turn is not None:
                await _check_new(firstword, session.name, turn)
            await session.open()
            characters, complete = 0, False

            async def counted() -> AsyncIterator[str]:
                nonlocal characters, complete
                async for piece in stdin.pieces():
                    characters += len(piece)
                    yield piece
                complete = True

            try:
                await session.stream(counted(), turn=turn)
            except asyncio.CancelledError:
                if characters and not complete:  # else the end is on its way
                    with contextlib.suppress(FirstwordError):
                        await session.end(turn)
                raise
        if not characters:
            raise FirstwordError(
                "nothing_to_say",
                f"standard input is empty: firstword publish {session.name} < FILE",
            )
        console.say(turn)
        console.note(f"{characters} characters published to session {session.name}.")
        return 0

    return loop.run(publish())


async def _check_new(firstword: Firstword, session: str, turn: str) -> None:
    """Raises FirstwordError if the session takes no more text in this turn: it would be dropped
    without a word. One that is open may be published again, the same words are not said twice."""
    streams = firstword.streams
    taken = await insist(lambda: taken_of(streams, session), streams.url)
    if turn in taken.finished or taken.turns.get(turn) == NO_MORE:
        raise FirstwordError(
            "turn_over",
            f"turn {turn} of session {session} is over, and takes no more text: choose another "
            "name, or leave --turn out",
        )


def run_listen(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Events as they come, until the session is closed, enough turns have ended, or Ctrl-C."""
    keys.check_name("session", options.session)

    async def listen() -> int:
        sink = _sink(options.out, console)
        tell = console.note if options.out == "-" else console.say
        turns = 0
        try:
            async with Firstword(environ=environ) as firstword:
                async for event in await firstword.session(options.session).listener(
                    options.from_id
                ):
                    if sink is not None:
                        sink.feed(event.message)
                    line = as_json(event, sink is None) if options.json else as_text(event)
                    if line is not None:
                        tell(line)
                    turns += isinstance(event.message, m.TurnDone | m.TurnCancelled)
                    if options.turns is not None and turns >= options.turns:
                        break
        except StateLost as error:  # nothing was read yet: it is where we were told to begin
            raise FirstwordError(
                error.code,
                f"session {options.session} has no event {options.from_id}: the id is mistyped, "
                "or the server lost it; --from 0 begins with the oldest that is kept",
                retryable=True,
            ) from error
        finally:
            if sink is not None:
                sink.close()
        return 0

    status = loop.run(listen())
    return 0 if status == loop.INTERRUPTED else status


def _sink(out: str | None, console: Console) -> WavFile | RawOutput | None:
    if out is None:
        return None
    return RawOutput(console.binary) if out == "-" else WavFile(Path(out))


def as_json(event: Event, with_audio: bool) -> str:
    """An event as one JSON object; audio as base64, or as its length where it goes elsewhere."""
    fields = {"id": event.id, **codec.fields_of(event.message)}
    data = fields.pop("data", None)
    if data is not None:
        fields["bytes"] = len(data)
        if with_audio:
            fields["data"] = base64.b64encode(data).decode()
    return json.dumps(fields, ensure_ascii=False)


def as_text(event: Event) -> str | None:
    """An event in words, after its id; None for audio, which comes many times a second."""
    words = _words(event.message)
    return None if words is None else f"{event.id:<16}  {words}"


def _words(message: m.Audio) -> str | None:
    match message:
        case m.TurnStarted():
            return f"turn {message.turn}: {message.voice}, {message.sample_rate} Hz"
        case m.SegmentStarted():
            return f"segment {message.n}: {message.text.strip()}"
        case m.AudioChunk():
            return None
        case m.SegmentRestarted():
            return f"segment {message.n} comes again from its start"
        case m.SegmentDone():
            return f"segment {message.n} done: {message.samples} samples"
        case m.TurnDone():
            segments = f"{message.segments} segment" + "s" * (message.segments != 1)
            ttfa = message.ttfa_ms
            first_audio = "" if ttfa is None else f", first audio after {ttfa:.0f} ms"
            return (
                f"turn {message.turn} done ({message.reason}): {segments}, "
                f"{message.samples} samples{first_audio}"
            )
        case m.TurnCancelled():
            return f"turn {message.turn} cancelled"
        case m.ErrorEvent():
            where = "" if message.n is None else f" in segment {message.n}"
            return f"error{where}: {message.message} ({message.code})"
        case m.Gap():
            return f"older events are not kept any more: the first there is has id {message.first}"
        case m.Closed():
            return f"session closed: {message.reason}"


def run_partition(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """The ingress partition of a session: from the deployment's count, else from the default."""
    session = keys.check_name("session", options.session)

    async def recorded() -> int:
        async with Firstword(environ=environ) as firstword:
            found = await insist(firstword.partitions, firstword.streams.url)
        if found is None:
            console.note(
                f"No segmenter has started there yet: counted with {keys.DEFAULT_PARTITIONS} "
                "partitions, the default."
            )
        return found or keys.DEFAULT_PARTITIONS

    partitions = options.partitions
    if partitions is None and runfile.resolve_url(environ) is None:
        partitions = keys.DEFAULT_PARTITIONS
        console.note(f"No server in use: counted with {partitions} partitions, the default.")
    partition = keys.partition_of(session, partitions or loop.run(recorded()))
    console.say(str(partition))
    return 0
