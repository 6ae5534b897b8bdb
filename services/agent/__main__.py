"""`python -m services.agent`: picks the token source, wires the agent and runs it."""

from __future__ import annotations

import asyncio
import os
import sys

from firstword.runtime import load_settings, run
from services.agent.service import NAME, AgentService
from services.agent.settings import AgentSettings
from services.agent.sources import chosen


def main() -> None:
    settings = load_settings(AgentSettings, sys.argv[1:], os.environ)

    async def serve(stop: asyncio.Event) -> None:
        async with chosen(settings) as make_source:
            service = await asyncio.to_thread(AgentService, settings, make_source)
            await service.run(stop)

    run(NAME, serve)


if __name__ == "__main__":
    main()
