"""Names of keys: which slot they lie in, and what may name a session."""

from __future__ import annotations

import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import keys
from firstword.errors import DecodeError

names = st.from_regex(keys.NAME, fullmatch=True)


def tag(key: str) -> str:
    """What decides a key's cluster slot: the first braces with something between them."""
    found = re.search(r"\{(.+?)\}", key)
    assert found is not None, f"{key} has no hash tag"
    return found[1]


@given(names)
def test_everything_of_a_session_lies_in_one_slot(session: str) -> None:
    of_session = [
        keys.segments(session),
        keys.audio(session),
        keys.text_state(session),
        keys.speech_state(session),
    ]
    assert {tag(key) for key in of_session} == {session}
    assert len(set(of_session)) == 4


@pytest.mark.parametrize("unit", ["0", "3", "15"])
def test_everything_of_a_partition_lies_in_one_slot(unit: str) -> None:
    of_unit = [keys.ingress_stream(unit), keys.ingress_state(unit), keys.ingress_open(unit)]
    assert {tag(key) for key in of_unit} == {unit}
    assert keys.ingress_stream(unit) == keys.ingress(int(unit)) == f"fw:text:{{{unit}}}"


def test_the_door_has_no_braces_and_its_state_is_in_its_slot() -> None:
    assert keys.ingress_stream("door") == keys.DOOR == "fw:text"
    assert tag(keys.ingress_state("door")) == tag(keys.ingress_open("door")) == keys.DOOR


def test_everything_of_a_stage_lies_in_one_slot() -> None:
    of_stage = [
        keys.workers("gateway"),
        keys.draining("gateway"),
        keys.free("gateway"),
        keys.owned("gateway"),
        keys.owners("gateway"),
        keys.arrivals("gateway"),
        keys.bell("gateway", "w1"),
    ]
    assert {tag(key) for key in of_stage} == {"ctl:gateway"}
    assert len(set(of_stage)) == len(of_stage)


def test_the_keys_publishers_and_listeners_write_down() -> None:
    assert keys.audio("demo") == "fw:{demo}:audio"
    assert keys.segments("demo") == "fw:{demo}:segments"
    assert keys.ingress(3) == "fw:text:{3}"
    assert (keys.DEAD, keys.CONFIG) == ("fw:dead", "fw:config")


@given(names, st.integers(1, 1024))
def test_a_session_has_one_partition(session: str, partitions: int) -> None:
    partition = keys.partition_of(session, partitions)
    assert partition == zlib.crc32(session.encode("utf-8")) % partitions
    assert 0 <= partition < partitions


@pytest.mark.parametrize(
    ("session", "crc"),
    [("123456789", 0xCBF43926), ("a", 0xE8B7BE43)],  # the check values every crc32 is known by
)
def test_publishers_in_other_languages_find_the_same_partition(session: str, crc: int) -> None:
    assert keys.partition_of(session, 2**32) == crc
    assert keys.partition_of(session, 16) == crc % 16


@given(names)
def test_a_good_name_is_given_back(name: str) -> None:
    assert keys.check_name("session", name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "two words", "a{b}", "nul\0", "line\n", "é", "٣", "a/b", "a*", "x" * 129]
)
def test_a_bad_name_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(DecodeError, match=r"turn names are 1 to 128 characters of A-Z a-z 0-9"):
        keys.check_name("turn", name)


def test_publishers_append_to_their_partition_or_to_the_door() -> None:
    assert keys.ingress_of("demo", 16) == keys.ingress(keys.partition_of("demo", 16))
    assert keys.ingress_of("demo", None) == keys.DOOR
