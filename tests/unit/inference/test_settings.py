"""The pronunciations that a service is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstword.errors import FirstwordError
from services.inference.__main__ import read_lexicon


def test_a_file_of_pronunciations_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.json"
    path.write_text('{"SQL": "sequel"}', "utf-8")
    assert read_lexicon(path).said("SQL", "en-us") == "sequel"


@pytest.mark.parametrize("text", ["", "{", '["SQL"]', '{"SQL": 1}'])
def test_a_file_that_is_none_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lexicon.json"
    path.write_text(text, "utf-8")
    with pytest.raises(FirstwordError, match="bad_lexicon"):
        read_lexicon(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FirstwordError, match=r"nothing\.json"):
        read_lexicon(tmp_path / "nothing.json")
