"""The defaults are what is known of the real service."""

from __future__ import annotations

from firstword.emulator.settings import Settings


def test_the_times_are_those_of_the_service() -> None:
    settings = Settings(container="ws://127.0.0.1:8080")
    assert (settings.ping_s, settings.ping_misses, settings.max_duration_s) == (60, 5, 1800)
    assert settings.key.session_token is None
    assert settings.key.secret not in repr(settings)
