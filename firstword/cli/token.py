"""`firstword token NAME`: a new token for the agent's doors, and what the agent is told of it."""

from __future__ import annotations

import argparse
import hashlib
import re
import secrets
from collections.abc import Mapping

from firstword.cli.console import Console
from firstword.errors import FirstwordError

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}", re.ASCII)


def run(options: argparse.Namespace, console: Console, _environ: Mapping[str, str]) -> int:
    """Print the token once; nobody can make it again from its hash."""
    if not _NAME.fullmatch(options.name):
        raise FirstwordError(
            "bad_name", "a token's name is 1 to 32 characters of A-Z a-z 0-9 . _ -"
        )
    token = secrets.token_urlsafe(32)
    entry = f"{options.name}:{hashlib.sha256(token.encode()).hexdigest()}"
    console.say(token)
    console.note("That is the token: the caller keeps it, and it is not shown again.")
    console.note(f"For the agent: FIRSTWORD_API_TOKENS={entry}")
    console.note("(several with commas between)")
    return 0
