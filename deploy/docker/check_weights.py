"""While an image is built: are these the pinned weights and voices, all of them and no others?

`python check_weights.py ASSETS_JSON FOLDER`, with the standard library only.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path


def problems(manifest: Path, folder: Path) -> list[str]:
    """What is missing, what differs, and what should not be there."""
    pinned = {each["name"]: each["sha256"] for each in json.loads(manifest.read_text())["files"]}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    found = [f"{name}: missing" for name in sorted(pinned.keys() - there)]
    found += [f"{name}: not one of the pinned files" for name in sorted(there - pinned.keys())]
    for name in sorted(there & pinned.keys()):
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != pinned[name]:
            found.append(f"{name}: differs from the pinned file")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.exit("\n".join(wrong) or None)
