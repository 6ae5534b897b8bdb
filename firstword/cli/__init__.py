"""The command `firstword`: see docs/CLI.md, or `firstword --help`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status. Ctrl-C is quiet while Python still imports, too."""
    try:
        from firstword.cli.app import main as run

        return run(argv)
    except KeyboardInterrupt:
        return _INTERRUPTED
