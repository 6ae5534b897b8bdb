"""Settings: one frozen dataclass per service, read from the environment in one place.

A field made with `setting()` is read from FIRSTWORD_… when `load()` is called, never at import.
Every problem is reported at once, so an operator fixes a deployment in one round.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from firstword.errors import SettingsError

T = TypeVar("T")

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


def setting(
    default: Any,
    env: str,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    or_zero: bool = False,
    check: Callable[[str], object] | None = None,
    shown: Callable[[str], str] = str,
) -> Any:
    """A dataclass field read from the variable `env`; `help` is its line in the docs.

    With `or_zero`, 0 is allowed below the minimum: it turns the feature off. `check` raises
    ValueError for an invalid text. `shown` removes from a value what an error must not show, such
    as a password.
    """
    return dataclasses.field(
        default=default,
        metadata={
            "env": env,
            "help": help,
            "minimum": minimum,
            "maximum": maximum,
            "choices": choices,
            "or_zero": or_zero,
            "check": check,
            "shown": shown,
        },
    )


def load(cls: type[T], environ: Mapping[str, str]) -> T:
    """Read a settings dataclass from `environ`; raises SettingsError naming every problem."""
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        env = field.metadata["env"]
        raw = environ.get(env)
        if raw is None:
            continue
        try:
            values[field.name] = _parse(raw, hints[field.name], field.metadata)
        except ValueError as error:
            problems.append(f"{env}={field.metadata['shown'](raw)!r}: {error}")
    if problems:
        raise SettingsError(problems)
    return cls(**values)


def table(cls: type[Any]) -> list[tuple[str, str, str]]:
    """Rows (variable, default, help) of a settings class, for `--print-settings` and the docs."""
    return [
        (f.metadata["env"], "" if f.default is None else str(f.default), f.metadata["help"])
        for f in dataclasses.fields(cls)
    ]


def _parse(raw: str, hint: Any, limits: Mapping[str, Any]) -> Any:
    if get_origin(hint) in (Union, types.UnionType):  # `X | None`: empty means not set
        if raw == "":
            return None
        hint = next(a for a in get_args(hint) if a is not type(None))
    if hint is bool:
        return _boolean(raw)
    if hint is str:
        choices = limits["choices"]
        if choices and raw not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        if limits["check"] is not None:
            limits["check"](raw)
        return raw
    kind = "a whole number" if hint is int else "a number"
    try:
        number = hint(raw)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"must be {kind}")
    if number == 0 and limits["or_zero"]:
        return number
    low, high = limits["minimum"], limits["maximum"]
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
        raise ValueError(f"must be {kind} of {' and '.join(bounds)}")
    return number


def _boolean(raw: str) -> bool:
    if raw.lower() in TRUE:
        return True
    if raw.lower() in FALSE:
        return False
    raise ValueError("must be 1 or 0")
