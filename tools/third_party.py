"""Writes the table of THIRD_PARTY.md anew: `python -m tools.third_party`. A test compares them."""

from __future__ import annotations

from pathlib import Path

from tools.packages import all_packages

PAGE = Path(__file__).resolve().parent.parent / "THIRD_PARTY.md"
BEGIN, END = "<!-- begin: tools/third_party.py -->\n", "<!-- end -->\n"


def rows() -> str:
    """A row a package: what it is under, and which images hold it."""
    lines = ["| package | version | licence as declared | in |", "|---|---|---|---|"]
    for package, images in all_packages().items():
        where = ", ".join(images)
        lines.append(f"| {package.name} | {package.version} | {package.licence} | {where} |")
    return "\n".join(lines) + "\n"


def renewed(page: str) -> str:
    """The page with the table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{rows()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
