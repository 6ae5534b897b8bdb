"""What programs that look at a backend have in common: doctor and capacity."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from firstword.runtime import load_settings
from firstword.session_address import whole
from services.tts_gateway.__main__ import upstream_or_exit
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Upstream


def parser(prog: str, description: str) -> argparse.ArgumentParser:
    """Which backend, and what it is to speak with."""
    made = argparse.ArgumentParser(prog=prog, description=description)
    made.add_argument("--upstream", help="its URL (default: FIRSTWORD_UPSTREAM)")
    made.add_argument("--voice", default="", help="a voice that it has (default: its own)")
    return made


def backend(
    options: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[Upstream, GatewaySettings]:
    """The backend that is meant; settings as the gateway's, its URL with the path that is used.

    Wrong ones end the program.
    """
    named = {"FIRSTWORD_UPSTREAM": options.upstream} if options.upstream else {}
    settings = load_settings(GatewaySettings, [], {**environ, **named})
    return upstream_or_exit(settings), replace(settings, upstream=whole(settings.upstream))


def tell_json(told: Mapping[str, Any]) -> None:
    """One line of standard output, at once."""
    sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    sys.stdout.flush()
