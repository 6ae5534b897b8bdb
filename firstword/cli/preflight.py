"""What all services are told alike, looked at before any is started: a mistake is one line then,
and not the end of several logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firstword import logs, variables
from firstword.cli.console import Console
from firstword.redis_client import check_url_if_given
from firstword.runfile import URL_VARIABLE
from firstword.server_errors import without_password
from firstword.settings import load, setting


@dataclass(frozen=True, slots=True)
class _Common:
    """Read with `firstword.settings.load`."""

    redis_url: str = setting(
        "", URL_VARIABLE, "server in use", check=check_url_if_given, shown=without_password
    )
    log_level: str = setting("INFO", logs.LEVEL_VARIABLE, "of every log", check=logs.level_of)


def check(environ: Mapping[str, str], console: Console) -> None:
    """Note the variables of ours that nothing reads. Raises SettingsError."""
    for name, near in variables.unknown(environ):
        console.note(f"firstword: {variables.told(name, near)}")
    load(_Common, environ)
