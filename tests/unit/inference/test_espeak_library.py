"""espeak where the temporary folder may not hold programs."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from pathlib import Path
from typing import Any

import espeakng_loader
import pytest

from services.inference.g2p import espeak_library
from services.inference.g2p.espeak_library import EspeakError, load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files in memory are Linux's")

LIBRARY, DATA = espeakng_loader.get_library_path(), espeakng_loader.get_data_path()


@pytest.fixture
def noexec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As the loader of a system that has mounted the folder so."""
    load_library = ctypes.CDLL

    def refusing(name: Any, *rest: Any, **options: Any) -> ctypes.CDLL:
        if str(name).startswith(str(tmp_path)):
            raise OSError(f"{name}: failed to map segment from shared object")
        return load_library(name, *rest, **options)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ctypes.cdll, "LoadLibrary", refusing)


def spoken(library: Any, voice: bytes, text: bytes) -> bytes:
    assert library.set_voice_by_name(voice) == 0
    place = ctypes.pointer(ctypes.c_char_p(text))
    return bytes(library.text_to_phonemes(place, 1, 2))


@pytest.mark.usefixtures("noexec")
def test_it_is_loaded_from_memory_and_each_copy_has_its_own_voice() -> None:
    one, other = load(LIBRARY, DATA), load(LIBRARY, DATA)
    assert isinstance(one, espeak_library._InMemory)
    english = spoken(one, b"en-us", b"thanks")
    assert spoken(other, b"es", b"gracias") != english
    place = ctypes.pointer(ctypes.c_char_p(b"thanks"))
    assert one.text_to_phonemes(place, 1, 2) == english, "its voice is still English"
    assert one.library_path == Path(LIBRARY)


@pytest.mark.usefixtures("noexec")
def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    load(LIBRARY, DATA)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("noexec")
def test_where_neither_is_possible_it_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> int:
        raise PermissionError("not allowed")

    monkeypatch.setattr("os.memfd_create", refused)
    with pytest.raises(EspeakError, match="mount the folder with `exec`"):
        load(LIBRARY, DATA)


def test_elsewhere_it_is_as_ever() -> None:
    assert not isinstance(load(LIBRARY, DATA), espeak_library._InMemory)
