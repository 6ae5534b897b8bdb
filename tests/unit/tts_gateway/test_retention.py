"""How much audio is kept: by age and bytes, always from the start of a segment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firstword.ids import id_key
from services.tts_gateway.retention import Retention


def test_nothing_goes_at_first() -> None:
    retention = Retention(max_age_s=1, max_bytes=10)
    assert retention.keep_from() == ""
    retention.segment("1000-0")
    retention.audio("1000-0", 1_000)
    assert retention.keep_from() == ""  # the only segment is kept, whatever it weighs


def test_a_segment_goes_when_its_end_is_too_old() -> None:
    retention = Retention(max_age_s=2)
    for at in (1_000, 2_000, 4_000):
        retention.segment(f"{at}-0")
    assert retention.keep_from() == ""  # the first ended 2 s before the newest began: just kept
    retention.segment("4001-0")
    assert retention.keep_from() == "2000-0"
    assert retention.keep_from() == ""  # told once


def test_the_oldest_segments_go_when_all_weigh_too_much() -> None:
    retention = Retention(max_bytes=100)
    for at in (1, 2, 3):
        retention.segment(f"{at}-0")
        retention.audio(f"{at}-0", 30)
        retention.audio(f"{at}-1", 15)
    assert retention.keep_from() == "2-0"
    retention.audio("3-2", 10)
    assert retention.keep_from() == ""
    retention.audio("3-3", 1)
    assert retention.keep_from() == "3-0"


def test_a_segment_that_another_worker_began_counts_from_where_we_went_on() -> None:
    retention = Retention(max_bytes=100)
    retention.audio("5-0", 80)
    retention.segment("6-0")
    retention.audio("6-0", 40)
    assert retention.keep_from() == "6-0"


@given(
    st.lists(st.tuples(st.integers(1, 90_000), st.integers(0, 5_000_000)), min_size=1, max_size=60)
)
def test_what_is_kept_is_young_and_light_or_the_last(steps: list[tuple[int, int]]) -> None:
    retention = Retention()
    kept: list[tuple[str, int]] = []
    now = 0
    for later, size in steps:
        now += later
        kept.append((f"{now}-0", size))
        retention.segment(f"{now}-0")
        retention.audio(f"{now}-0", size)
        cut = retention.keep_from()
        if cut:
            assert id_key(cut) in [id_key(entry_id) for entry_id, _ in kept]
            kept = [pair for pair in kept if id_key(pair[0]) >= id_key(cut)]
        assert len(kept) == 1 or sum(size for _, size in kept) <= 16_000_000
        assert all(now - id_key(entry_id)[0] <= 120_000 for entry_id, _ in kept[1:])
