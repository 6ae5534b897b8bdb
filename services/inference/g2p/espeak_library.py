"""espeak's library, loaded also where the temporary folder may not hold programs.

The library keeps its state in globals, so phonemizer gives each of its users a copy, which it puts
into the temporary folder and loads from there. Hardened machines mount that folder `noexec`. There
the copy goes into a file that exists in memory only.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from pathlib import Path
from typing import Any

from phonemizer.backend.espeak import wrapper
from phonemizer.backend.espeak.api import EspeakAPI

from firstword.errors import FirstwordError

_SYNCHRONOUS = 0x02
"""espeak's AUDIO_OUTPUT_SYNCHRONOUS, as phonemizer asks for."""


class EspeakError(FirstwordError):
    """espeak cannot be loaded here; the message says what to do."""


def install() -> None:
    """Let phonemizer load the library by `load`."""
    wrapper.EspeakAPI = load


def load(library: str, data_path: str | None) -> Any:
    """A copy of the library with a state of its own. Raises EspeakError."""
    try:
        return EspeakAPI(library, data_path)
    except OSError:
        pass  # nothing may be run from there, or nothing written to it
    try:
        return _InMemory(library, data_path)
    except (AttributeError, OSError) as error:
        message = (
            f"espeak's library can be loaded neither from the temporary folder nor from memory "
            f"({error}): mount the folder with `exec`, or let TMPDIR name one that is, or leave "
            "espeakng-loader out (docs/DEPLOY.md says what that gives up)"
        )
        raise EspeakError("espeak_missing", message) from None


class _InMemory(EspeakAPI):  # type: ignore[misc] # phonemizer has no types
    """As its base, but for where the copy is."""

    def __init__(self, library: str, data_path: str | None) -> None:
        # The loader knows libraries by name: the file stays open, so that nobody gets its number.
        file = os.memfd_create("espeak")
        try:
            with open(file, "wb", closefd=False) as copy:
                copy.write(Path(library).read_bytes())
            self._library = ctypes.CDLL(f"/proc/self/fd/{file}")
        except OSError:
            os.close(file)
            raise
        weakref.finalize(self, _end, self._library, file)
        self._library_path = Path(library)
        place = None if data_path is None else os.fsencode(data_path)
        if self._library.espeak_Initialize(_SYNCHRONOUS, 0, place, 0) <= 0:
            raise OSError("it does not start")


def _end(library: ctypes.CDLL, file: int) -> None:
    library.espeak_Terminate()
    os.close(file)
