"""`python -m services.tts_gateway`: picks the upstream, wires the gateway and runs it."""

from __future__ import annotations

import asyncio
import os
import sys

from firstword.errors import SettingsError
from firstword.runtime import load_settings, run
from services.tts_gateway.openai import OpenAIUpstream
from services.tts_gateway.openai_frames import SCHEMES as OPENAI_SCHEMES
from services.tts_gateway.sagemaker_target import SCHEME as SAGEMAKER_SCHEME
from services.tts_gateway.sagemaker_target import parse as parse_target
from services.tts_gateway.service import STAGE, GatewayService
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Upstream
from services.tts_gateway.websocket import WebSocketUpstream


def upstream_for(settings: GatewaySettings) -> Upstream:
    """The adapter that the scheme of the upstream's URL names. Raises SettingsError."""
    url = settings.upstream
    scheme = url.partition(":")[0]
    if scheme in ("ws", "wss"):
        return WebSocketUpstream(url)
    if scheme in OPENAI_SCHEMES:
        return OpenAIUpstream(url, settings.openai_api_key)
    if scheme == SAGEMAKER_SCHEME:
        return _sagemaker(url)
    known = ", ".join(f"{name}://" for name in ("ws", "wss", *OPENAI_SCHEMES, SAGEMAKER_SCHEME))
    hints = {
        "http": ": a container is ws://, a speech server openai+http://",
        "https": ": a container is wss://, a speech server openai+https://",
    }
    told = f"FIRSTWORD_UPSTREAM={url!r} (or --upstream): must begin with one of {known}"
    raise SettingsError([told + hints.get(scheme, "")])


def _sagemaker(url: str) -> Upstream:
    target = parse_target(url)
    try:
        from services.tts_gateway.sagemaker import SageMakerUpstream
    except ImportError as error:
        why = f"needs Python 3.12 and pip install 'firstword[gateway]' ({error.name} is not there)"
        raise SettingsError([f"FIRSTWORD_UPSTREAM={url!r}: {why}"]) from error
    return SageMakerUpstream(target)


def upstream_or_exit(settings: GatewaySettings) -> Upstream:
    """The same for a program: a wrong URL ends it with status 2 and one line."""
    try:
        return upstream_for(settings)
    except SettingsError as error:
        sys.stderr.write(f"{error.message}\n")
        raise SystemExit(2) from None


def main() -> None:
    settings = load_settings(GatewaySettings, sys.argv[1:], os.environ)
    upstream = upstream_or_exit(settings)

    async def serve(stop: asyncio.Event) -> None:
        await GatewayService(settings, upstream).run(stop)

    run(STAGE, serve)


if __name__ == "__main__":
    main()
