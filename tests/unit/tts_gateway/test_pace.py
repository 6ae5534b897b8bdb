"""The clock of a listener who plays what comes as it comes."""

from __future__ import annotations

from services.tts_gateway.pace import Pace


def test_audio_that_is_out_is_played_in_real_time() -> None:
    pace = Pace(max_ahead_s=2.0)
    pace.begin(100.0)
    assert pace.add(3.0, 100.0, 99.0) == 0.0
    assert (pace.ahead(100.0), pace.ahead(101.0)) == (3.0, 2.0)
    assert (pace.wait(100.0), pace.wait(101.0), pace.wait(102.0)) == (1.0, 0.0, 0.0)
    pace.take_back(1.0)
    assert pace.ahead(101.0) == 1.0


def test_what_comes_too_late_is_played_when_it_comes() -> None:
    pace = Pace(max_ahead_s=2.0)
    pace.begin(100.0)
    pace.add(1.0, 100.0, 99.0)
    assert pace.ahead(105.0) == -4.0
    pace.add(1.0, 105.0, 104.0)
    assert pace.ahead(105.0) == 1.0


def test_a_listener_runs_dry_where_a_segment_in_hand_comes_too_late() -> None:
    pace = Pace(max_ahead_s=2.0)
    assert pace.add(1.0, 50.0, 50.0) == 0.0, "of one who took over nothing is known"
    pace.begin(100.0)
    assert pace.add(1.0, 100.0, 99.0) == 0.0
    assert pace.add(1.0, 103.0, 100.5) == 2.0
    assert pace.add(1.0, 104.02, 103.5) == 0.0, "that hides in the player's buffer"
    assert pace.add(1.0, 109.0, 108.0) == 0.0, "there was nothing to say yet"
