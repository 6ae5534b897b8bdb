"""The settings and options of a session, as its last `open` left them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from firstword import codec
from firstword import messages as m
from services.segmenter import core
from services.segmenter.options import lexicon, segmenter_options, setting_problem, voice_for
from services.segmenter.turns import Defaults

KEPT = ("opened", "default_voice", "refused", "told")


@dataclass(slots=True, eq=False)
class Opening:
    """`opened`: gateways know of the session. Settings stay when it is closed.

    `refused`: why the last `open` of a session that does not exist was refused. Its text is not
    spoken then, since it would be spoken otherwise than was asked for. `told`: whether an error
    said so about its unnamed text.
    """

    settings: m.SessionOpen
    options: core.SegmenterOptions
    opened: bool = False
    default_voice: str = ""
    refused: str = ""
    told: bool = False

    @classmethod
    def begin(cls, defaults: Defaults) -> Self:
        """Of a session that gives no settings."""
        settings = m.SessionOpen(
            voice=voice_for("", defaults.lang, defaults.voice),
            speed=defaults.speed,
            lang=defaults.lang,
            sample_rate=defaults.sample_rate,
            pace=defaults.pace,
        )
        return cls(settings, defaults.options, default_voice=defaults.voice)

    def take(self, message: m.Open) -> str:
        """Take the settings that are given. If one of them is bad, take none and return why."""
        problem = setting_problem(message)
        self.refused, self.told = "" if self.opened else problem, False
        if problem:
            return problem
        given = {
            f.name: value
            for f in fields(m.SessionOpen)
            if (value := getattr(message, f.name, None)) is not None
        }
        words = lexicon(message)
        if words is not None:
            given["lexicon"] = words or None
        if "voice" not in given:
            lang = given.get("lang", self.settings.lang)
            given["voice"] = voice_for(self.settings.voice, lang, self.default_voice)
        self.settings = replace(self.settings, **given)
        self.options = replace(self.options, **segmenter_options(message))
        return ""

    def snapshot(self, session: str) -> dict[str, Any]:
        """In msgpack types."""
        return {
            "settings": codec.pack(self.settings, session),
            "options": asdict(self.options),
            "opened": self.opened,
            "default_voice": self.default_voice,
            "refused": self.refused,
            "told": self.told,
        }

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> Self:
        """As `snapshot` left it."""
        settings = codec.unpack(saved["settings"], codec.SEGMENTS)
        assert isinstance(settings, m.SessionOpen)  # noqa: S101 - we wrote it
        rest = {name: saved[name] for name in KEPT if name in saved}
        return cls(settings, core.SegmenterOptions(**saved["options"]), **rest)
