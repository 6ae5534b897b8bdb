"""The clock of a listener who plays what comes as it comes."""

from __future__ import annotations

from services.tts_gateway.pace import Pace


def test_audio_that_is_out_is_played_in_real_time() -> None:
    pace = Pace(max_ahead_s=2.0)
    pace.begin(100.0)
    pace.add(3.0, 100.0)
    assert (pace.ahead(100.0), pace.ahead(101.0)) == (3.0, 2.0)
    assert (pace.wait(100.0), pace.wait(101.0), pace.wait(102.0)) == (1.0, 0.0, 0.0)
    pace.take_back(1.0)
    assert pace.ahead(101.0) == 1.0


def test_what_comes_too_late_is_played_when_it_comes() -> None:
    pace = Pace(max_ahead_s=2.0)
    pace.begin(100.0)
    pace.add(1.0, 100.0)
    assert pace.ahead(105.0) == -4.0
    pace.add(1.0, 105.0)
    assert pace.ahead(105.0) == 1.0
