"""`python -m services.agent`: wires the agent and runs it."""

from __future__ import annotations

import os
import sys

from firstword.runtime import load_settings, run
from services.agent.scripted import ScriptedSource
from services.agent.service import NAME, AgentService
from services.agent.settings import AgentSettings


def main() -> None:
    settings = load_settings(AgentSettings, sys.argv[1:], os.environ)
    service = AgentService(settings, ScriptedSource)
    run(NAME, service.run)


if __name__ == "__main__":
    main()
