"""`doctor` before containers that are well, and before each kind that is not."""

from __future__ import annotations

import array
import asyncio
import random

import pytest

from firstword.server_check import Finding
from services.tts_gateway import doctor, doctor_pings, doctor_visit
from services.tts_gateway.__main__ import upstream_for
from services.tts_gateway.doctor import CHECKS, examine
from services.tts_gateway.settings import GatewaySettings
from tests.doubles.babble import babble
from tests.doubles.broken_container import BrokenContainer, Manners
from tests.doubles.gateway_rig import Container
from tests.doubles.openai_speech import OpenAISpeech, SpeechPeer
from tests.doubles.sagemaker import MISSING, emulated

ALL = ["upstream_reachable", "session_opens", *(check.name for check in CHECKS)]


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doing nothing for a while need not take long."""
    monkeypatch.setattr(doctor, "IDLE_S", 0.4)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that says nothing is found out in a second, not in half a minute."""
    for name in ("FIRST_BYTE_S", "BETWEEN_S", "ANSWER_S"):
        monkeypatch.setattr(doctor_visit, name, 1.5)
    monkeypatch.setattr(doctor_pings, "PATIENCE_S", 3.0)


async def look(url: str) -> tuple[int, dict[str, Finding]]:
    """The exit status, and what was found by name."""
    found: list[Finding] = []
    upstream = await asyncio.to_thread(upstream_for, GatewaySettings(upstream=url))
    status = await examine(upstream, url, "", found.append)
    names = [finding.name for finding in found]
    assert len(set(names)) == len(names)
    assert all(f.remedy or ": " in f.message for f in found if f.level != "ok")
    return status, {finding.name: finding for finding in found}


async def look_at(manners: Manners) -> tuple[int, dict[str, Finding]]:
    async with BrokenContainer(manners) as container:
        return await look(container.url)


def wrong(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.level == "fatal"}


# -- who is well ----------------------------------------------------------------------------------


async def test_a_container_that_is_well_passes_everything() -> None:
    status, found = await look_at(Manners(work_s=0.5))
    assert (status, wrong(found)) == (0, set())
    assert list(found) == [*ALL, "websocket_pings"]
    for name in ("read_while_speaking", "websocket_pings"):
        assert found[name].level == "ok" and "answered in" in found[name].message
    assert "24000 Hz" in found["sentence"].message


async def test_our_own_container_passes_everything_but_speech() -> None:
    """It speaks tones here; tests/integration/test_doctor_voice.py has the real voice."""
    async with Container() as container:
        status, found = await look(container.url)
    assert wrong(found) == {"audio_is_speech"}
    assert status == 1
    assert found["bad_message"].message.startswith("answered with bad_json, bad_utf8, unknown_type")


async def test_a_speech_server_passes_everything() -> None:
    async def speak(peer: SpeechPeer) -> None:
        pcm = babble(peer.body["input"])
        for at in range(0, len(pcm), 9_601):
            await peer.send(pcm[at : at + 9_601])
        await peer.finish()

    async with OpenAISpeech(speak) as server:
        status, found = await look(server.url)
    assert (status, wrong(found)) == (0, set())
    assert list(found) == ALL


# -- who is not -----------------------------------------------------------------------------------


async def test_a_handler_that_cannot_read_binary_frames_fails() -> None:
    """Starlette's `receive_text()` raises KeyError('text') on one, and the connection is gone."""
    status, found = await look_at(Manners(work_s=0.1, binary="raise"))
    assert status == 1
    assert wrong(found) >= {"binary_frames", "stays_open"}
    assert "binary" in found["binary_frames"].remedy
    assert found["sentence"].level == found["second_sentence"].level == "ok"


@pytest.mark.usefixtures("impatient")
async def test_a_handler_that_ignores_binary_frames_fails() -> None:
    status, found = await look_at(Manners(binary="ignore"))
    assert status == 1
    assert wrong(found) >= {"binary_frames"}


async def test_a_handler_that_synthesises_where_it_reads_fails() -> None:
    """aiohttp answers pings only while somebody is in `receive()`."""
    status, found = await look_at(Manners(work_s=0.3, inline=True))
    assert status == 1
    assert wrong(found) == {"read_while_speaking", "websocket_pings"}
    assert "always in receive()" in found["websocket_pings"].remedy


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize(
    ("manners", "names"),
    [
        (Manners(work_s=0.5), set()),
        (Manners(work_s=0.1, binary="raise"), {"binary_frames", "bad_message", "stays_open"}),
        (Manners(work_s=0.3, inline=True), {"read_while_speaking"}),
    ],
    ids=["well", "text only", "inline"],
)
async def test_the_same_is_found_through_sagemaker(manners: Manners, names: set[str]) -> None:
    """An endpoint that is InService and answers /ping may be of no use all the same."""
    async with BrokenContainer(manners) as container, emulated(container.url) as sagemaker:
        status, found = await look(sagemaker.url)
    assert wrong(found) == names
    assert status == bool(names)


def noise(text: str) -> bytes:
    draw = random.Random(1)
    samples = (draw.randint(-9_000, 9_000) for _ in range(len(babble(text)) // 2))
    return array.array("h", samples).tobytes()


@pytest.mark.parametrize(
    ("sound", "problem"),
    [
        (lambda text: bytes(len(babble(text))), "silence"),
        (lambda text: babble(text)[: len(babble(text)) // 4 * 2], "too short"),
        (noise, "noise"),
        (lambda text: b"", "no audio"),
    ],
    ids=["silence", "half", "noise", "nothing"],
)
async def test_what_is_no_speech_fails(sound: object, problem: str) -> None:
    status, found = await look_at(Manners(sound=sound))  # type: ignore[arg-type]
    assert status == 1
    assert found["audio_is_speech"].level == "fatal"
    assert problem in found["audio_is_speech"].message
    assert wrong(found) <= {"audio_is_speech", "second_sentence", "binary_frames"}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("manners", "names"),
    [
        (Manners(one_sentence=True), {"second_sentence", "stays_open"}),
        (Manners(bad_json="raise"), {"bad_message", "stays_open"}),
        (Manners(closes_idle=True), {"stays_open"}),
        (Manners(obeys_close=False), {"close"}),
        (Manners(knows_ping=False), {"pings", "read_while_speaking"}),
        (Manners(samples_off=1), {"sentence"}),
        (Manners(announces=False), {"sentence"}),
        (Manners(control='{"type": "synthesis_complete", "samples": "all"}'), {"sentence"}),
        (Manners(control='{"type": "error", "code": "no_voice"}'), {"sentence"}),
        (Manners(control='{"type": "synthesis_complete", "id": "another"}'), {"sentence"}),
        (Manners(control='{"type": "hum"}'), {"sentence"}),
        (Manners(sound=lambda text: babble(text)[:-1]), {"sentence"}),
        (Manners(refuses=True), {"upstream_reachable"}),
    ],
)
async def test_what_is_broken_is_named(manners: Manners, names: set[str]) -> None:
    status, found = await look_at(manners)
    assert status == 1
    assert wrong(found) >= names
    if "sentence" in names:
        assert list(found)[-1] == "sentence", "nothing after it makes sense"


async def test_what_is_merely_bad_is_a_warning() -> None:
    status, found = await look_at(Manners(work_s=1.1, obeys_cancel=False))
    assert (status, wrong(found)) == (0, set())
    assert {name for name, f in found.items() if f.level == "warning"} == {
        "quick_enough",
        "read_while_speaking",
    }


async def test_a_backend_that_is_away_is_told_with_what_to_do() -> None:
    status, found = await look("ws://127.0.0.1:1/invocations-bidirectional-stream")
    assert (status, set(found)) == (1, {"upstream_reachable"})
    assert found["upstream_reachable"].remedy


async def test_a_speech_server_that_lets_nobody_in_opens_no_session() -> None:
    async with OpenAISpeech() as server:
        server.models_status = 401
        status, found = await look(server.url)
    assert status == 1
    assert found["upstream_reachable"].level == "ok"
    assert "FIRSTWORD_OPENAI_API_KEY" in found["session_opens"].message
