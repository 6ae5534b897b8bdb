"""Writes the table of THIRD_PARTY.md anew: `python -m tools.third_party`. A test compares them."""

from __future__ import annotations

from pathlib import Path

from tools.image_requirements import FREE, IMAGES
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


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
