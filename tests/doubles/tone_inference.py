"""The real inference service around the tone double: `python -m tests.doubles.tone_inference`.

Takes the settings of the real one, and the double's knobs from FIRSTWORD_TONE_….
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from firstword.runtime import load_settings
from firstword.settings import setting
from services.inference.__main__ import main
from services.inference.settings import InferenceSettings
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer


@dataclass(frozen=True, slots=True)
class ToneSettings:
    """`ToneOptions`, from the environment."""

    ms_per_char: float = setting(50.0, "FIRSTWORD_TONE_MS_PER_CHAR", "Audio per character.")
    chars_per_piece: int = setting(80, "FIRSTWORD_TONE_CHARS_PER_PIECE", "Piece size.", minimum=1)
    latency_ms: float = setting(0.0, "FIRSTWORD_TONE_LATENCY_MS", "Before each piece.", minimum=0)
    rtf: float = setting(0.0, "FIRSTWORD_TONE_RTF", "Work per second of audio.", minimum=0)
    fail_times: int = setting(0, "FIRSTWORD_TONE_FAIL_TIMES", "Pieces that fail.", minimum=0)
    hang: bool = setting(False, "FIRSTWORD_TONE_HANG", "Pieces never end.")
    short: bool = setting(False, "FIRSTWORD_TONE_SHORT", "Half of the audio is missing.")


def load_tone(_settings: InferenceSettings) -> ToneSynthesizer:
    knobs = load_settings(ToneSettings, [], os.environ)
    return ToneSynthesizer(
        ToneOptions(
            ms_per_char=knobs.ms_per_char,
            chars_per_piece=knobs.chars_per_piece,
            latency_s=knobs.latency_ms / 1000,
            rtf=knobs.rtf,
            fail_times=knobs.fail_times,
            hang=knobs.hang,
            short=knobs.short,
        )
    )


if __name__ == "__main__":
    main(load_tone, sys.argv[1:])
