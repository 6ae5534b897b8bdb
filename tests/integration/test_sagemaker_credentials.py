"""Where the gateway's AWS keys come from: asked off the loop, kept nowhere else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from firstword.errors import UpstreamError
from firstword.runtime import HttpServer
from services.tts_gateway.sagemaker_target import Target
from tests.doubles.sagemaker import MISSING

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from services.tts_gateway.sagemaker import SageMakerUpstream
from services.tts_gateway.sagemaker_credentials import Callers

HERE = Target("speech", region="eu-west-1")


@pytest.fixture(autouse=True)
def nothing_is_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")


class TaskRole:
    """What a container asks on ECS."""

    def __init__(self, valid_s: float) -> None:
        self.asked: list[str | None] = []
        self._expires = datetime.now(UTC) + timedelta(seconds=valid_s)
        app = web.Application()
        app.router.add_get("/keys", self._answer)
        self.http = HttpServer(app, "127.0.0.1", 0)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("Authorization"))
        keys: dict[str, Any] = {
            "AccessKeyId": "ROLE",
            "SecretAccessKey": "secret",
            "Token": "token",
            "Expiration": self._expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return web.json_response(keys)


@pytest.fixture
async def task_role(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TaskRole]:
    role = TaskRole(valid_s=1200)
    await role.http.start()
    url = f"http://{role.http.address}/keys"
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "who we are")
    yield role
    await role.http.stop()


async def test_a_task_role_is_asked_once_and_for_as_long_as_its_keys_are_good(
    task_role: TaskRole,
) -> None:
    environment = dict(os.environ)
    callers = Callers(HERE)
    first, second = await callers.caller(), await callers.caller()
    assert first.identity.access_key_id == second.identity.access_key_id == "ROLE"
    assert first.identity.session_token == "token"
    assert first.valid_s is not None and 1000 < first.valid_s <= 1200
    assert task_role.asked == ["who we are"]
    assert dict(os.environ) == environment


async def test_a_stream_is_replaced_before_its_keys_expire(task_role: TaskRole) -> None:
    upstream = SageMakerUpstream(HERE)
    caller = await upstream._callers.caller()
    assert caller.valid_s is not None
    assert upstream._max_age_s(caller) <= caller.valid_s - 60


@pytest.mark.usefixtures("keys")
async def test_keys_without_end_leave_a_stream_its_time() -> None:
    upstream = SageMakerUpstream(HERE)
    caller = await upstream._callers.caller()
    assert caller.valid_s is None
    assert 1680 < upstream._max_age_s(caller) <= 1740


async def test_a_role_that_does_not_answer_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/keys")
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.SLEEP_TIME", 0)
    with pytest.raises(UpstreamError) as raised:
        await Callers(HERE).caller()
    assert (raised.value.code, raised.value.retryable) == ("upstream_no_credentials", True)


async def test_a_profile_gives_keys_and_region(tmp_path: Path) -> None:
    callers = Callers(Target("speech", profile="dev"))
    with pytest.raises(UpstreamError, match="dev") as raised:
        await callers.caller()
    assert (raised.value.code, raised.value.retryable) == ("upstream_no_credentials", False)
    (tmp_path / "config").write_text("[profile dev]\nregion = ap-south-1\n")
    (tmp_path / "credentials").write_text(
        "[dev]\naws_access_key_id = P\naws_secret_access_key = S\n"
    )
    caller = await callers.caller()  # it is mended; nobody was restarted
    assert (caller.identity.access_key_id, caller.region) == ("P", "ap-south-1")


@pytest.mark.usefixtures("keys")
async def test_the_region_comes_from_the_url_or_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UpstreamError) as raised:
        await Callers(Target("speech")).caller()
    assert (raised.value.code, raised.value.retryable) == ("upstream_no_region", False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert (await Callers(Target("speech")).caller()).region == "eu-north-1"
    monkeypatch.setenv("AWS_REGION", "eu-south-1")
    assert (await Callers(Target("speech")).caller()).region == "eu-south-1"
    assert (await Callers(HERE).caller()).region == "eu-west-1"


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("target", "uri"),
    [
        (HERE, "https://runtime.sagemaker.eu-west-1.amazonaws.com:8443"),
        (
            Target("x", region="cn-north-1"),
            "https://runtime.sagemaker.cn-north-1.amazonaws.com.cn:8443",
        ),
        (
            Target("x", region="us-west-2", fips=True),
            "https://runtime-fips.sagemaker.us-west-2.amazonaws.com:8443",
        ),
        (
            Target("x", region="eu-newest-9"),
            "https://runtime.sagemaker.eu-newest-9.amazonaws.com:8443",
        ),
        (Target("x", region="r", endpoint_uri="https://vpce.example/"), "https://vpce.example"),
    ],
)
async def test_the_address_is_that_of_the_partition_and_has_its_port(
    target: Target, uri: str
) -> None:
    assert (await Callers(target).caller()).endpoint_uri == uri
