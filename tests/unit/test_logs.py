"""What our own lines are called, and what they carry."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

from structlog.contextvars import clear_contextvars, get_contextvars

from firstword import logs

ROOT = Path(__file__).parents[2]
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}


def written() -> Iterator[tuple[str, ast.Call]]:
    """Every call of the sources that writes a line, and where it stands."""
    for path in (*ROOT.glob("firstword/**/*.py"), *ROOT.glob("services/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            function = node.func if isinstance(node, ast.Call) else None
            if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute):
                continue
            maker = function.value.func if isinstance(function.value, ast.Call) else None
            name = getattr(maker, "attr", getattr(maker, "id", ""))
            if function.attr in LEVELS and name == "logger":
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_every_event_has_a_name_in_snake_case() -> None:
    lines = list(written())
    assert len(lines) > 30
    for place, call in lines:
        event = call.args[0]
        if isinstance(event, ast.Name):
            continue  # chosen among a few, as `server_full` and `server_has_room`
        assert isinstance(event, ast.Constant), place
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", str(event.value)), place


def test_the_kind_of_an_error_has_one_name_everywhere() -> None:
    for place, call in written():
        assert "kind" not in {each.arg for each in call.keywords}, f"{place}: call it `error`"


async def test_what_a_task_works_on_is_its_own_and_that_of_the_tasks_it_starts() -> None:
    clear_contextvars()

    async def inner() -> None:
        assert get_contextvars() == {"session": "s", "turn": "t"}
        logs.bind(turn=None, segment=2)
        assert get_contextvars() == {"session": "s", "segment": 2}

    async def outer() -> None:
        logs.bind(session="s", turn="t", segment=None)
        await asyncio.create_task(inner())
        assert get_contextvars() == {"session": "s", "turn": "t"}

    await asyncio.create_task(outer())
    assert get_contextvars() == {}
