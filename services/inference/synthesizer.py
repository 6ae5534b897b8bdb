"""The interface between an engine and the rest of the service.

An engine works in two steps. `prepare` decides everything that depends on the text: pronunciation,
cuts, plan. `synthesize` makes the audio of one piece, the smallest unit that can be scheduled:
pieces of several requests may be interleaved on the device, and a request stops between two pieces
at the latest. An engine that is faster with several pieces in one run is a `BatchSynthesizer`; the
scheduler (`scheduler.py`) chooses the pieces.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from firstword.errors import FirstwordError
from firstword.session_protocol import Words
from services.inference.lexicon import Lexicon

Samples: TypeAlias = npt.NDArray[np.float32]
"""Mono audio, shape (n,), nominally within -1 … 1."""


class SynthesisError(FirstwordError):
    """A request that is refused or failed; the client gets it as an `error` frame.

    `retry_after_s`: until then it is of no use to try again here.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code, message, retryable=retryable)
        self.retry_after_ms = None if retry_after_s is None else ceil(1000 * retry_after_s)


class Stopped(Exception):
    """The request was stopped while the engine worked on it."""


class Stop:
    """A flag that the event loop sets and an engine in a thread obeys."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_set = False
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Stop now: runs the registered callbacks, once. Safe from any thread."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            self.is_set = True
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], None]) -> None:
        """Run `callback` when the flag is set; at once if it is already."""
        with self._lock:
            if not self.is_set:
                self._callbacks.append(callback)
                return
        callback()


@dataclass(frozen=True, slots=True)
class Utterance:
    """A checked request: `voice` exists and `lang` is the voice's own.

    `first_words`: end the first piece at the first clause with at least this many words, so that it
    is heard early (`pieces.cut`); 0: cut only what is too long. `lexicon`: the session's own
    pronunciations.
    """

    text: str
    voice: str
    lang: str
    speed: float = 1.0
    seed: int = 0
    first_words: int = 0
    lexicon: Lexicon | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """An utterance ready for synthesis.

    `plan` is equal for two utterances only if their audio is equal on this engine: the same number
    of samples, equal to the bit if made in runs of the same shape (a batch of another shape rounds
    differently). `pieces` are the engine's own objects; none if there is nothing to say. `sizes`:
    how much work each piece is, in the engine's unit (phonemes, say); empty if pieces are alike.
    """

    plan: str
    pieces: tuple[Any, ...]
    sizes: tuple[int, ...] = ()

    def size(self, index: int) -> int:
        """How much work a piece is, at least 1."""
        return max(1, self.sizes[index]) if self.sizes else 1


@dataclass(frozen=True, slots=True)
class Audio:
    """The audio of one piece at the engine's sample rate, ready to be joined to the next piece's.

    `words`: as in `SynthesisComplete`, in seconds from the start of this piece. `fingerprint`:
    results of the synthesis itself (durations) that are part of the plan.
    """

    samples: Samples
    words: Words = ()
    fingerprint: bytes = b""


class Synthesizer(Protocol):
    """An engine. `prepare` and `synthesize` block, and are called from several threads at once."""

    @property
    def name(self) -> str:
        """What makes the audio: engine, version, weights. Part of every plan."""

    @property
    def sample_rate(self) -> int:
        """Sample rate of the audio it makes, in Hz."""

    @property
    def voices(self) -> frozenset[str]:
        """The voices that can speak here."""

    def prepare(self, utterance: Utterance) -> Prepared:
        """Pronunciation, cuts and plan. Raises SynthesisError."""

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        """The audio of `prepared.pieces[index]`; equal calls give bit-equal audio.

        Raises Stopped soon after `stop` is set, SynthesisError if the engine fails.
        """


@runtime_checkable
class BatchSynthesizer(Synthesizer, Protocol):
    """An engine that makes several pieces in one run, of one request or of several."""

    @property
    def max_batch(self) -> int:
        """Most pieces of one run."""

    def synthesize_batch(
        self, pieces: Sequence[tuple[Prepared, int]], stops: Sequence[Stop]
    ) -> list[Audio | Exception]:
        """For each `(prepared, index)`, in order: its audio, or what `synthesize` would raise.

        A stop ends its own piece when the run is over at the latest; it ends the run only if all
        of its pieces are stopped. An error of one piece alone is returned, not raised.
        """


def max_batch(engine: Synthesizer) -> int:
    """How many pieces an engine takes in one run: 1 unless it says more."""
    return max(1, engine.max_batch) if isinstance(engine, BatchSynthesizer) else 1
