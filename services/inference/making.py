"""What a worker does with an engine: prepare a request if needed, and make audio."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from services.inference.synthesizer import (
    Audio,
    BatchSynthesizer,
    Prepared,
    Stop,
    Stopped,
    Synthesizer,
    Utterance,
)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """One piece to be made. Without `prepared`, the worker prepares the request first."""

    utterance: Utterance
    stop: Stop
    prepared: Prepared | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """A piece that was made; `audio` is None if the request has nothing to say at all.

    `worked_s`: the engine's time for it, or its share if several were made in one run.
    """

    prepared: Prepared
    audio: Audio | None
    worked_s: float
    index: int = 0

    def seconds(self, sample_rate: int) -> float:
        """How long its audio sounds."""
        return 0.0 if self.audio is None else len(self.audio.samples) / sample_rate


Outcome: TypeAlias = Made | Exception


def make(engine: Synthesizer, works: Sequence[Work]) -> list[Outcome]:
    """The outcome of each work, in order. Blocks; raises nothing."""
    outcomes = [_prepared(engine, work) for work in works]
    ready = [
        (place, prepared, works[place])
        for place, prepared in enumerate(outcomes)
        if isinstance(prepared, Prepared)
    ]
    begun = time.monotonic()
    audios = _audio(engine, [(prepared, work) for _, prepared, work in ready])
    worked_s = (time.monotonic() - begun) / max(1, len(ready))
    for (place, prepared, work), audio in zip(ready, audios, strict=True):
        if isinstance(audio, Audio):
            outcomes[place] = Made(prepared, audio, worked_s, work.index)
        else:
            outcomes[place] = audio
    return [outcome for outcome in outcomes if not isinstance(outcome, Prepared)]


def _prepared(engine: Synthesizer, work: Work) -> Prepared | Outcome:
    """The prepared request, or its outcome if there is nothing to make."""
    if work.stop.is_set:
        return Stopped()
    try:
        prepared = work.prepared or engine.prepare(work.utterance)
    except Exception as error:
        return error
    return prepared if prepared.pieces else Made(prepared, None, 0.0)


def _audio(
    engine: Synthesizer, ready: Sequence[tuple[Prepared, Work]]
) -> Sequence[Audio | Exception]:
    if len(ready) > 1 and isinstance(engine, BatchSynthesizer):
        pieces = [(prepared, work.index) for prepared, work in ready]
        try:
            return engine.synthesize_batch(pieces, [work.stop for _, work in ready])
        except Exception as error:
            return [error] * len(ready)
    return [_one(engine, prepared, work) for prepared, work in ready]


def _one(engine: Synthesizer, prepared: Prepared, work: Work) -> Audio | Exception:
    try:
        return engine.synthesize(prepared, work.index, work.stop)
    except Exception as error:
        return error
