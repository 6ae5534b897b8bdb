"""Settings from the environment: typed, bounded, every problem at once."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.errors import SettingsError
from firstword.settings import load, setting, table
from services.segmenter.settings import SegmenterSettings


@dataclass(frozen=True, slots=True)
class Example:
    url: str = setting("redis://here", "FIRSTWORD_URL", "where the server is")
    mode: str = setting("safe", "FIRSTWORD_MODE", "how to decide", choices=("safe", "eager"))
    count: int = setting(3, "FIRSTWORD_COUNT", "how many", minimum=1, maximum=10)
    wait_s: float = setting(0.25, "FIRSTWORD_WAIT_S", "how long", minimum=0)
    loss: float = setting(0.0, "FIRSTWORD_LOSS", "how much", maximum=1)
    quiet: bool = setting(False, "FIRSTWORD_QUIET", "say nothing")
    limit: int | None = setting(None, "FIRSTWORD_LIMIT", "most of it; none by default")


def problem(**environ: str) -> str:
    with pytest.raises(SettingsError) as raised:
        load(Example, environ)
    [told] = raised.value.problems
    return told


def test_nothing_set_is_the_defaults() -> None:
    assert load(Example, {"PATH": "/bin"}) == Example()


def test_what_is_set_is_read_in_its_type() -> None:
    environ = {
        "FIRSTWORD_URL": "redis://there",
        "FIRSTWORD_MODE": "eager",
        "FIRSTWORD_COUNT": "10",
        "FIRSTWORD_WAIT_S": "1",
        "FIRSTWORD_LOSS": "-0.5",
        "FIRSTWORD_QUIET": "yes",
        "FIRSTWORD_LIMIT": "7",
    }
    settings = load(Example, environ)
    assert settings == Example("redis://there", "eager", 10, 1.0, -0.5, True, 7)
    assert type(settings.wait_s) is float


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        load(Example, {}).count = 4  # type: ignore[misc]


def test_empty_text_is_text_and_empty_is_none_where_none_may_be() -> None:
    assert load(Example, {"FIRSTWORD_URL": ""}).url == ""
    assert load(Example, {"FIRSTWORD_LIMIT": ""}).limit is None


@pytest.mark.parametrize("word", ["1", "true", "TRUE", "yes", "on"])
def test_words_for_true(word: str) -> None:
    assert load(Example, {"FIRSTWORD_QUIET": word}).quiet is True


@pytest.mark.parametrize("word", ["0", "false", "No", "off", ""])
def test_words_for_false(word: str) -> None:
    assert load(Example, {"FIRSTWORD_QUIET": word}).quiet is False


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("FIRSTWORD_MODE", "fast", "FIRSTWORD_MODE='fast': must be one of safe, eager"),
        ("FIRSTWORD_COUNT", "many", "FIRSTWORD_COUNT='many': must be a whole number"),
        ("FIRSTWORD_COUNT", "", "FIRSTWORD_COUNT='': must be a whole number"),
        ("FIRSTWORD_COUNT", "1.5", "FIRSTWORD_COUNT='1.5': must be a whole number"),
        ("FIRSTWORD_COUNT", "0", "must be a whole number of at least 1 and at most 10"),
        ("FIRSTWORD_COUNT", "11", "must be a whole number of at least 1 and at most 10"),
        ("FIRSTWORD_WAIT_S", "soon", "FIRSTWORD_WAIT_S='soon': must be a number"),
        ("FIRSTWORD_WAIT_S", "-1", "must be a number of at least 0"),
        ("FIRSTWORD_WAIT_S", "nan", "FIRSTWORD_WAIT_S='nan': must be a number"),
        ("FIRSTWORD_WAIT_S", "inf", "FIRSTWORD_WAIT_S='inf': must be a number"),
        ("FIRSTWORD_LOSS", "1.01", "must be a number of at most 1"),
        ("FIRSTWORD_QUIET", "maybe", "FIRSTWORD_QUIET='maybe': must be 1 or 0"),
        ("FIRSTWORD_LIMIT", "x", "FIRSTWORD_LIMIT='x': must be a whole number"),
    ],
)
def test_a_problem_names_the_variable_and_what_it_takes(name: str, value: str, told: str) -> None:
    assert told in problem(**{name: value})


def test_every_problem_is_told_at_once() -> None:
    environ = {"FIRSTWORD_COUNT": "x", "FIRSTWORD_MODE": "y", "FIRSTWORD_QUIET": "z"}
    with pytest.raises(SettingsError) as raised:
        load(Example, environ)
    assert len(raised.value.problems) == 3
    for name in environ:
        assert name in raised.value.message
    assert (raised.value.code, raised.value.retryable) == ("bad_settings", False)


@given(st.text())
def test_any_value_is_read_or_refused(value: str) -> None:
    for variable, _default, _help in table(Example):
        try:
            settings = load(Example, {variable: value})
        except SettingsError as error:
            assert [problem.partition("=")[0] for problem in error.problems] == [variable]
        else:
            assert math.isfinite(settings.wait_s)


def test_a_setting_of_its_own_kind_is_checked_and_told_without_what_is_secret() -> None:
    url = "http://me:secret@here"
    with pytest.raises(SettingsError) as raised:
        load(SegmenterSettings, {"FIRSTWORD_REDIS_URL": url})
    [told] = raised.value.problems
    assert told.startswith(
        "FIRSTWORD_REDIS_URL='http://here': a Redis URL is like redis://host:6379"
    )
    load(SegmenterSettings, {"FIRSTWORD_REDIS_URL": "rediss://me:secret@here:6380/1"})


def test_the_table_for_people() -> None:
    rows = table(Example)
    assert rows[0] == ("FIRSTWORD_URL", "redis://here", "where the server is")
    assert ("FIRSTWORD_WAIT_S", "0.25", "how long") in rows
    assert rows[-1] == ("FIRSTWORD_LIMIT", "", "most of it; none by default")


def test_the_segmenters_settings_become_the_defaults_of_its_sessions() -> None:
    settings = load(
        SegmenterSettings,
        {
            "FIRSTWORD_VOICE": "af_bella",
            "FIRSTWORD_LANG": "de",
            "FIRSTWORD_SEGMENTER_MODE": "eager",
            "FIRSTWORD_SEGMENTER_STALL_S": "0.5",
            "FIRSTWORD_SEGMENTER_MAX_CHARS": "120",
            "FIRSTWORD_TURN_IDLE_S": "5",
        },
    )
    defaults = settings.defaults()
    assert (defaults.voice, defaults.lang, defaults.turn_idle_s) == ("af_bella", "de", 5.0)
    options = defaults.options
    assert (options.mode, options.stall, options.max_chars) == ("eager", 0.5, 120)
    assert SegmenterSettings().defaults().options.mode == "safe"


@pytest.mark.parametrize("name", ["MAX_WAIT_S", "STALL_S"])
def test_waits_of_the_segmenter_are_off_or_long_enough_to_be_sane(name: str) -> None:
    """A tiny one would have every session looked at all the time."""
    variable = f"FIRSTWORD_SEGMENTER_{name}"
    for wait in ("0", "0.0", "0.05", "2"):
        load(SegmenterSettings, {variable: wait})
    for wait in ("0.001", "-1", "0.049"):
        with pytest.raises(SettingsError, match=variable):
            load(SegmenterSettings, {variable: wait})
