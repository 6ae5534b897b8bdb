"""The command `firstword`: see docs/CLI.md, or `firstword --help`."""

from firstword.cli.app import main

__all__ = ["main"]
