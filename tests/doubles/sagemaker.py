"""A container double behind SageMaker: the emulator before it, and the URL that leads there."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote, urlsplit

from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings

REGION = "us-east-1"
MISSING = ""
"""Why the upstream cannot be used here."""
try:
    import services.tts_gateway.sagemaker  # noqa: F401 - here, as imports block the loop
except ImportError as error:
    MISSING = f"the SDK of SageMaker's streams needs Python 3.12: {error.name} is not there"


@dataclass(frozen=True)
class SageMaker:
    """What `emulated` gives."""

    emulator: Emulator
    url: str
    """For the gateway's upstream: `sagemaker://…`; more parameters may follow."""
    told: list[str]
    """What the emulator says of its streams."""


@asynccontextmanager
async def emulated(container_url: str, *faults: str, **settings: Any) -> AsyncIterator[SageMaker]:
    """SageMaker before a container, with the credentials that it knows in the environment."""
    parts = urlsplit(container_url)
    told: list[str] = []
    options = Settings(f"ws://{parts.hostname}:{parts.port}", region=REGION, **settings)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, _only(options)):
        async with Emulator(options, faults, tell=told.append) as emulator:
            ca = Path(folder) / "ca.pem"
            await asyncio.to_thread(ca.write_bytes, emulator.ca_pem)
            yield SageMaker(emulator, url(emulator.uri, str(ca)), told)


def url(endpoint_uri: str, ca: str = "") -> str:
    """An upstream's URL of an endpoint `speech` at this address."""
    trusted = f"&ca={quote(ca)}" if ca else ""
    return f"sagemaker://speech?region={REGION}&endpoint_uri={quote(endpoint_uri)}{trusted}"


def _only(options: Settings) -> dict[str, str]:
    """An environment in which nothing but the emulator's credentials can be found."""
    variables = {
        "AWS_ACCESS_KEY_ID": options.key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": options.key.secret,
        "AWS_SESSION_TOKEN": options.key.session_token or "",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    return {name: value for name, value in variables.items() if value}
