"""A Docker engine for the tests of the images: the one that answers here, or one of our own.

Ours is Debian's, unpacked below build/containers, where nothing else sees it: no bridge, no
firewall rules, containers on this machine's network. It is stopped with all that runs in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import eventually_sync

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build" / "containers"
UNPACKED = FOLDER / "unpacked"
ENGINE = (
    *("docker.io", "containerd", "runc", "mmdebstrap"),
    *("iptables", "libip4tc2", "libip6tc2", "libxtables12"),
    *("libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11"),
)
PLUGINS = ("docker-compose", "docker-buildx")
PLUGINS_FROM = "trixie"
"""Debian 12 has neither of the two; these run there."""
START_S = 30
STOP_S = 60


class NoEngine(Exception):
    """No engine answers, and none can be started here; the message says why."""


@dataclass(frozen=True, slots=True)
class Engine:
    """`environment` is what the `docker` command must be run with; `ours` that we started it."""

    ours: bool
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def docker(
        self, *arguments: str, timeout: float = 600, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `docker …` in the repository's root; Raises on a failure."""
        done = subprocess.run(
            ["nice", "docker", *arguments],
            cwd=ROOT,
            env={**self.environment, **(variables or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode:
            told = "\n".join([*done.stdout.splitlines()[-30:], *done.stderr.splitlines()[-30:]])
            raise AssertionError(f"docker {' '.join(arguments)}: exit {done.returncode}\n{told}")
        return done

    def has(self, image: str) -> bool:
        """Whether the image is there, or can be pulled within a moment."""
        for command in (["image", "inspect", image], ["pull", "--quiet", image]):
            try:
                self.docker(*command, timeout=60)
            except (AssertionError, subprocess.TimeoutExpired):
                continue
            return True
        return False


@contextmanager
def engine() -> Iterator[Engine]:
    """An engine with compose. Raises NoEngine."""
    if _answers(dict(os.environ)) and _works(["docker", "compose", "version"], dict(os.environ)):
        yield Engine(ours=False)
        return
    _unpack()
    with tempfile.TemporaryDirectory(prefix="engine-", dir="/tmp") as run:  # short, for the socket
        environment = _environment(Path(run))
        log = FOLDER / "dockerd.log"
        with log.open("w") as out:
            daemon = subprocess.Popen(
                _daemon(Path(run)), env=environment, stdout=out, stderr=out, start_new_session=True
            )
        try:
            try:
                eventually_sync(
                    lambda: daemon.poll() is not None or _answers(environment), "it ends", START_S
                )
            except AssertionError:
                raise NoEngine(f"the engine does not start: {log}") from None
            if daemon.poll() is not None:
                raise NoEngine(f"the engine ends at once: {log}")
            yield Engine(ours=True, environment=environment)
        finally:
            daemon.terminate()
            daemon.wait(STOP_S)
            _unmount(Path(run), FOLDER)


def mirror() -> str:
    """Where this machine's apt has Debian's packages from."""
    targets = ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"]
    listed = subprocess.run(targets, capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        codename, _, uri = line.partition(" ")
        if codename == "bookworm":
            return uri
    raise NoEngine("apt knows no Debian 12")


def _daemon(run: Path) -> list[str]:
    command = ["dockerd", "--data-root", str(FOLDER / "data"), "--exec-root", str(run / "exec")]
    command += ["--pidfile", str(run / "pid"), "--host", f"unix://{run}/docker.sock"]
    command += ["--bridge=none", "--iptables=false", "--ip6tables=false"]
    return [*command, "--ip-forward=false", "--ip-masq=false"]


def _environment(run: Path) -> dict[str, str]:
    """What makes the unpacked programs find each other, and `docker` our engine."""
    usr = UNPACKED / "usr"
    plugins = run / "config" / "cli-plugins"
    plugins.mkdir(parents=True)
    for plugin in PLUGINS:
        (plugins / plugin).symlink_to(usr / "libexec" / "docker" / "cli-plugins" / plugin)
    return {
        **os.environ,
        "PATH": f"{usr}/sbin:{usr}/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(usr / "lib" / "x86_64-linux-gnu"),
        "DOCKER_HOST": f"unix://{run}/docker.sock",
        "DOCKER_CONFIG": str(run / "config"),
        "DOCKER_BUILDKIT": "1",
    }


def _unpack() -> None:
    """Debian's packages into our folder, without installing any."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        raise NoEngine("no Docker engine answers; one of our own needs root on Debian")
    if sys.version_info[:2] != (3, 12) or sys.base_prefix == "/usr":
        raise NoEngine("no Docker engine answers; one of our own needs a Python 3.12 of its own")
    if (UNPACKED / "complete").exists():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    packages = FOLDER / "packages"
    packages.mkdir(parents=True)
    try:
        _apt(packages, [], ENGINE)
        _apt(packages, _other_release(), PLUGINS)
    except subprocess.CalledProcessError as error:
        raise NoEngine(
            f"no Docker engine answers, nor do Debian's packages come: {error}"
        ) from None
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(UNPACKED)], check=True)
    (UNPACKED / "complete").touch()


def _apt(folder: Path, options: Sequence[str], packages: Sequence[str]) -> None:
    """Download packages; with options, of a release that this machine does not have."""
    if options:
        subprocess.run(["apt-get", "-qq", *options, "update"], check=True, timeout=300)
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", *options, "download", *packages]
    subprocess.run(command, cwd=folder, check=True, timeout=300)


def _other_release() -> list[str]:
    """Options by which apt knows that release alone, and touches nothing of the machine's own."""
    apt = FOLDER / "apt"
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (apt / name).mkdir(parents=True)
    keys = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "sources.list").write_text(f"deb [{keys}] {mirror()} {PLUGINS_FROM} main\n")
    values = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": apt / "parts",
        "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "root",
    }
    return [f"-o{name}={value}" for name, value in values.items()]


def _unmount(*folders: Path) -> None:
    """What the engine leaves mounted when it ends, below these folders."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in reversed(mounts):
        if any(Path(place).is_relative_to(folder) for folder in folders):
            subprocess.run(["umount", place], check=True)


def _answers(environment: Mapping[str, str]) -> bool:
    return _works(["docker", "version"], environment)


def _works(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
