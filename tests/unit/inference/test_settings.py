"""What a service is started with: threads, and pronunciations of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstword.errors import FirstwordError
from services.inference import __main__ as program
from services.inference.__main__ import read_lexicon
from services.inference.settings import InferenceSettings


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


@pytest.mark.parametrize(
    ("threads", "workers", "each"), [(0, 1, 4), (0, 3, 1), (0, 8, 1), (6, 2, 6)]
)
def test_the_cores_that_it_may_use_are_shared_out(
    threads: int, workers: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "usable_cores", lambda: 4)
    assert program.threads_of(InferenceSettings(threads=threads, workers=workers)) == each
