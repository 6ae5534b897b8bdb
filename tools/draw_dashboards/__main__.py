"""Watch, build, draw."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.dashboards.build import FOLDER
from tools.draw_dashboards import browser, hour

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "draw_dashboards"
PICTURES = ROOT / "docs" / "pictures"
NEEDED = {
    "prometheus": ("apt-get install prometheus", ("prometheus",)),
    "npm": ("Node.js 20 or later, with npm", ("npm",)),
    "chromium": ("apt-get install chromium", ("chromium", "chromium-browser")),
}


def main() -> int:
    """Draw them all; says why where something that it needs is not here."""
    parser = argparse.ArgumentParser(prog="python -m tools.draw_dashboards", description=__doc__)
    parser.add_argument("--to", type=Path, default=PICTURES, help="folder for the pictures")
    again = "run nothing: draw the dashboards as they are now from the answers of the last run"
    parser.add_argument("--again", action="store_true", help=again)
    options = parser.parse_args()
    found = {what: _found(names) for what, (_, names) in NEEDED.items()}
    found["chromium"] = os.environ.get("FIRSTWORD_TEST_CHROMIUM") or found["chromium"]
    missing = [what for what, path in found.items() if path is None]
    if missing:
        told = "; ".join(f"{what} ({NEEDED[what][0]})" for what in missing)
        print(f"nothing drawn: it needs {told}")
        return 1
    kept = BUILD / "answers.json"
    if options.again and not kept.exists():
        parser.error("there has been no run: call it without --again first")
    try:
        browser.build(BUILD)
    except subprocess.CalledProcessError as error:
        print(f"nothing drawn: `{' '.join(error.cmd)}` failed")
        return 1
    if not options.again:
        print(f"{hour.HOUR_S} s of load …")
        kept.write_text(json.dumps(asyncio.run(hour.watch())), encoding="utf-8")
    answers = json.loads(kept.read_text(encoding="utf-8"))
    options.to.mkdir(parents=True, exist_ok=True)
    for path in sorted(FOLDER.glob("*.json")):
        drawn = {"board": json.loads(path.read_text(encoding="utf-8")), **answers}
        picture = options.to / f"{path.stem}.png"
        empty = asyncio.run(browser.picture(BUILD, str(found["chromium"]), drawn, picture))
        print(f"{picture}" + "".join(f"\n  no data: {title}" for title in empty))
    return 0


def _found(names: tuple[str, ...]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


if __name__ == "__main__":
    sys.exit(main())
