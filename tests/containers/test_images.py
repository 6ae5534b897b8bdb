"""The images, built and run by deploy/compose.yaml on a real Docker engine: `make containers`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from firstword import assets
from tests.containers.engine import ROOT, Engine, NoEngine, engine
from tests.containers.standins import PROMETHEUS, provide
from tests.doubles.ears import share_recognised
from tests.support import eventually, missing

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("FIRSTWORD_CONTAINERS"), reason="builds images: run by `make containers`"
    ),
    pytest.mark.timeout(900),
]

SERVICES = ("segmenter", "tts_gateway", "agent", "agentcore")
COMPOSE = ("compose", "-f", "deploy/compose.yaml")
EVERYTHING = ("--profile", "observability")
PORTS = ("REDIS", "SEGMENTER", "GATEWAY", "INFERENCE", "AGENT")
BIDIRECTIONAL = "com.amazonaws.sagemaker.capabilities.bidirectional-streaming"
RUN = ("run", "--rm", "--network=none", "--read-only", "--entrypoint", "python")
MEBIBYTE = 1 << 20
RATE = 24000
WORDS = (
    "Somebody is listening to this sentence. While it is being said, the container that speaks is "
    "told to stop. It says what it has begun. The next one takes the session over. Nothing that "
    "was written is lost, and nothing is said twice. That was all."
)


@dataclass(frozen=True, slots=True)
class Running:
    """The composed services. `variables` are what compose was run with."""

    engine: Engine
    variables: dict[str, str]

    def compose(self, *arguments: str) -> str:
        return self.engine.docker(*COMPOSE, *arguments, variables=self.variables).stdout

    def state(self, service: str) -> dict[str, Any]:
        """What Docker says of a service's container, running or not."""
        (container,) = self.compose("ps", "--all", "--quiet", service).split()
        told = json.loads(self.engine.docker("inspect", container).stdout)
        return dict(told[0]["State"])

    @property
    def agent(self) -> str:
        return f"http://127.0.0.1:{self.variables['FIRSTWORD_AGENT_PORT']}"


@pytest.fixture(scope="module")
def bare() -> Iterator[Engine]:
    """An engine with what our images are built on."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(engine())
        except NoEngine as error:
            missing(str(error))
        provide(found)
        yield found


@pytest.fixture(scope="module")
def docker(bare: Engine) -> Engine:
    """An engine with all our images, built from this tree."""
    for service in SERVICES:
        build(bare, service, "services", "--build-arg", f"SERVICE={service}")
    build(bare, "inference", "inference")
    return bare


def build(engine: Engine, name: str, dockerfile: str, *options: str) -> None:
    """Our own engine has no network but the machine's, and trusts whom the machine trusts."""
    authorities = ssl.get_default_verify_paths().cafile
    if engine.ours and authorities:
        options += ("--network=host", "--secret", f"id=ca,src={authorities}")
    file = f"deploy/docker/{dockerfile}.Dockerfile"
    engine.docker("build", "--file", file, "--tag", f"firstword/{name}", *options, ".")


@pytest.fixture(scope="module")
def running(docker: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`docker compose up --wait`, on free ports, once the weights of this machine are fetched."""
    try:
        weights = assets.locate(os.environ).folder
    except assets.AssetsError as error:
        missing(error.message)
    variables = {f"FIRSTWORD_{name}_PORT": str(free_port()) for name in PORTS}
    variables["PROMETHEUS_PORT"] = str(free_port())
    lexicon = tmp_path_factory.mktemp("lexicon") / "ours.json"
    lexicon.write_text('{"Firstword": "first word"}')
    lexicon.chmod(0o644)
    variables |= {"FIRSTWORD_WEIGHTS": "", "FIRSTWORD_INFERENCE_LEXICON": str(lexicon)}
    variables |= {"FIRSTWORD_INFERENCE_VOICE": "bf_emma", "COMPOSE_PROJECT_NAME": "firstword-test"}
    composed = Running(docker, variables)
    composed.compose(*EVERYTHING, "down", "--volumes")
    try:
        composed.compose("run", "--rm", "-v", f"{weights}:/from:ro", "weights", "--from", "/from")
        composed.compose("up", "--wait", "--no-build", "--pull", "never")
        yield composed
    finally:
        composed.compose(*EVERYTHING, "down", "--volumes")


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def configuration(engine: Engine, name: str) -> dict[str, Any]:
    """What Docker says of an image."""
    return dict(json.loads(engine.docker("image", "inspect", f"firstword/{name}").stdout)[0])


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_runs_as_nobody_and_hears_signals(docker: Engine, service: str) -> None:
    image = configuration(docker, service)
    assert image["Config"]["User"] == "10001:10001"
    assert image["Config"]["Entrypoint"] == ["service"], "no shell between Docker and the service"
    assert f"FIRSTWORD_SERVICE={service}" in image["Config"]["Env"]


def test_the_voice_is_as_sagemaker_wants_it(docker: Engine) -> None:
    image = configuration(docker, "inference")
    assert image["Config"]["Labels"][BIDIRECTIONAL] == "true"
    assert (image["Config"]["Entrypoint"], image["Config"]["Cmd"]) == (["service"], ["serve"])
    assert image["Config"]["User"] == ""
    assert "ORT_DISABLE_TELEMETRY=1" in image["Config"]["Env"]


@pytest.mark.parametrize("name, most", [*((each, 400) for each in SERVICES), ("inference", 900)])
def test_an_image_is_small(docker: Engine, name: str, most: int) -> None:
    """What we add to the base, in MiB."""
    (base,) = json.loads(docker.docker("image", "inspect", "python:3.12-slim-bookworm").stdout)
    added = (configuration(docker, name)["Size"] - base["Size"]) / MEBIBYTE
    assert added < most, f"{added:.0f} MiB"


def test_no_installer_is_left(docker: Engine) -> None:
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is not None)"
    for name in (*SERVICES, "inference"):
        docker.docker(*RUN, f"firstword/{name}", "-c", look)


@pytest.mark.parametrize("name", [*SERVICES, "inference"])
def test_spans_can_be_exported(docker: Engine, name: str) -> None:
    look = "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter"
    docker.docker(*RUN, f"firstword/{name}", "-c", look)


@pytest.fixture(scope="module")
def weights() -> str:
    """The option that mounts this machine's."""
    try:
        return f"--volume={assets.locate(os.environ).folder}:/opt/ml/model:ro"
    except assets.AssetsError as error:
        missing(error.message)


@pytest.fixture(scope="module")
def free(bare: Engine) -> str:
    """The name of an image that has nothing under the GPL."""
    build(bare, "inference-gpl-free", "inference", "--build-arg", "LICENCES=gpl-free")
    return "firstword/inference-gpl-free"


@pytest.fixture
def baked(docker: Engine) -> Iterator[str]:
    """The name of an image with the weights in it."""
    try:
        found = assets.locate(os.environ)
    except assets.AssetsError as error:
        missing(error.message)
    context = ROOT / "build" / "weights"
    context.parent.mkdir(exist_ok=True)
    context.mkdir()  # fails where somebody keeps weights to bake: those are not ours to remove
    try:
        for asset in found.manifest.files:
            (context / asset.name).parent.mkdir(exist_ok=True)
            shutil.copy(found.folder / asset.name, context / asset.name)
        build(docker, "inference-baked", "inference", "--build-arg", "WEIGHTS=baked")
        (context / "voices" / "af_heart.bin").write_bytes(b"other")
        with pytest.raises(AssertionError, match="differs from the pinned file"):
            build(docker, "inference-wrong", "inference", "--build-arg", "WEIGHTS=baked")
    finally:
        shutil.rmtree(context)
    yield "firstword/inference-baked"


async def test_it_serves_as_sagemaker_starts_it(docker: Engine, baked: str) -> None:
    """As root, with `serve`, and nothing but /tmp to write to; SIGTERM ends it."""
    async with served(docker, baked, "--tmpfs=/tmp:exec") as http:
        await speaks(http, {"text": "Baked in.", "voice": "bf_emma"})


async def test_a_folder_for_temporary_files_need_not_hold_programs(
    docker: Engine, weights: str
) -> None:
    """espeak is loaded from memory then."""
    async with served(docker, "firstword/inference", "--tmpfs=/tmp:noexec", weights) as http:
        await speaks(http, {"text": "Zanthic quxatl.", "voice": "af_heart"})


@pytest.mark.parametrize("module", ["av", "espeakng_loader", "misaki.vi", "phonemizer"])
def test_nothing_under_the_gpl_is_in_it(bare: Engine, free: str, module: str) -> None:
    look = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is not None)"
    bare.docker(*RUN, free, "-c", look)


async def test_without_the_gpl_it_speaks_english_and_says_what_it_cannot(
    bare: Engine, free: str, weights: str
) -> None:
    async with served(bare, free, "--tmpfs=/tmp:noexec", weights) as http:
        said = "Kubernetes is a word that no dictionary of ours has."
        pcm = await speaks(http, {"text": said, "voice": "af_heart", "format": "pcm"})
        assert share_recognised(said, pcm) >= 0.8
        for asked, status, told in (
            ({"text": "Hola.", "voice": "ef_dora"}, 400, "install firstword[espeak]"),
            ({"text": "Hello.", "format": "mp3"}, 501, "pcm and wav"),
        ):
            async with http.post("/invocations", json=asked) as refused:
                assert refused.status == status
                assert told in await refused.text()


def test_chinese_and_japanese_are_added(bare: Engine) -> None:
    build(bare, "inference-more", "inference", "--build-arg", "EXTRAS=chinese japanese")
    program = (
        "from services.inference.text import Pronouncer as P; p = P()\n"
        "for lang, text in (('zh', '你好'), ('ja', '世界')):\n"
        "    print(''.join(token.phonemes for token in p.pronounce(text, lang)))"
    )
    run = (*RUN, "--tmpfs=/tmp", "firstword/inference-more", "-c", program)
    assert bare.docker(*run).stdout.split() == ["ni↓xau↓", "sekai"]


@asynccontextmanager
async def served(engine: Engine, image: str, *options: str) -> AsyncIterator[aiohttp.ClientSession]:
    """An image of the voice as SageMaker starts it; at the end it must stop by itself."""
    port = free_port()
    run = ("run", "--detach", "--network=host", "--read-only", *options)
    variable = f"--env=FIRSTWORD_INFERENCE_PORT={port}"
    container = engine.docker(*run, variable, image, "serve").stdout.strip()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
            await eventually(lambda: answers(http, "/ping"), "it is ready", 120)
            yield http
        await asyncio.to_thread(engine.docker, "stop", container)
        (told,) = json.loads(engine.docker("inspect", container).stdout)
        assert told["State"]["ExitCode"] == 0
    finally:
        engine.docker("rm", "--force", container)


async def speaks(http: aiohttp.ClientSession, asked: dict[str, Any]) -> bytes:
    async with http.post("/invocations", json=asked) as made:
        assert made.status == 200, await made.text()
        pcm = await made.read()
    assert len(pcm) > RATE, "half a second of samples at least"
    return pcm


async def answers(http: aiohttp.ClientSession, path: str) -> bool:
    try:
        async with http.get(path) as told:
            return told.status == 200
    except aiohttp.ClientError:
        return False


async def test_the_page_is_there_and_speaks(running: Running) -> None:
    async with aiohttp.ClientSession(running.agent) as http:
        async with http.get("/") as page:
            assert page.status == 200
            assert "<script" in await page.text()
        async with http.ws_connect("/ws") as line:
            heard = await conversation(line, "The container speaks.")
    assert heard.said == "The container speaks."
    assert len(heard.audio) / 2 > RATE / 2, "half a second of samples at least"
    assert any(heard.audio), "and not of silence"


def test_weights_that_are_there_are_not_fetched(running: Running) -> None:
    """`up` saw that; it needs no network for it."""
    assert running.state("weights")["ExitCode"] == 0
    (container,) = running.compose("ps", "--all", "--quiet", "weights").split()
    again = (
        *("run", "--rm", "--network=none", f"--volumes-from={container}", "--user=0:0"),
        *("--env=FIRSTWORD_MODEL_DIR=", "--env=XDG_CACHE_HOME=/tmp", "--entrypoint=python"),
    )
    fetch = ("firstword/inference", "-m", "firstword", "voices", "fetch", "--all")
    assert "54 voices are in" in running.engine.docker(*again, *fetch).stdout


def test_a_folder_of_ones_own_is_left_as_it_is(running: Running, tmp_path: Path) -> None:
    variables = {**running.variables, "FIRSTWORD_WEIGHTS": str(tmp_path)}
    told = running.engine.docker(*COMPOSE, "run", "--rm", "weights", variables=variables)
    assert (told.stdout, list(tmp_path.iterdir())) == ("", [])


def test_what_is_set_for_the_voice_gets_there(running: Running) -> None:
    look = "import os; print(os.environ['FIRSTWORD_INFERENCE_VOICE'], open('/lexicon.json').read())"
    told = running.compose("exec", "-T", "inference", "python", "-c", look)
    assert told.strip() == 'bf_emma {"Firstword": "first word"}'
    set_here = "import os; print(sorted(n for n in os.environ if n.startswith('FIRSTWORD')))"
    names = running.compose("exec", "-T", "inference", "python", "-c", set_here)
    assert "FIRSTWORD_INFERENCE_ENGINE" in names, "the image says it"
    assert "FIRSTWORD_INFERENCE_BATCH" not in names, "nobody set it"


async def test_prometheus_reads_our_rules(running: Running) -> None:
    if not running.engine.has(PROMETHEUS):
        missing("no image of Prometheus, and no Debian package of it to make one")
    await asyncio.to_thread(running.compose, "up", "--no-build", "--detach", "prometheus")
    url = f"http://127.0.0.1:{running.variables['PROMETHEUS_PORT']}"
    async with aiohttp.ClientSession(url) as http:

        async def groups() -> set[str]:
            try:
                async with http.get("/api/v1/rules") as told:
                    return {group["file"] for group in (await told.json())["data"]["groups"]}
            except (aiohttp.ClientError, KeyError):
                return set()

        files = {"/etc/prometheus/recording.yml", "/etc/prometheus/alerts.yml"}

        async def has_all() -> bool:
            return await groups() == files

        await eventually(has_all, "it has our rules", 60)


async def test_docker_stop_loses_no_word(running: Running) -> None:
    """The only gateway is stopped in the middle of a sentence, and started again."""
    async with (
        aiohttp.ClientSession(running.agent) as http,
        http.ws_connect("/ws") as line,
    ):
        speaking = asyncio.Event()
        hearing = asyncio.create_task(conversation(line, WORDS, speaking))
        await asyncio.wait_for(speaking.wait(), 60)
        await asyncio.to_thread(running.compose, "stop", "tts_gateway")
        stopped = running.state("tts_gateway")
        assert (stopped["ExitCode"], stopped["OOMKilled"]) == (0, False)
        assert not hearing.done(), "there is something left to say"
        await asyncio.to_thread(running.compose, "start", "tts_gateway")
        heard = await asyncio.wait_for(hearing, 240)
    assert heard.said == WORDS
    assert heard.numbers == sorted(set(heard.numbers)), "in order, each once"


def test_all_stop_by_themselves_when_told(running: Running) -> None:
    running.compose("stop")
    for service in ("segmenter", "tts_gateway", "inference", "agent"):
        assert running.state(service)["ExitCode"] == 0, service


@dataclass(slots=True)
class Heard:
    """What a caller of `/ws` heard of one turn."""

    said: str
    numbers: list[int]
    audio: bytes


async def conversation(
    line: aiohttp.ClientWebSocketResponse, text: str, speaking: asyncio.Event | None = None
) -> Heard:
    """Have a text said, to its end. `speaking` is set when the first audio is here."""
    assert (await line.receive_json())["type"] == "session"
    await line.send_json({"type": "say", "text": text})
    segments: dict[int, str] = {}
    numbers, audio = list[int](), bytearray()
    async for frame in line:
        if frame.type is aiohttp.WSMsgType.BINARY:
            audio += frame.data
            if speaking:
                speaking.set()
            continue
        event = frame.json()
        assert event["type"] != "error", event
        if event["type"] == "segment_started":
            numbers.append(event["n"])
            segments[event["n"]] = event["text"]
        if event["type"] == "turn_done":
            break
    said = " ".join(segments[n].strip() for n in sorted(segments))
    return Heard(said, numbers, bytes(audio))
