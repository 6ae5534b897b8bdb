"""Requests: what they ask for, and every refusal before a stream is opened."""

from __future__ import annotations

import json

import pytest

from firstword.emulator.invocation import Invocation, Refused, invocation
from firstword.emulator.signatures import Request
from tests.doubles.emulator_signer import PATH

HEADERS = {"content-type": "application/vnd.amazon.eventstream"}
PREFIX = "x-amzn-sagemaker-"


def ask(
    path: str = PATH,
    method: str = "POST",
    endpoints: tuple[str, ...] = (),
    headers: dict[str, str] | None = None,
) -> Invocation:
    every = {**HEADERS, **(headers or {})}
    return invocation(Request(method, path, "", list(every.items())), endpoints, "AllTraffic")


def test_the_plain_request_goes_to_the_usual_path() -> None:
    wanted = Invocation("AllTraffic", "/invocations-bidirectional-stream")
    assert ask() == wanted
    assert ask(endpoints=("other", "demo")) == wanted


def test_path_and_query_are_handed_on_as_they_stand() -> None:
    headers = {
        f"{PREFIX}model-invocation-path": "v1/a-b_c.d/e",
        f"{PREFIX}model-query-string": "a=%20b&c=",
        f"{PREFIX}target-variant": "AllTraffic",
    }
    wanted = ask(headers=headers)
    assert wanted.target == "/v1/a-b_c.d/e?a=%20b&c="


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("model-invocation-path", "/leading"),
        ("model-invocation-path", "trailing/"),
        ("model-invocation-path", "a b"),
        ("model-invocation-path", "a" * 101),
        ("model-query-string", "no-pair"),
        ("model-query-string", "a=b c"),
        ("model-query-string", "a=ü"),
        ("model-query-string", "a=" + "b" * 2048),
        ("target-variant", "Other"),
        ("target-variant", "-"),
        ("target-variant", "v" * 64),
    ],
)
def test_a_bad_header_is_400_and_named(header: str, value: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(headers={PREFIX + header: value})
    assert (caught.value.status, caught.value.code) == (400, "InputValidationError")


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/endpoints/demo/invocations", "POST", 404),
        ("/", "POST", 404),
        (PATH, "GET", 405),
        (PATH.replace("demo", ""), "POST", 400),
        (PATH.replace("demo", "a--"), "POST", 400),
        (PATH.replace("demo", "%C3%BC"), "POST", 400),
        (PATH.replace("demo", "d" * 64), "POST", 400),
    ],
)
def test_a_path_that_leads_nowhere(path: str, method: str, status: int) -> None:
    with pytest.raises(Refused) as caught:
        ask(path, method)
    assert caught.value.status == status


def test_an_unknown_endpoint_and_another_content_type() -> None:
    with pytest.raises(Refused, match="Endpoint demo not found"):
        ask(endpoints=("other",))
    with pytest.raises(Refused, match="Content-Type"):
        ask(headers={"content-type": "application/json"})


def test_the_answer_names_the_error_as_the_service_does() -> None:
    assert json.loads(Refused(400, "InputValidationError", "no").body()) == {
        "Message": "no",
        "ErrorCode": "InputValidationError",
    }
    assert json.loads(Refused(424, "ModelError", "no").body())["OriginalStatusCode"] == 424
