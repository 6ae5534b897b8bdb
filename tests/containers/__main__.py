"""`python -m tests.containers`: the promises of streams on the servers that people run, in Docker.

Arguments go on to pytest. Without a Docker engine it says so and is content.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import docker
import redis
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer

from tests.support import eventually_sync

IMAGES = ("redis:7", "redis:8", "valkey/valkey:8", "valkey/valkey:9")
PORT = 6379
START_S = 60
SUITES = ("-m", "streams", "--ignore", "tests/integration/test_cluster.py")


def main(arguments: Sequence[str]) -> int:
    """Run the suites on each image; the exit status is 1 if any of them failed."""
    try:
        docker.from_env().ping()
    except DockerException as error:
        say(f"skipped: no Docker engine answers ({error})")
        return 0
    failed = [image for image in IMAGES if not holds(image, arguments)]
    if failed:
        say(f"NOT AS PROMISED on {', '.join(failed)}: see above")
    return int(bool(failed))


def holds(image: str, arguments: Sequence[str]) -> bool:
    """Whether the suites pass on a server of this image."""
    say(f"starting {image}")
    with DockerContainer(image).with_exposed_ports(PORT) as container:
        address = f"{container.get_container_host_ip()}:{container.get_exposed_port(PORT)}"
        url = f"redis://{address}"
        eventually_sync(lambda: answers(url), f"{image} answers at {address}", START_S)
        command = [sys.executable, "-m", "pytest", "-q", *SUITES, f"--server={url}", *arguments]
        return subprocess.run(command).returncode == 0


def answers(url: str) -> bool:
    """Whether a server is ready there."""
    try:
        with redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1) as link:
            return bool(link.ping())
    except redis.RedisError:
        return False


def say(text: str) -> None:
    """One line for the person at the terminal."""
    sys.stdout.write(f"test-containers: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
