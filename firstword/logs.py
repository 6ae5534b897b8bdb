"""A service's log: every line of it is one JSON object, whoever writes it.

Our own lines say what happened in `event`. Log records of libraries, uncaught errors and anything
printed become lines of the same kind. Text is never logged: of an error only its type and place,
since its message may quote what a customer said; of printed output only who printed it.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import traceback
from collections.abc import MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import structlog

from firstword.errors import SettingsError
from firstword.poison import where

LEVEL_VARIABLE = "FIRSTWORD_LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
QUIET = {
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
    "phonemizer": logging.ERROR,  # warns of every text whose words it joins
}
"""Libraries that log too much, and the lowest level that is kept."""
SAID_CHARS = 500
FRAMES = 12
"""How many places of a stack are logged, the innermost ones."""

Fields = MutableMapping[str, Any]


def configure(service: str, level: str = "INFO") -> None:
    """From now on everything on this process's standard output is lines of JSON: time, level,
    event, service and the event's fields. Raises SettingsError for an unknown level."""
    try:
        number = level_of(level)
    except ValueError as error:
        raise SettingsError([f"{LEVEL_VARIABLE}={level!r}: {error}"]) from None
    out = sys.stdout
    common = _common(service)
    structlog.configure(
        processors=[*common, _without_message, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(out),  # a line is one write
        cache_logger_on_first_use=True,
    )
    _hear_libraries(number, out, common)
    _hear_what_nobody_caught()
    sys.stdout, sys.stderr = _Printed("stdout"), _Printed("stderr")


def level_of(name: str) -> int:
    """The level, as `logging` numbers it. Raises ValueError for an unknown name."""
    if name.upper() not in LEVELS:
        raise ValueError(f"must be one of {', '.join(LEVELS)}")
    return logging.getLevelNamesMapping()[name.upper()]


def logger() -> Any:
    """The process's structured logger."""
    return structlog.get_logger()


def bind(**names: str | int | None) -> None:
    """Set what this task works on: its log lines carry these names from now on, and so do those of
    libraries and of tasks that it starts. None removes a name."""
    structlog.contextvars.unbind_contextvars(*(name for name in names if names[name] is None))
    structlog.contextvars.bind_contextvars(
        **{name: value for name, value in names.items() if value is not None}
    )


def _common(service: str) -> list[Any]:
    def of_service(_logger: Any, _method: str, fields: Fields) -> Fields:
        fields["service"] = service
        return fields

    return [
        structlog.contextvars.merge_contextvars,
        of_service,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _without_message(_logger: Any, _method: str, fields: Fields) -> Fields:
    """Replace an exception by its type and place."""
    found = fields.pop("exc_info", None)
    error = found if isinstance(found, BaseException) else sys.exc_info()[1]
    if found and error is not None:
        fields.update(_told(error))
    return fields


def _told(error: BaseException) -> dict[str, Any]:
    while isinstance(error, BaseExceptionGroup):  # the first of them says more than the group
        error = error.exceptions[0]
    return {"error": type(error).__name__, "where": where(error), "stack": places(error)}


def places(error: BaseException) -> list[str]:
    """The places in the code that an error passed, the innermost last; never its message."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in frames]


# -- what libraries say ---------------------------------------------------------------------------


def _hear_libraries(level: int, out: TextIO, common: list[Any]) -> None:
    handler = _Handler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*common, structlog.stdlib.add_logger_name, _of_a_library],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # What is sent over a line, texts with it, is what libraries tell at DEBUG.
    root.setLevel(max(level, logging.INFO))
    for name, heard_from in QUIET.items():
        logging.getLogger(name).addFilter(_From(heard_from))
    logging.captureWarnings(True)


def _of_a_library(_logger: Any, _method: str, fields: Fields) -> Fields:
    """`library`, with the first line of what it says; with an exception instead of that, which its
    own words may quote. asyncio tells what a task of ours did not catch."""
    said = str(fields.pop("event"))
    found = fields.pop("exc_info", None)
    fields.pop("stack_info", None)
    fields["event"] = "library"
    if found and found[1] is not None:
        fields["event"] = "uncaught" if fields["logger"] == "asyncio" else "library_failed"
        fields.update(_told(found[1]))
        return fields
    fields["said"] = said.partition("\n")[0][:SAID_CHARS]
    return fields


class _From(logging.Filter):
    """Lets through what is of a level. A logger's own will not do: phonemizer sets its logger's
    anew whenever it makes a backend."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self._level = level

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._level


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to the log. A record that cannot be formatted is logged as such."""

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        kind = type(error).__name__
        if not isinstance(error, OSError):  # nobody reads it, or there is no room for it
            logger().error("unreadable_record", logger=record.name, error=kind)


# -- what nobody caught, and what is printed ------------------------------------------------------


def _hear_what_nobody_caught() -> None:
    def crashed(
        _kind: type[BaseException], error: BaseException, _trace: TracebackType | None
    ) -> None:
        if not isinstance(error, KeyboardInterrupt):
            logger().critical("crashed", exc_info=error)

    def in_thread(args: threading.ExceptHookArgs) -> None:
        name = None if args.thread is None else args.thread.name
        logger().error("uncaught", thread=name, exc_info=args.exc_value)

    def in_cleanup(args: Any) -> None:
        logger().error("uncaught", exc_info=args.exc_value)

    sys.excepthook = crashed
    threading.excepthook = in_thread
    sys.unraisablehook = in_cleanup


class _Printed(io.TextIOBase):
    """Replaces a standard stream: what a library prints may be what a customer said."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text.strip():
            by = sys._getframe(1).f_globals.get("__name__", "")
            logger().warning("printed", by=by, stream=self._stream, chars=len(text))
        return len(text)
