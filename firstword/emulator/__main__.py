"""`python -m firstword.emulator`: the emulator as one of the services that `firstword up` starts.

For people there is `firstword emulate-sagemaker`; this one is told by the environment and says
where it listens as services do.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings
from firstword.runtime import announce_ready, load_settings, run
from firstword.settings import setting
from firstword.telemetry import logger

STAGE = "sagemaker"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Read with `firstword.settings.load`."""

    container: str = setting(
        "ws://127.0.0.1:8080", "FIRSTWORD_EMULATOR_CONTAINER", "ws://host:port of the container"
    )
    port: int = setting(
        0, "FIRSTWORD_EMULATOR_PORT", "its port; 0 picks a free one", minimum=0, maximum=65535
    )
    ca_file: str = setting(
        "emulator-ca.pem", "FIRSTWORD_EMULATOR_CA", "where the certificate goes that clients trust"
    )


def main() -> None:
    settings = load_settings(ServiceSettings, sys.argv[1:], os.environ)

    async def serve(stop: asyncio.Event) -> None:
        options = Settings(settings.container, port=settings.port)
        async with Emulator(options, tell=lambda line: logger().info("stream", what=line)) as here:
            await asyncio.to_thread(Path(settings.ca_file).write_bytes, here.ca_pem)
            announce_ready(STAGE, http=urlsplit(here.uri).netloc)
            await stop.wait()

    run(STAGE, serve)


if __name__ == "__main__":
    main()
