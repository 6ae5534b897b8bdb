"""Write them all."""

from __future__ import annotations

import sys

from tools.dashboards.build import BOARDS, FOLDER, built


def main() -> int:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for board in BOARDS:
        (FOLDER / f"{board.name}.json").write_text(built(board), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
