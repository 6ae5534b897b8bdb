"""The status of what another part of the system found wrong."""

from __future__ import annotations

import json

import pytest
from aiohttp.test_utils import make_mocked_request

from services.agent.doors import refused
from services.agent.speech_request import SpokenError


@pytest.mark.parametrize(
    ("code", "retryable", "status", "kind"),
    [
        ("voices_mismatch", False, 400, "invalid_request_error"),
        ("lang_mismatch", False, 400, "invalid_request_error"),
        ("pronunciation_failed", False, 400, "invalid_request_error"),
        ("text_too_long", False, 400, "invalid_request_error"),
        ("missing_text", False, 400, "invalid_request_error"),
        ("voice_damaged", False, 503, "server_error"),
        ("engine_failed", True, 503, "server_error"),
    ],
)
def test_what_the_voice_refuses(code: str, retryable: bool, status: int, kind: str) -> None:
    request = make_mocked_request("POST", "/v1/audio/speech")
    answer = refused(request, SpokenError(code, "why", retryable=retryable))
    assert answer.status == status
    assert ("Retry-After" in answer.headers) == retryable
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["error"]["type"] == kind
