"""What the benchmark prints follows from what was measured."""

from __future__ import annotations

import json

from firstword.bench.passages import CLIPS, PASSAGE
from firstword.bench.results import BATCH, ONE_LOCK, OURS, SENTENCE, Results, Rung, Size, Times

ABOUT = {"url": "ws://host:8080", "voice": None}
FIRST = [Times(BATCH, [4.0, 2.0, 3.0]), Times(SENTENCE, [1.0, 0.5, 0.75])]
LADDER = [
    Rung(OURS, 2, [0.2, 0.4], audio_s=60.0, wall_s=12.0, dry=0, refused=3),
    Rung(ONE_LOCK, 2, [0.3, 1.6], audio_s=60.0, wall_s=15.0, dry=1, refused=0),
]
CODECS = [Size("pcm", 10.0, 480_000, 640_000, 0.0), Size("mp3", 10.0, 80_000, 106_668, 0.05)]


def test_the_passage_is_as_long_as_the_published_one() -> None:
    assert len(PASSAGE) == 4
    assert 260 <= len(" ".join(PASSAGE)) <= 275
    assert len(CLIPS) == len(set(CLIPS)) == 24


def test_tables() -> None:
    text = Results(ABOUT, FIRST, LADDER, 24, CODECS).text()
    assert [line.split() for line in text.splitlines() if not line.startswith("-")] == [
        "first audio, 3 trials mean s p50 s p95 s of the first row".split(),
        [*BATCH.split(), "3.000", "3.000", "4.000", "1.00"],
        [*SENTENCE.split(), "0.750", "0.750", "1.000", "0.25"],
        [],
        (
            "callers order turns first audio p50 s p95 s audio hours per hour ran dry refused"
        ).split(),
        ["2", "ours", "2", "0.200", "0.400", "5.00", "0", "3"],
        ["2", "one", "lock", "2", "0.300", "1.600", "4.00", "1", "0"],
        [],
        "24 clips, 10.0 s kB kB in base64 kbit/s encoding ms per s".split(),
        ["pcm", "480.0", "640.0", "384.0", "0.0"],
        ["mp3", "80.0", "106.7", "64.0", "5.0"],
    ]


def test_what_was_left_out_is_not_told() -> None:
    assert Results(ABOUT).text() == ""
    assert Results(ABOUT, ladder=LADDER).text().startswith("callers")


def test_data_is_json_with_every_figure() -> None:
    data = json.loads(json.dumps(Results(ABOUT, FIRST, LADDER, 24, CODECS).data()))
    assert data["url"] == "ws://host:8080" and data["clips"] == 24
    assert data["first_audio"][0] == {
        "name": BATCH,
        "mean_s": 3.0,
        "p50_s": 3.0,
        "p95_s": 4.0,
        "trials_s": [4.0, 2.0, 3.0],
    }
    assert data["ladder"][1] == {
        "order": "one lock",
        "callers": 2,
        "turns": 2,
        "first_audio_p50_s": 0.3,
        "first_audio_p95_s": 1.6,
        "audio_hours_per_hour": 4.0,
        "ran_dry": 1,
        "refused": 0,
    }
    assert data["codecs"][1] == {
        "format": "mp3",
        "bytes": 80_000,
        "base64_bytes": 106_668,
        "kbit_per_s": 64.0,
        "encode_ms_per_audio_s": 5.0,
    }
