"""Writes the table of THIRD_PARTY.md anew: `python -m tools.third_party`. A test compares them."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from tools.image_requirements import FREE, IMAGES, PYTHON
from tools.packages import all_packages

PAGE = Path(__file__).resolve().parent.parent / "THIRD_PARTY.md"
BEGIN, END = "<!-- begin: tools/third_party.py -->\n", "<!-- end -->\n"


def rows() -> str:
    """A row a package: what it is under, which images hold it, whether GPL-free ones do, too."""
    lines = ["| package | version | licence as declared | in | GPL-free |", "|---|---|---|---|---|"]
    for package, images in all_packages().items():
        where = ", ".join(image for image in images if not image.endswith(FREE))
        variants = {f"{image}{FREE}" for image in images} & IMAGES.keys()
        left_out = "left out" if variants and not variants & set(images) else ""
        lines.append(
            f"| {package.name} | {package.version} | {package.licence} | {where} | {left_out} |"
        )
    return "\n".join(lines) + "\n"


def renewed(page: str) -> str:
    """The page with the table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{rows()}{END}{after}"


def recorded(page: str) -> dict[tuple[str, str], str]:
    """The licences in the table, by package and version: what was declared when it was made."""
    _, _, rest = page.partition(BEGIN)
    table, _, _ = rest.partition(END)
    found = re.findall(r"^\| (\S+) \| (\S+) \| (.+?) \| ", table, re.MULTILINE)
    return {(name, version): licence for name, version, licence in found}


def main() -> None:
    try:
        page = renewed(PAGE.read_text("utf-8"))
    except PackageNotFoundError as error:
        sys.exit(
            f"{error.name} is not installed here, so that its licence cannot be looked up: install "
            f"everything with Python {PYTHON}, which the images have (make install)"
        )
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
