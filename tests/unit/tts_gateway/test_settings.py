"""The gateway's settings, and which backend they name."""

from __future__ import annotations

import argparse
import sys

import pytest

from firstword.errors import SettingsError
from firstword.settings import load
from services.tts_gateway.__main__ import main, upstream_for
from services.tts_gateway.actions import Limits
from services.tts_gateway.openai import OpenAIUpstream
from services.tts_gateway.program import backend
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.websocket import WebSocketUpstream


def test_the_core_goes_by_the_settings() -> None:
    settings = load(
        GatewaySettings,
        {
            "FIRSTWORD_UPSTREAM_ATTEMPTS": "5",
            "FIRSTWORD_UPSTREAM_FIRST_BYTE_S": "7",
            "FIRSTWORD_UPSTREAM_BETWEEN_FRAMES_S": "8",
            "FIRSTWORD_MAX_AHEAD_S": "9",
            "FIRSTWORD_AUDIO_RETENTION_S": "10",
            "FIRSTWORD_AUDIO_RETENTION_BYTES": "11",
        },
    )
    assert settings.limits() == Limits(
        attempts=5, first_byte_s=7, between_frames_s=8, max_ahead_s=9
    )
    retention = settings.retention()
    assert (retention.max_age_s, retention.max_bytes) == (10, 11)
    assert settings.retention() is not retention


def test_the_defaults_of_core_and_settings_are_the_same() -> None:
    assert GatewaySettings().limits() == Limits()


@pytest.mark.parametrize("url", ["ws://127.0.0.1:8080/x", "wss://example.org/x"])
def test_a_websocket_is_picked_by_its_scheme(url: str) -> None:
    assert isinstance(upstream_for(GatewaySettings(upstream=url)), WebSocketUpstream)


@pytest.mark.parametrize("url", ["openai+http://127.0.0.1:8880/v1", "openai+https://x/v1?model=m"])
def test_a_speech_server_is_picked_by_its_scheme(url: str) -> None:
    assert isinstance(upstream_for(GatewaySettings(upstream=url)), OpenAIUpstream)


def test_what_a_sagemaker_endpoint_lacks_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SettingsError, match="max_age_s"):
        upstream_for(GatewaySettings(upstream="sagemaker://speech?max_age_s=3600"))
    monkeypatch.setitem(sys.modules, "services.tts_gateway.sagemaker", None)
    with pytest.raises(SettingsError, match=r"pip install 'firstword\[gateway\]'"):
        upstream_for(GatewaySettings(upstream="sagemaker://speech"))


def test_programs_see_the_path_that_is_used() -> None:
    """So that all of doctor's looks are at the same place."""
    named = argparse.Namespace(upstream="ws://127.0.0.1:8080")
    _, settings = backend(named, {"FIRSTWORD_UPSTREAM": "ws://elsewhere"})
    assert settings.upstream == GatewaySettings().upstream


@pytest.mark.parametrize("url", ["", "http://127.0.0.1", "redis://x"])
def test_another_scheme_is_refused_with_what_is_there(url: str) -> None:
    with pytest.raises(SettingsError, match="ws://, wss://, openai"):
        upstream_for(GatewaySettings(upstream=url))


def test_a_process_with_a_wrong_backend_ends_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRSTWORD_UPSTREAM", "gopher://hole")
    monkeypatch.setattr("sys.argv", ["tts_gateway"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "FIRSTWORD_UPSTREAM='gopher://hole'" in capsys.readouterr().err
