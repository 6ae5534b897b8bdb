"""The real engine, loaded once for all tests of a run that carry the marker `model`."""

from __future__ import annotations

import os
from functools import cache

from firstword import assets
from services.inference.onnx import OnnxSynthesizer
from services.inference.text import Pronouncer

THREADS = 2


@cache
def pronouncer() -> Pronouncer:
    return Pronouncer()


@cache
def kokoro() -> OnnxSynthesizer:
    return OnnxSynthesizer(assets.locate(os.environ), pronouncer(), THREADS)
