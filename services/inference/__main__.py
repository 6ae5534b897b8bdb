"""Starts the inference service: `python -m services.inference [serve]`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from firstword import assets, telemetry
from firstword.errors import FirstwordError
from firstword.limits import usable_cores
from firstword.runtime import HttpServer, announce_ready, load_settings, run
from services.inference import lexicon
from services.inference.lexicon import Lexicon, LexiconError
from services.inference.service import InferenceService
from services.inference.settings import InferenceSettings
from services.inference.speaker import Speaker
from services.inference.synthesizer import Synthesizer

if TYPE_CHECKING:
    from services.inference.text import Pronouncer

SERVICE = "inference"


def load_engine(settings: InferenceSettings) -> Synthesizer:
    """Kokoro-82M from the assets that are installed here, by the engine that is set."""
    # Imported in the engine's thread, not before: it takes seconds, and `/ping` answers meanwhile.
    threads = threads_of(settings)
    found = assets.locate(os.environ)
    if settings.engine == "torch":
        return _torch_engine(found, threads, settings)
    from services.inference.onnx import OnnxSynthesizer

    return OnnxSynthesizer(found, _pronouncer(settings), threads, settings.device)


def threads_of(settings: InferenceSettings) -> int:
    """Threads of one synthesis: what is set, else the share of a worker in our cores."""
    return settings.threads or max(1, usable_cores() // settings.workers)


def _torch_engine(found: assets.Assets, threads: int, settings: InferenceSettings) -> Synthesizer:
    if find_spec("torch") is None:
        message = (
            "FIRSTWORD_INFERENCE_ENGINE=torch, but torch is not installed here: "
            "`pip install 'torch>=2.10'`; docs/INFERENCE.md says more"
        )
        raise FirstwordError("engine_missing", message)
    from services.inference.torch import TorchOptions, TorchSynthesizer

    options = TorchOptions(
        settings.device,
        settings.precision,
        threads,
        settings.max_batch,
        everything=settings.batch == "everything",
    )
    return TorchSynthesizer(found, _pronouncer(settings), options)


def _pronouncer(settings: InferenceSettings) -> Pronouncer:
    from services.inference.text import Pronouncer

    if not settings.lexicon:
        return Pronouncer()
    own = read_lexicon(Path(settings.lexicon))  # before the seconds that the rest takes
    return Pronouncer().with_lexicon(own)


def read_lexicon(path: Path) -> Lexicon:
    """The service's own pronunciations. Raises LexiconError saying what is wrong with the file."""
    try:
        return lexicon.read(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        told = f"FIRSTWORD_INFERENCE_LEXICON: {path} cannot be read as JSON ({error})"
        raise LexiconError("bad_lexicon", told) from None


async def serve(
    settings: InferenceSettings, load: Callable[[], Synthesizer], stop: asyncio.Event
) -> None:
    """Serve until `stop`, then drain. Raises what the engine raises if it cannot be loaded."""
    speaker = Speaker(load, settings)
    service = InferenceService(speaker, settings)
    server = HttpServer(service.app(), settings.host, settings.port, word="INFERENCE")
    await server.start()
    telemetry.logger().info("listening", address=server.address)
    try:
        if await _started(speaker, stop):
            announce_ready(SERVICE, http=server.address, engine=speaker.name)
            await stop.wait()
            await service.drain()
    finally:
        await server.stop()
        speaker.close()
    if speaker.busy:
        # An engine that obeyed no stop would keep the interpreter from ending.
        telemetry.logger().error("ended_while_a_synthesis_hung")
        sys.stdout.flush()
        os._exit(1)


async def _started(speaker: Speaker, stop: asyncio.Event) -> bool:
    """Load the engine; False if we are told to stop before it is there."""
    loading = asyncio.create_task(speaker.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not loading.done():
        loading.cancel()
        return False
    await loading
    return True


def main(load: Callable[[InferenceSettings], Synthesizer], argv: list[str]) -> None:
    """The process: settings, signals, exit status. The word `serve` may stand in `argv`."""
    settings = load_settings(InferenceSettings, argv, os.environ, words=("serve",))
    run(SERVICE, lambda stop: serve(settings, lambda: load(settings), stop))


if __name__ == "__main__":
    main(load_engine, sys.argv[1:])
