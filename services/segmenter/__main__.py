"""`python -m services.segmenter`: wires the segmenter and runs it."""

from __future__ import annotations

import asyncio
import os
import sys

from firstword.runtime import load_settings, run
from services.segmenter.service import STAGE, SegmenterService
from services.segmenter.settings import SegmenterSettings


def main() -> None:
    settings = load_settings(SegmenterSettings, sys.argv[1:], os.environ)

    async def serve(stop: asyncio.Event) -> None:
        await SegmenterService(settings).run(stop)

    run(STAGE, serve)


if __name__ == "__main__":
    main()
