"""`firstword bench tts` on a container that speaks tones, and on none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from firstword.bench import experiments, picture
from firstword.bench.caller import BenchError
from firstword.bench.passages import CLIPS, PASSAGE
from firstword.bench.results import BATCH, CLAUSE, ONE_LOCK, OURS, SENTENCE, STREAMED, Results
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Audio, Prepared, Stop, SynthesisError
from tests.command import firstword
from tests.doubles.inference_client import running
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.unit.bench.test_results import ABOUT, CODECS, FIRST, LADDER

SECONDS_PER_CHAR = 0.05
PATIENT = replace(InferenceSettings(), max_wait_s=60.0)


def tell(_what: str) -> None:
    pass


async def test_the_command_measures_a_container_and_leaves_its_files(tmp_path: Path) -> None:
    async with running(ToneSynthesizer, InferenceSettings()) as service:
        words = ("bench", "tts", "--quick", "--url", f"ws://{service.address}")
        ended = await firstword(*words, url=None, folder=tmp_path)
    assert (ended.status, "Traceback" in ended.err) == (0, False), ended.err
    tables = ended.out.decode()
    assert "first audio, 2 trials" in tables and "one lock" in tables and "4 clips" in tables
    data = json.loads((tmp_path / "bench-tts" / "tts.json").read_text())
    assert [row["callers"] for row in data["ladder"]] == [1, 1, 4, 4]
    assert [row["turns"] for row in data["ladder"]] == [1, 1, 4, 4]
    sizes = {row["format"]: row["bytes"] for row in data["codecs"]}
    assert sizes["pcm"] == sum(map(len, CLIPS[:4])) * SECONDS_PER_CHAR * 48_000
    assert sizes["wav"] == sizes["pcm"] + 4 * 44
    assert sizes["opus"] < sizes["mp3"] < sizes["pcm"] / 4
    drawn = tmp_path / "bench-tts" / "tts.png"
    assert drawn.exists() == picture.can_draw()
    assert (picture.MISSING in ended.err) != picture.can_draw()


async def test_one_experiment_as_json(tmp_path: Path) -> None:
    async with running(ToneSynthesizer, InferenceSettings()) as service:
        words = ("bench", "tts", "--only", "codecs", "--clips", "1", "--json", "--out", "here")
        ended = await firstword(
            *words, "--url", f"ws://{service.address}", url=None, folder=tmp_path
        )
    data = json.loads(ended.out)
    assert (ended.status, data["clips"], data["first_audio"], data["ladder"]) == (0, 1, [], [])
    assert data == json.loads((tmp_path / "here" / "tts.json").read_text())


@pytest.mark.model
async def test_without_a_url_it_starts_a_container_of_its_own(tmp_path: Path) -> None:
    words = ("bench", "tts", "--only", "codecs", "--clips", "1", "--json")
    ended = await firstword(*words, url=None, folder=tmp_path)
    assert ended.status == 0, ended.err
    sizes = {row["format"]: row["bytes"] for row in json.loads(ended.out)["codecs"]}
    assert 1 < sizes["pcm"] / 48_000 < 4, "seconds of a short sentence"
    assert sizes["opus"] < sizes["mp3"] < sizes["flac"] < sizes["pcm"]


async def test_first_audio_comes_in_the_order_of_what_is_made_first() -> None:
    options = ToneOptions(rtf=0.05, chars_per_piece=40)
    async with running(lambda: ToneSynthesizer(options), InferenceSettings()) as service:
        found = await experiments.first_audio(f"ws://{service.address}", None, 1, tell)
    times = {each.name: each.seconds[0] for each in found}
    assert list(times) == [BATCH, STREAMED, SENTENCE, CLAUSE]
    assert times[BATCH] > 0.05 * len(" ".join(PASSAGE)) * SECONDS_PER_CHAR
    assert all(times[name] < times[BATCH] for name in (STREAMED, SENTENCE, CLAUSE))


async def test_behind_one_lock_the_last_caller_waits_for_all_others() -> None:
    async with running(lambda: ToneSynthesizer(ToneOptions(latency_s=0.05)), PATIENT) as service:
        steps = experiments.ladder(f"ws://{service.address}", None, [6], 1, tell)
        ours, lock = [rung async for rung in steps]
    assert (ours.order, lock.order) == (OURS, ONE_LOCK)
    assert ours.audio_s == lock.audio_s == pytest.approx(6 * sum(map(len, PASSAGE)) * 0.05)
    assert len(ours.first_s) == len(lock.first_s) == 6
    assert lock.at(1.0) > 6 * 0.05, "first sentences one after the other"
    assert lock.refused == 0


async def test_who_waits_for_a_turn_still_answers_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.inference.service.HEARTBEAT_S", 0.5)
    async with running(lambda: ToneSynthesizer(ToneOptions(latency_s=0.15)), PATIENT) as service:
        steps = experiments.ladder(f"ws://{service.address}", None, [6], 1, tell)
        _, lock = [rung async for rung in steps]
    assert lock.at(1.0) > 0.75, "the last waits longer than a ping may go unanswered"
    assert len(lock.first_s) == 6


class Tires(ToneSynthesizer):
    """Fails from its twelfth piece on: after the trials of first audio, before the ladder's end."""

    pieces = 0

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        self.pieces += 1
        if self.pieces >= 12:
            raise SynthesisError("engine_failed", "tired", retryable=True)
        return super().synthesize(prepared, index, stop)


async def test_what_was_measured_before_a_failure_is_kept(tmp_path: Path) -> None:
    async with running(Tires, InferenceSettings()) as service:
        words = ("bench", "tts", "--trials", "1", "--url", f"ws://{service.address}")
        ended = await firstword(*words, url=None, folder=tmp_path)
    assert ended.status == 1
    assert ended.err.splitlines()[-1] == "firstword: the container refused: tired"
    data = json.loads((tmp_path / "bench-tts" / "tts.json").read_text())
    assert len(data["first_audio"]) == 4 and data["ladder"] == []
    assert b"first audio, 1 trials" in ended.out


async def test_who_is_told_to_come_back_comes_back_and_is_counted() -> None:
    hasty = replace(InferenceSettings(), max_waiting=1)
    options = ToneOptions(latency_s=0.02)
    async with running(lambda: ToneSynthesizer(options), hasty) as service:
        steps = experiments.ladder(f"ws://{service.address}", None, [3], 1, tell)
        ours, _ = [rung async for rung in steps]
    assert ours.refused > 0
    assert ours.audio_s == pytest.approx(3 * sum(map(len, PASSAGE)) * SECONDS_PER_CHAR)


async def test_a_container_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    words = ("bench", "tts", "--url", "ws://127.0.0.1:1")
    ended = await firstword(*words, url=None, folder=tmp_path)
    assert (ended.status, ended.out) == (1, b"")
    assert ended.err.startswith("firstword: no container answers at ws://127.0.0.1:1/invoc")
    assert len(ended.err.splitlines()) == 1


async def test_what_is_refused_for_good_ends_it_with_the_reason() -> None:
    async with running(ToneSynthesizer, InferenceSettings()) as service:
        with pytest.raises(BenchError, match=r"the container refused: "):
            await experiments.first_audio(f"ws://{service.address}", "nobody", 1, tell)
        with pytest.raises(BenchError, match=r"the container refused: "):
            async for _ in experiments.ladder(f"ws://{service.address}", "nobody", [2], 1, tell):
                pass


async def test_a_container_that_fails_midway_is_told() -> None:
    options = ToneOptions(fail_times=1)
    async with running(lambda: ToneSynthesizer(options), InferenceSettings()) as service:
        with pytest.raises(BenchError, match="failed as told"):
            await experiments.codecs(f"ws://{service.address}", None, 1, tell)


def test_the_picture_has_a_panel_for_each_experiment(tmp_path: Path) -> None:
    if not picture.can_draw():
        pytest.skip("matplotlib is not installed: pip install 'firstword[bench]'")
    widths = []
    for name, results in (
        ("one", Results(ABOUT, FIRST)),
        ("all", Results(ABOUT, FIRST, LADDER, 24, CODECS)),
    ):
        path = tmp_path / f"{name}.png"
        picture.draw(results, path)
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG")
        widths.append(int.from_bytes(data[16:20], "big"))
    assert widths[1] == pytest.approx(3 * widths[0], abs=2)
