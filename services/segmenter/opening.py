"""How a session is open: its settings and options, as what came before says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from firstword import codec
from firstword import messages as m
from services.segmenter import core
from services.segmenter.options import segmenter_options, setting_problem
from services.segmenter.turns import Defaults


@dataclass(slots=True, eq=False)
class Opening:
    """`opened`: gateways know of the session. Settings stay when it is closed."""

    settings: m.SessionOpen
    options: core.SegmenterOptions
    opened: bool = False

    @classmethod
    def begin(cls, defaults: Defaults) -> Self:
        """Of a session that says nothing of itself."""
        settings = m.SessionOpen(
            voice=defaults.voice,
            speed=defaults.speed,
            lang=defaults.lang,
            sample_rate=defaults.sample_rate,
            pace=defaults.pace,
        )
        return cls(settings, defaults.options)

    def take(self, message: m.Open) -> str:
        """Take over the settings that are given; with a bad one among them, none: returns why."""
        problem = setting_problem(message)
        if problem:
            return problem
        given = {
            f.name: value
            for f in fields(m.SessionOpen)
            if (value := getattr(message, f.name)) is not None
        }
        self.settings = replace(self.settings, **given)
        self.options = replace(self.options, **segmenter_options(message))
        return ""

    def snapshot(self, session: str) -> dict[str, Any]:
        """In msgpack types."""
        return {
            "settings": codec.pack(self.settings, session),
            "options": asdict(self.options),
            "opened": self.opened,
        }

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> Self:
        """As `snapshot` left it."""
        settings = codec.unpack(saved["settings"], codec.SEGMENTS)
        assert isinstance(settings, m.SessionOpen)  # noqa: S101 - we wrote it
        return cls(settings, core.SegmenterOptions(**saved["options"]), saved["opened"])
