"""What the way through SageMaker's protocol costs: first audio of 300 sentences on each way.

    python -m benchmarks.upstreams

A container with a tone for a voice answers over a plain WebSocket, and through the emulator and the
official SDK: with our transport, and with the SDK's own, whose requests wait now and then for the
acknowledgement of what went before. The ways take turns, sentence by sentence, in the same run.
The emulator checks every signature in Python: its own share is in the figure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from unittest import mock

import structlog

from benchmarks import figures, machine
from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings
from firstword.session_protocol import Synthesize, encode_client
from services.tts_gateway.upstream import Link, Upstream
from services.tts_gateway.websocket import WebSocketUpstream

SENTENCES = 300
STALL_MS = 30.0
PATH = "/invocations-bidirectional-stream"
TEXT = "The next train to the coast leaves at a quarter past nine."
KEYS = {"AWS_ACCESS_KEY_ID": Settings("").key.access_key_id}
KEYS |= {"AWS_SECRET_ACCESS_KEY": Settings("").key.secret, "AWS_EC2_METADATA_DISABLED": "true"}


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table; about a minute. `emulator URL` runs the emulator, for its own process."""
    if arguments:
        asyncio.run(_emulate(arguments[1]))
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    print(machine.describe())
    if (noise := machine.noise()) is not None:
        print(f"WARNING: {noise}")
    try:
        results = asyncio.run(_measure())
    except ImportError as error:
        print(f"not measured: {error.name} is not there; the SDK needs Python 3.12")
        return
    print(f"\nsynthesis request sent to first audio, {SENTENCES} sentences on each way\n")
    head = ("way", "p50 ms", "p95 ms", "p99 ms", "worst ms", f"over {STALL_MS:g} ms")
    print(figures.table(head, [_line(name, values) for name, values in results.items()]))


async def _measure() -> dict[str, list[float]]:
    """Milliseconds, by way."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(mock.patch.dict(os.environ, KEYS))
        ready = await stack.enter_async_context(_process("tests.doubles.tone_inference"))
        container = f"ws://{ready['http']}"
        emulator = await stack.enter_async_context(
            _process("benchmarks.upstreams", "emulator", container)
        )
        ca = Path(folder, "ca.pem")
        await asyncio.to_thread(ca.write_text, emulator["ca"])
        url = f"sagemaker://bench?region=us-east-1&endpoint_uri={emulator['uri']}&ca={ca}"
        ways: dict[str, Upstream] = {"WebSocket": WebSocketUpstream(container + PATH)}
        ways |= _sagemaker(url)
        links: dict[str, Link] = {}
        for name, upstream in ways.items():
            links[name] = await upstream.connect()
            stack.push_async_callback(upstream.close)
            stack.push_async_callback(links[name].close)
        return await _take_turns(links)


def _sagemaker(url: str) -> dict[str, Upstream]:
    from smithy_http.aio.crt import AWSCRTHTTPClient

    from services.tts_gateway import sagemaker
    from services.tts_gateway.sagemaker_target import parse
    from services.tts_gateway.sagemaker_transport import Transport

    class Stock(Transport):
        """With the SDK's own way to connect."""

        _build_new_connection = AWSCRTHTTPClient._build_new_connection

    class StockUpstream(sagemaker.SageMakerUpstream):
        async def connect(self) -> Link:
            with mock.patch.object(sagemaker, "Transport", Stock):
                return await super().connect()

    return {
        "SageMaker, emulated": sagemaker.SageMakerUpstream(parse(url)),
        "the same, the SDK's own transport": StockUpstream(parse(url)),
    }


async def _take_turns(links: Mapping[str, Link]) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in links}
    for n in range(SENTENCES + 10):
        for name, link in links.items():
            ms = await _speak(link, f"{n}")
            if n >= 10:  # the first few warm up
                took[name].append(ms)
    return took


async def _speak(link: Link, id: str) -> float:
    """Milliseconds from a request to its first audio; returns when all of it is there."""
    begun = time.perf_counter()
    await link.send(encode_client(Synthesize(id, TEXT)))
    first = 0.0
    while True:
        frame, _ = await link.receive()
        if isinstance(frame, bytes):
            first = first or time.perf_counter()
        elif json.loads(frame)["type"] == "synthesis_complete":
            return (first - begun) * 1000


def _line(name: str, values: Sequence[float]) -> tuple[str, ...]:
    quantiles = [figures.quantile(values, share) for share in (0.5, 0.95, 0.99, 1.0)]
    stalls = sum(value > STALL_MS for value in values)
    return (name, *(f"{value:.1f}" for value in quantiles), str(stalls))


# -- processes ------------------------------------------------------------------------------------


async def _emulate(container: str) -> None:
    async with Emulator(Settings(container)) as emulator:
        print(json.dumps({"uri": emulator.uri, "ca": emulator.ca_pem.decode()}), flush=True)
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def _process(module: str, *arguments: str) -> AsyncIterator[Mapping[str, str]]:
    """A module of ours as a process; gives the first JSON line that says where it is."""
    environ = {**os.environ, "FIRSTWORD_INFERENCE_PORT": "0"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments), stdout=asyncio.subprocess.PIPE, env=environ
    )
    assert process.stdout is not None
    drain: asyncio.Task[bytes] | None = None
    try:
        told: Mapping[str, str] = {}
        while not {"uri", "http"} & told.keys():
            told = json.loads(await process.stdout.readline())
        drain = asyncio.create_task(process.stdout.read())
        yield told
    finally:
        process.terminate()
        await process.wait()
        if drain is not None:
            await drain


if __name__ == "__main__":
    main(sys.argv[1:])
