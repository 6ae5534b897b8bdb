"""The real inference service around the stamp double: `python -m tests.doubles.stamp_inference`.

Takes the settings of the real one, and the double's knobs from FIRSTWORD_STAMP_….
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from firstword.runtime import load_settings
from firstword.settings import setting
from services.inference.__main__ import main
from services.inference.settings import InferenceSettings
from tests.doubles.stamp_synthesizer import StampOptions, StampSynthesizer


@dataclass(frozen=True, slots=True)
class StampSettings:
    """`StampOptions`, from the environment."""

    name: str = setting("stamp 1", "FIRSTWORD_STAMP_NAME", "Name of the engine, part of plans.")
    ms_per_char: float = setting(15.0, "FIRSTWORD_STAMP_MS_PER_CHAR", "Audio per character.")
    chars_per_piece: int = setting(10, "FIRSTWORD_STAMP_CHARS_PER_PIECE", "Piece.", minimum=1)
    rtf: float = setting(0.0, "FIRSTWORD_STAMP_RTF", "Work per second of audio.", minimum=0)
    hangs_on: str = setting("", "FIRSTWORD_STAMP_HANGS_ON", "A text that is never spoken.")


def load_stamp(_settings: InferenceSettings) -> StampSynthesizer:
    knobs = load_settings(StampSettings, [], os.environ)
    return StampSynthesizer(
        StampOptions(
            knobs.name, knobs.ms_per_char, knobs.chars_per_piece, knobs.rtf, knobs.hangs_on
        )
    )


if __name__ == "__main__":
    main(load_stamp, sys.argv[1:])
