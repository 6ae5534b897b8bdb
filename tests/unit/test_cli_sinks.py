"""Where a session's audio goes: WAV files and raw samples, each segment once."""

from __future__ import annotations

import io
import wave
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword.cli.sinks import LivePcm, RawOutput, WavFile
from firstword.errors import FirstwordError

STARTED = m.TurnStarted(turn="t", voice="af_heart", sample_rate=24_000)


def chunk(n: int, offset: int, data: bytes) -> m.AudioChunk:
    return m.AudioChunk(turn="t", n=n, offset=offset, data=data)


def done(n: int) -> m.SegmentDone:
    return m.SegmentDone(turn="t", n=n, samples=0)


def content(path: Path) -> tuple[int, bytes]:
    """Sample rate and samples of a WAV file that must be mono, 16 bit."""
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), file.readframes(file.getnframes())


def test_a_wav_file_holds_the_segments_in_order(tmp_path: Path) -> None:
    file = WavFile(tmp_path / "x.wav")
    for message in (STARTED, chunk(1, 0, b"abcd"), chunk(1, 2, b"ef"), done(1)):
        file.feed(message)
    for message in (chunk(2, 0, b"gh"), done(2)):
        file.feed(message)
    file.close()
    assert content(tmp_path / "x.wav") == (24_000, b"abcdefgh")
    assert file.samples == 4


def test_a_segment_that_comes_again_is_in_the_file_once(tmp_path: Path) -> None:
    file = WavFile(tmp_path / "x.wav")
    first = (STARTED, chunk(1, 0, b"first!"), m.SegmentRestarted(turn="t", n=1))
    for message in (*first, chunk(1, 0, b"2nd2"), done(1)):
        file.feed(message)
    file.close()
    assert content(tmp_path / "x.wav")[1] == b"2nd2"


def test_an_interrupted_segment_is_kept(tmp_path: Path) -> None:
    file = WavFile(tmp_path / "x.wav")
    file.feed(STARTED)
    file.feed(chunk(1, 0, b"half"))
    file.close()
    assert content(tmp_path / "x.wav")[1] == b"half"


def test_a_file_without_audio_is_a_wav_file(tmp_path: Path) -> None:
    file = WavFile(tmp_path / "x.wav")
    file.close()
    file.close()
    assert content(tmp_path / "x.wav") == (24_000, b"")


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(FirstwordError, match="No such file or directory; choose another --out"):
        WavFile(tmp_path / "nowhere" / "x.wav")


def test_a_file_has_one_sample_rate(tmp_path: Path) -> None:
    file = WavFile(tmp_path / "x.wav")
    file.feed(STARTED)
    with pytest.raises(FirstwordError, match=r"at 8000 Hz and .*x\.wav has 24000 Hz"):
        file.feed(m.TurnStarted(turn="u", voice="af_heart", sample_rate=8_000))
    file.close()


def test_raw_output_is_the_samples_at_once() -> None:
    stream = io.BytesIO()
    output = RawOutput(stream)
    output.feed(STARTED)
    output.feed(chunk(1, 0, b"abcd"))
    assert stream.getvalue() == b"abcd"
    output.feed(chunk(2, 0, b"ef"))
    output.close()
    assert stream.getvalue() == b"abcdef"
    assert output.samples == 3


@given(st.binary(min_size=1, max_size=40), st.data())
def test_live_samples_come_once_however_often_a_segment_restarts(
    audio: bytes, data: st.DataObject
) -> None:
    """The chunks may be cut at other places each time."""
    audio *= 2  # whole samples
    samples = len(audio) // 2
    out: list[bytes] = []
    live = LivePcm(out.append)
    for stop in [*data.draw(st.lists(st.integers(0, samples), max_size=3)), samples]:
        cuts = data.draw(st.sets(st.integers(0, samples))) | {0, samples}
        for start, end in pairwise(sorted(cuts)):
            if end <= stop:
                live.feed(chunk(1, start, audio[2 * start : 2 * end]))
        live.feed(m.SegmentRestarted(turn="t", n=1))
    assert b"".join(out) == audio
    assert live.samples == samples
