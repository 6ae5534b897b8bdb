"""A bill of materials for each image, CycloneDX 1.6 in JSON: `python -m tools.sbom [FOLDER]`.

What Python installs, from the files that the images are built of; Debian's packages come with the
base image, whose makers tell of those. The same input makes the same bytes, on any Python: what is
not installed where this runs has the licence that THIRD_PARTY.md gives.
"""

from __future__ import annotations

import hashlib
import json
import sys
import uuid
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from firstword.assets import load_manifest
from tools.image_requirements import ADDITIONS, IMAGES, PYTHON
from tools.packages import Package, of_image
from tools.third_party import PAGE, recorded

FOLDER = Path("build") / "sbom"
UNKNOWN = "firstword:licence-unknown"
"""The property of a component whose licence could not be looked up, with the reason."""


def bill(image: str) -> dict[str, Any]:
    """The document of one image, or of what is added to one."""
    version = metadata.version("firstword")
    components = [component(package) for package in of_image(image)]
    if image.startswith("inference"):
        components += weights()
    told = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application" if image in ADDITIONS else "container",
                "bom-ref": f"firstword-{image}",
                "name": f"firstword/{image}",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
    }
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()
    return {**told, "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"}


def component(package: Package) -> dict[str, Any]:
    """One package. Its sums are those of all files that may be installed: one of them is."""
    reference = f"pkg:pypi/{package.name}@{package.version}"
    properties = [{"name": "firstword:sha256", "value": each} for each in package.sums]
    known = licence(package)
    if known is None:
        properties.append({"name": UNKNOWN, "value": "not installed where this was made"})
    return {
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
        "purl": reference,
        "licenses": [] if known is None else [{"license": {"name": known}}],
        "properties": properties,
    }


def licence(package: Package) -> str | None:
    """As declared; of a package that is not installed here (some need the images' Python) as it was
    when THIRD_PARTY.md was made. None if that has not this version."""
    try:
        return package.licence
    except metadata.PackageNotFoundError:
        return _recorded().get((package.name, package.version))


@cache
def _recorded() -> dict[tuple[str, str], str]:
    return recorded(PAGE.read_text("utf-8"))


def weights() -> list[dict[str, Any]]:
    """The model and its voices, which are in the image or mounted."""
    manifest = load_manifest()
    return [
        {
            "type": "machine-learning-model" if asset is manifest.model else "data",
            "bom-ref": asset.name,
            "name": asset.name,
            "version": manifest.version,
            "hashes": [{"alg": "SHA-256", "content": asset.sha256}],
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        }
        for asset in manifest.files
    ]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    unknown: set[str] = set()
    for image in (*IMAGES, *ADDITIONS):
        told = bill(image)
        unknown |= {each["name"] for each in told["components"] if not each["licenses"]}
        path = folder / f"{image}.cdx.json"
        path.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
        print(path)
    if unknown:
        print(
            f"without a licence, as they are neither installed here nor in {PAGE.name}: "
            f"{', '.join(sorted(unknown))}. Make these with Python {PYTHON}, which the images "
            "have, and everything installed (make install)",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
