"""`doctor` before the real voice: what it calls speech must be it, and half of it must not."""

from __future__ import annotations

import pytest

from firstword.server_check import Finding
from services.inference.audio import to_pcm
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Stop, Utterance
from services.tts_gateway.doctor import SENTENCE, examine
from services.tts_gateway.doctor_audio import judge
from services.tts_gateway.websocket import WebSocketUpstream
from tests.doubles.engines import kokoro
from tests.doubles.inference_client import PATH, running

pytestmark = pytest.mark.model


@pytest.mark.parametrize("voice", ["af_heart", "af_nicole", "am_adam", "bf_emma", "bm_george"])
def test_real_voices_pass_for_speech_and_half_of_them_does_not(voice: str) -> None:
    """af_nicole whispers, slowest and with the least pitch of all."""
    engine = kokoro()
    lang = "en-gb" if voice[0] == "b" else "en-us"
    prepared = engine.prepare(Utterance(SENTENCE, voice, lang))
    pieces = [engine.synthesize(prepared, n, Stop()).samples for n in range(len(prepared.pieces))]
    pcm = b"".join(map(to_pcm, pieces))
    assert judge(pcm, engine.sample_rate, SENTENCE).problem == ""
    if voice != "af_nicole":  # half of hers is as long as a quick voice's whole
        assert judge(pcm[: len(pcm) // 4 * 2], engine.sample_rate, SENTENCE).problem


async def test_the_real_container_has_nothing_wrong() -> None:
    found: list[Finding] = []
    settings = InferenceSettings(max_wait_s=120)  # nobody is refused on a busy machine
    async with running(kokoro, settings) as serving:
        url = f"ws://{serving.address}{PATH}"
        status = await examine(WebSocketUpstream(url), url, "", found.append)
    assert [finding for finding in found if finding.level == "fatal"] == []
    assert status == 0
