"""Which checkpoints torch is given, by name and content; to be read without torch."""

from __future__ import annotations

from typing import Final

ORIGINAL: Final = "kokoro-v1_0.pth"
ORIGINAL_SHA256: Final = "496dba118d1a58f5f3db2efc88dbdc216e0483fc89fe6e47ee1f2c53f18ad1e4"
"""Of the file that hexgrad/Kokoro-82M publishes."""

DEQUANTISED: Final = "kokoro-v1.0.dequantised.pth"
DEQUANTISED_SHA256: Final = "6f43c6d5bbfa6d7dd3db8c2a96ca33db38b8a8c63df859ed485fff846dedf602"
"""Of the tensors that `dequantise` makes from the pinned int8 graph (`weights.digest`)."""
