"""Every report that tests/reports.md lists is shown by a test, or the page says why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "reports.md").read_text(encoding="utf-8")

LISTED = [
    report for line in re.findall(r"^    \w+: (.+)$", PAGE, re.MULTILINE) for report in line.split()
]
ROWS = re.findall(r"^\| \[(A\d{3})\]\(https://\S+\) \| [^|]+ \| ([^|]*)\|$", PAGE, re.MULTILINE)
NAMED = re.findall(r"`(tests/[\w/.]+)::(test_\w+)`", PAGE)
REASONS = ("Not here: ", "Later: ", "Open: ")


def _shown() -> set[str]:
    """Reports with a test that has their id in its name."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        source = path.read_text(encoding="utf-8")
        for ids in re.findall(r"def test_((?:a\d{3}_)+)\w*\(", source):
            found |= set(ids.upper().strip("_").split("_"))
    return found


SHOWN = _shown()


def test_the_page_has_a_row_for_each_report_and_for_no_other() -> None:
    assert LISTED
    assert [report for report, _ in ROWS] == LISTED
    assert len(set(LISTED)) == len(LISTED)


@pytest.mark.parametrize(("report", "said"), ROWS, ids=[report for report, _ in ROWS])
def test_a_report_is_shown_or_the_reason_is_told(report: str, said: str) -> None:
    elsewhere = "::test_" in said
    assert report in SHOWN or elsewhere or said.startswith(REASONS), (
        f"{report}: write a test named test_{report.lower()}_…, name the one that shows it, or "
        f"say why not, beginning with one of {REASONS}"
    )


def test_tests_carry_no_id_that_is_not_listed() -> None:
    assert set(LISTED) >= SHOWN


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_a_test_that_the_page_names_is_there(path: str, name: str) -> None:
    assert f"def {name}(" in (TESTS.parent / path).read_text(encoding="utf-8")
