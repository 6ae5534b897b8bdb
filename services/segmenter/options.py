"""What a message may set: a session's speech settings and its segmenter's options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from firstword import messages as m
from firstword.session_codec import MAX_LEXICON_WORDS, MAX_NAME_CHARS
from firstword.voice_languages import may_speak
from services.segmenter import core
from services.segmenter.tables import load

SAMPLE_RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)
PACES = ("realtime", "none")
MAX_SETTING_CHARS = 128
MAX_LEXICON_CHARS = 8_000


def setting_problem(message: m.Open | m.Text) -> str:
    """What is wrong with a message's settings, saying what is allowed; '' if nothing is.

    `text` and `open` may have `voice`, `speed` and `lang`, the other settings only an `open`.
    """
    problem = "; ".join(_manner_problems(message).values())
    return problem or (_open_problem(message) if isinstance(message, m.Open) else "")


def without_bad_settings(message: m.Text) -> m.Text:
    """The text without its bad settings."""
    bad: dict[str, Any] = dict.fromkeys(_manner_problems(message))
    return replace(message, **bad)


def _manner_problems(message: m.Open | m.Text) -> dict[str, str]:
    """What is wrong with `voice`, `speed` and `lang`, by name."""
    problems: dict[str, str] = {}
    if message.speed is not None and not m.SPEEDS[0] <= message.speed <= m.SPEEDS[1]:
        problems["speed"] = f"speed is a number from {m.SPEEDS[0]} to {m.SPEEDS[1]}"
    for name, value in (("voice", message.voice), ("lang", message.lang)):
        if value is not None and not (0 < len(value) <= MAX_SETTING_CHARS and value.isprintable()):
            problems[name] = f"{name} is 1 to {MAX_SETTING_CHARS} printable characters"
    return problems


def _open_problem(message: m.Open) -> str:
    if message.sample_rate is not None and message.sample_rate not in SAMPLE_RATES:
        return f"sample_rate is one of {', '.join(map(str, SAMPLE_RATES))}"
    if message.pace is not None and message.pace not in PACES:
        return f"pace is one of {', '.join(PACES)}"
    if message.meta == m.UNREADABLE["meta"]:
        return "meta is a map, in msgpack"
    if not _is_lexicon((message.meta or {}).get("lexicon", {})):
        return (
            f"meta.lexicon is a map of at most {MAX_LEXICON_WORDS} words, each with what is said "
            f"for it, {MAX_LEXICON_CHARS} characters in all"
        )
    options = segmenter_options(message)
    if not isinstance(options, dict):
        return "meta.segmenter is a map of options"
    problems = (_option_problem(name, value) for name, value in options.items())
    return next((problem for problem in problems if problem), "")


def _is_lexicon(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) > MAX_LEXICON_WORDS:
        return False
    parts = [part for entry in value.items() for part in entry]
    return (
        all(isinstance(part, str) and part.isprintable() for part in parts)
        and all(0 < len(part) <= MAX_NAME_CHARS for part in parts)
        and sum(map(len, parts)) <= MAX_LEXICON_CHARS
    )


def lexicon(message: m.Open) -> dict[str, str] | None:
    """The pronunciations in an `open`; None if it has none."""
    found: dict[str, str] | None = (message.meta or {}).get("lexicon")
    return found


def segmenter_options(message: m.Open) -> Any:
    """The segmenter's options in an `open`; {} if it has none."""
    return (message.meta or {}).get("segmenter", {})


_CHOICES = {"mode": get_args(core.Mode), "skip_code": get_args(core.SkipCode)}
_COUNTS = ("min_chars", "max_chars", "first_clause")
_SECONDS = ("max_wait", "stall")
_FLAGS = ("merge_first",)
MAX_COUNT = 100_000
WAIT_S = (0.05, 60)  # a shorter one would have us look at text that cannot be cut all the time


def _option_problem(name: str, value: Any) -> str:
    kind = type(value)
    if name in _CHOICES:
        fits, wanted = value in _CHOICES[name], f"one of {', '.join(_CHOICES[name])}"
    elif name in _COUNTS:
        fits = kind is int and 0 <= value <= MAX_COUNT
        wanted = f"a whole number from 0 to {MAX_COUNT}"
    elif name in _SECONDS:
        fits = kind in (int, float) and (value == 0 or WAIT_S[0] <= value <= WAIT_S[1])
        wanted = f"a number of seconds from {WAIT_S[0]} to {WAIT_S[1]}, or 0"
    elif name in _FLAGS:
        fits, wanted = kind is bool, "true or false"
    else:
        return f"meta.segmenter takes {', '.join((*_CHOICES, *_COUNTS, *_SECONDS, *_FLAGS))}"
    return "" if fits else f"meta.segmenter.{name} is {wanted}"


def voice_for(voice: str, lang: str, default: str) -> str:
    """The voice for a text in `lang` that names none, where `voice` spoke before.

    The `default` voice speaks only its own language; for others this is '' and the backend chooses.
    """
    if voice not in ("", default):
        return voice
    return default if may_speak(default, lang) else ""


def segmenter_lang(lang: str) -> str:
    """The language whose word lists are used: `en` for `en-us`, `sv` for `nb`, else `und`."""
    return "auto" if lang.lower() == "auto" else load(lang).lang
