"""How a command finds the Firstword that runs on this machine.

`firstword up` publishes what it started in a run file; every other command reads it, unless
FIRSTWORD_REDIS_URL says which server to use.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from firstword.errors import FirstwordError

URL_VARIABLE = "FIRSTWORD_REDIS_URL"


class AlreadyRunning(FirstwordError):
    """Another `firstword up` lives: it has claimed the run file, or has published it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One `firstword up`: the server's URL, its own process id, and where each service listens."""

    url: str
    pid: int
    services: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's, so it is there
            return True
        return True

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """A run from a run file's text; None when it is not one. Unknown fields are ignored."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict):
            return None
        url, pid, services = fields.get("url"), fields.get("pid"), fields.get("services", {})
        # A process id of 0 or less would ask os.kill about groups of processes.
        if not isinstance(url, str) or type(pid) is not int or not 0 < pid < 2**31:
            return None
        if not _is_text_to_text(services):
            return None
        return cls(url, pid, services)


def path(environ: Mapping[str, str]) -> Path:
    """Where the run file is: per user, and gone after a reboot where the system offers that."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK | os.X_OK):
        return Path(runtime, "firstword", "run.json")
    cache = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "firstword", "run.json")


def find(environ: Mapping[str, str]) -> Run | None:
    """The run that is alive, or None. A stale or unreadable run file counts as none."""
    run = _read(path(environ))
    return run if run is not None and run.alive else None


def resolve_url(environ: Mapping[str, str]) -> str | None:
    """The server to use: FIRSTWORD_REDIS_URL, else that of the `firstword up` here, else None."""
    if url := environ.get(URL_VARIABLE):
        return url
    run = find(environ)
    return run.url if run else None


@contextlib.contextmanager
def claimed(environ: Mapping[str, str]) -> Iterator[None]:
    """Be the only run that may publish here, from its start on, for the length of the block.

    The kernel ends the claim with its holder, so none is ever stale; the lock file stays, since
    whoever removed it could remove another's. Raises `AlreadyRunning` if another holds the claim,
    `FirstwordError` where the lock file cannot be made.
    """
    file = path(environ).with_suffix(".lock")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise FirstwordError(
            "cannot_write",
            f"cannot write {file} ({error.strerror}): set XDG_RUNTIME_DIR or XDG_CACHE_HOME to a "
            "folder that can be written",
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                "already_running",
                "another `firstword up` is starting or stopping here: wait, or stop it first",
            ) from None
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def published(run: Run, environ: Mapping[str, str]) -> Iterator[Path]:
    """Publish `run` for the length of the block; raises `AlreadyRunning` if another run lives."""
    other = find(environ)
    if other is not None and other.pid != run.pid:
        raise AlreadyRunning(
            "already_running",
            f"Firstword already runs here as process {other.pid}, on {other.url}: "
            "use that one, or stop it first",
        )
    file = path(environ)
    _write(file, run)
    try:
        yield file
    finally:
        if _read(file) == run:  # not somebody else's by now
            file.unlink(missing_ok=True)


def _read(file: Path) -> Run | None:
    try:
        return Run.parse(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _write(file: Path, run: Run) -> None:
    """Whole or not at all, readable by its owner alone (the URL may hold a password)."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix="run.")  # mode 0600
    try:
        with open(handle, "w", encoding="utf-8") as out:
            json.dump(dataclasses.asdict(run), out, indent=1)
        os.replace(draft, file)
    except BaseException:
        os.unlink(draft)
        raise


def _is_text_to_text(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(text, str) for item in value.items() for text in item
    )
