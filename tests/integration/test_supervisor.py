"""The supervisor keeps real (small) processes: start order, health gate, restarts, stop order."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from firstword.supervisor import (
    Limits,
    Service,
    ServiceFailed,
    Supervisor,
)
from tests.support import eventually

# Serves /readyz: 503 until the file READY exists (if named), then 200. Writes to JOURNAL.
DUMMY = """
import http.server, json, os, signal, sys, threading

name = os.environ["NAME"]

def journal(what):
    with open(os.environ["JOURNAL"], "a") as file:
        file.write(f"{name} {what}\\n")

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        gate = os.environ.get("READY")
        self.send_response(200 if gate is None or os.path.exists(gate) else 503)
        self.end_headers()
    def log_message(self, *args):
        pass

server = http.server.HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Handler)
signal.signal(signal.SIGTERM, lambda *a: threading.Thread(target=server.shutdown).start())
journal("peer " + os.environ.get("PEER", "none"))
print("not json"), print(json.dumps(["ready"])), print(json.dumps({"event": "ready"}))
address = "127.0.0.1:%d" % server.server_port
print(json.dumps({"event": "ready", "http": address, "pid": os.getpid()}), flush=True)
server.serve_forever()
journal("stopped")
"""

QUICK = Limits(start_s=20, stable_s=60, first_pause_s=0.01, longest_pause_s=0.02, grace_s=10)


class Stage:
    """A folder for logs and journal, and what the supervisor told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[tuple[str, str]] = []

    def dummy(
        self,
        name: str,
        *,
        program: str = DUMMY,
        after: tuple[str, ...] = (),
        env: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda addresses: {},
    ) -> Service:
        return Service(
            name,
            (sys.executable, "-c", program),
            port_variable="PORT",
            after=after,
            env=lambda addresses: {"NAME": name, **env(addresses)},
        )

    def supervisor(self, *services: Service, limits: Limits = QUICK) -> Supervisor:
        environ = {**os.environ, "JOURNAL": str(self.folder / "journal")}
        return Supervisor(
            services,
            environ,
            self.folder / "logs",
            lambda service, what: self.told.append((service, what)),
            limits,
        )

    @property
    def journal(self) -> list[str]:
        file = self.folder / "journal"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
async def ending() -> AsyncIterator[Callable[[Supervisor], Supervisor]]:
    """Supervisors that are stopped when the test is over, however it ends."""
    kept: list[Supervisor] = []

    def keep(supervisor: Supervisor) -> Supervisor:
        kept.append(supervisor)
        return supervisor

    yield keep
    for supervisor in kept:
        await supervisor.stop()


async def test_starts_by_need_and_stops_in_reverse(
    stage: Stage, ending: Callable[[Supervisor], Supervisor]
) -> None:
    supervisor = ending(
        stage.supervisor(
            stage.dummy("engine"),
            stage.dummy("gateway", after=("engine",), env=lambda known: {"PEER": known["engine"]}),
        )
    )
    await supervisor.start()
    assert stage.journal == ["engine peer none", f"gateway peer {supervisor.addresses['engine']}"]
    assert {service for service, what in stage.told if what.startswith("ready on")} == {
        *("engine", "gateway")
    }
    await supervisor.stop()
    assert stage.journal[2:] == ["gateway stopped", "engine stopped"]
    assert "127.0.0.1" in (stage.folder / "logs" / "engine.log").read_text()


async def test_the_ready_line_of_another_process_in_its_log_is_not_its_own(
    stage: Stage, ending: Callable[[Supervisor], Supervisor]
) -> None:
    other = """
import json
print(json.dumps({"event": "ready", "http": "127.0.0.1:1", "pid": 1}), flush=True)
"""
    supervisor = ending(stage.supervisor(stage.dummy("engine", program=other + DUMMY)))
    await supervisor.start()
    assert '"127.0.0.1:1"' in (stage.folder / "logs" / "engine.log").read_text()
    assert supervisor.addresses["engine"] != "127.0.0.1:1"


async def test_waits_until_the_health_path_answers(
    stage: Stage, ending: Callable[[Supervisor], Supervisor]
) -> None:
    gate = stage.folder / "gate"
    service = stage.dummy("engine", env=lambda known: {"READY": str(gate)})
    supervisor = ending(stage.supervisor(service))
    starting = asyncio.create_task(supervisor.start())
    await eventually(lambda: "engine" in supervisor.addresses, "the service told its address")
    assert not starting.done()
    gate.touch()
    await starting
    assert stage.told[-1][1].startswith("ready on 127.0.0.1:")


async def test_a_service_that_ends_at_the_start_fails_the_start_with_its_last_words(
    stage: Stage,
) -> None:
    broken = stage.dummy("broken", program="import sys; sys.exit('no\\x1b such model')")
    supervisor = stage.supervisor(stage.dummy("engine"), broken)
    with pytest.raises(ServiceFailed) as caught:
        await supervisor.start()
    assert "broken ended (exit status 1)" in caught.value.message
    assert "| no  such model" in caught.value.message
    assert str(stage.folder / "logs" / "broken.log") in caught.value.message


async def test_a_port_that_somebody_else_took_meanwhile_fails_no_start(
    stage: Stage, ending: Callable[[Supervisor], Supervisor]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = iter((str(other.getsockname()[1]), "0"))  # it looked free, and then did not
        taken = stage.dummy("a", env=lambda addresses: {"PORT": next(ports)})
        supervisor = ending(stage.supervisor(taken))
        await supervisor.start()
    assert [what for _, what in stage.told][:2] == ["starting", "starting"]
    assert list(supervisor.addresses) == ["a"]


async def test_a_start_that_fails_is_tried_once_more_at_most(stage: Stage) -> None:
    ports = iter(range(1, 100))
    dying = stage.dummy("a", program="", env=lambda addresses: {"PORT": str(next(ports))})
    with pytest.raises(ServiceFailed, match="a ended"):
        await stage.supervisor(dying).start()
    assert stage.told == [("a", "starting")] * 2


async def test_a_service_that_never_gets_ready_fails_the_start(stage: Stage) -> None:
    silent = stage.dummy("silent", program="import time; time.sleep(60)")
    supervisor = stage.supervisor(silent, limits=Limits(start_s=0.3, grace_s=10))
    with pytest.raises(ServiceFailed, match=r"silent is not ready after 0\.3 s.*said nothing"):
        await supervisor.start()


async def test_a_service_that_dies_is_started_again_on_its_port(
    stage: Stage, ending: Callable[[Supervisor], Supervisor]
) -> None:
    supervisor = ending(stage.supervisor(stage.dummy("engine")))
    await supervisor.start()
    address = supervisor.addresses["engine"]
    running = asyncio.create_task(supervisor.run())
    supervisor.kill()

    def again() -> bool:
        return [what.startswith("ready on") for _, what in stage.told].count(True) == 2

    await eventually(again, "the service was started again")
    running.cancel()
    assert supervisor.addresses["engine"] == address
    assert ("engine", "ended (signal SIGKILL): starting it again in 0.01 s") in stage.told
    log = (stage.folder / "logs" / "engine.log").read_text()
    assert log.count(address) == 2, "the log of a restart goes on where the first ended"


async def test_a_service_that_cannot_start_again_is_tried_again_and_again(
    stage: Stage, ending: Callable[[Supervisor], Supervisor]
) -> None:
    once = f"""
import os, sys
if os.path.exists(os.environ["JOURNAL"]):
    sys.exit("worn out")
{DUMMY}
"""
    supervisor = ending(stage.supervisor(stage.dummy("engine", program=once)))
    await supervisor.start()
    running = asyncio.create_task(supervisor.run())
    supervisor.kill()
    await eventually(
        lambda: sum("worn out" in what for _, what in stage.told) >= 2, "two failed restarts"
    )
    running.cancel()
    assert ("engine", "ended (exit status 1): starting it again in 0.02 s") in stage.told


async def test_cancelling_the_start_stops_what_was_started(stage: Stage) -> None:
    gate = stage.folder / "never"
    service = stage.dummy("engine", env=lambda known: {"READY": str(gate)})
    supervisor = stage.supervisor(service)
    starting = asyncio.create_task(supervisor.start())
    await eventually(lambda: "engine" in supervisor.addresses, "the service told its address")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert stage.journal[-1] == "engine stopped"


async def test_stopping_what_never_started_does_nothing(stage: Stage) -> None:
    supervisor = stage.supervisor(stage.dummy("engine"))
    await supervisor.stop()
    supervisor.kill()
    assert stage.journal == []


async def test_a_folder_for_logs_that_cannot_be_made_is_told(stage: Stage) -> None:
    (stage.folder / "logs").write_text("in the way")
    with pytest.raises(ServiceFailed, match=r"cannot make the folder .*logs.*choose another"):
        await stage.supervisor(stage.dummy("engine")).start()
