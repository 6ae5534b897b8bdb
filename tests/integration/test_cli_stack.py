"""Where `firstword up` puts its services: where Prometheus looks, unless somebody is there."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from firstword.cli import stack
from firstword.errors import FirstwordError
from firstword.supervisor import Supervisor
from services.agent.settings import AgentSettings
from services.inference.settings import InferenceSettings
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway.settings import GatewaySettings

ROOT = Path(__file__).parents[2]
VARIABLES = {
    "inference": "FIRSTWORD_INFERENCE_PORT",
    "tts_gateway": "FIRSTWORD_GATEWAY_PORT",
    "segmenter": "FIRSTWORD_SEGMENTER_PORT",
    "agent": "FIRSTWORD_AGENT_PORT",
    "sagemaker": "FIRSTWORD_EMULATOR_PORT",
}
ADDRESSES = {"inference": "127.0.0.1:1", "sagemaker": "127.0.0.1:2"}


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield int(other.getsockname()[1])


def given(services: Supervisor, addresses: Mapping[str, str] = ADDRESSES) -> dict[str, str]:
    """Service -> the port that it is told when it starts."""
    members = [member.service for member in services._members]
    return {each.name: each.env(addresses)[VARIABLES[each.name]] for each in members}


def made(told: list[tuple[str, str]], tmp_path: Path, **options: object) -> Supervisor:
    def tell(service: str, what: str) -> None:
        told.append((service, what))

    return stack.supervisor("redis://x", {}, log_dir=tmp_path, tell=tell, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("upstream", stack.UPSTREAMS)
def test_without_ports_all_get_free_ones_as_many_stacks_as_there_are(
    told: list[tuple[str, str]], tmp_path: Path, upstream: str
) -> None:
    assert set(given(made(told, tmp_path, upstream=upstream)).values()) == {"0"}
    assert not told


def test_a_port_that_is_taken_is_told_and_another_taken(
    told: list[tuple[str, str]], tmp_path: Path, taken: int
) -> None:
    services = made(told, tmp_path, ports={"tts_gateway": taken, "agent": taken})
    assert given(services) == dict.fromkeys(("inference", "tts_gateway", "segmenter", "agent"), "0")
    assert told == [
        (name, f"port {taken} is taken, so it gets another") for name in ("tts_gateway", "agent")
    ]
    told.clear()
    again = {**ADDRESSES, "tts_gateway": f"127.0.0.1:{taken}", "agent": f"127.0.0.1:{taken}"}
    given(services, again)
    assert not told, "it has a port already, and gets that"


@pytest.mark.parametrize("upstream", stack.UPSTREAMS)
def test_a_port_that_is_free_is_taken(
    told: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upstream: str
) -> None:
    monkeypatch.setattr(stack, "_is_free", lambda port: True)  # as far as others go
    ports = stack.ports({})
    found = given(made(told, tmp_path, ports=ports, upstream=upstream))
    assert {name: int(port) for name, port in found.items() if name != "sagemaker"} == ports
    assert not told


def test_a_free_port_and_a_taken_one_are_told_apart(taken: int) -> None:
    assert not stack._is_free(taken)
    assert stack._is_free(0)


def test_prometheus_looks_where_up_puts_them_and_where_they_are_alone() -> None:
    config = yaml.safe_load((ROOT / "deploy/observability/prometheus.yml").read_text())
    looks = {
        entry["labels"]["service"]: entry["targets"]
        for entry in config["scrape_configs"][0]["static_configs"]
    }
    for name, port in stack.PORTS.items():
        assert looks[name.removeprefix("tts_")] == [f"127.0.0.1:{port}"]
    assert stack.PORTS == {
        "inference": InferenceSettings().port,
        "tts_gateway": GatewaySettings().http_port,
        "segmenter": SegmenterSettings().http_port,
        "agent": AgentSettings().http_port,
    }


def test_the_environment_may_name_other_ports() -> None:
    named = {"SEGMENTER": "0", "GATEWAY": "7000", "AGENT": "7001"}
    environ = {f"FIRSTWORD_{word}_PORT": port for word, port in named.items()}
    others = {"tts_gateway": 7000, "segmenter": 0, "agent": 7001}
    assert stack.ports(environ) == {"inference": 8080, **others}


@pytest.mark.parametrize("port", ["65536", "-1", "http", " 1", "\u0663"])
def test_what_is_no_port_is_told(port: str) -> None:
    with pytest.raises(FirstwordError, match=r"FIRSTWORD_GATEWAY_PORT=.* must be a port, or 0"):
        stack.ports({"FIRSTWORD_GATEWAY_PORT": port})
