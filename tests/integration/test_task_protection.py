"""The task is protected while there is work, by ECS's agent, which may do as it likes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from firstword import messages as m
from firstword.runtime import HttpServer
from firstword.streams import Streams
from firstword.task_protection import MINUTES, TaskProtection
from tests.doubles.gateway_rig import Container, SessionHand, gateway
from tests.support import eventually

ON = {"ProtectionEnabled": True, "ExpiresInMinutes": MINUTES}
OFF = {"ProtectionEnabled": False}

Answer = Callable[[dict[str, Any]], tuple[int, str]]


def agreed(body: dict[str, Any]) -> tuple[int, str]:
    told = {"TaskArn": "arn", "ProtectionEnabled": body["ProtectionEnabled"]}
    return 200, json.dumps({"protection": told})


class EcsAgent:
    """A double of the agent: keeps what it was asked, and answers as it is told to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Answer = agreed
        app = web.Application()
        app.router.add_put("/api/task-protection/v1/state", self._put)
        self.http = HttpServer(app, "127.0.0.1", 0)

    @property
    def uri(self) -> str:
        return f"http://{self.http.address}/api"

    async def _put(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        status, text = self.answer(body)
        return web.Response(status=status, text=text, content_type="text/plain")


@pytest.fixture
async def ecs() -> AsyncIterator[EcsAgent]:
    agent = EcsAgent()
    await agent.http.start()
    yield agent
    await agent.http.stop()


class Work:
    """Whether there is any; sees each look of the protection."""

    def __init__(self) -> None:
        self.is_there = True
        self.looks = 0

    def __call__(self) -> bool:
        self.looks += 1
        return self.is_there

    async def is_looked_at(self, times: int = 3) -> None:
        seen = self.looks
        await eventually(lambda: self.looks >= seen + times, "it looks again")


@asynccontextmanager
async def protecting(uri: str, work: Work, **more: float) -> AsyncIterator[asyncio.Task[None]]:
    protection = TaskProtection(uri, **{"look_s": 0.01, "retry_s": 0.01, **more})
    task = asyncio.create_task(protection.run(work))
    yield task
    assert not task.done(), "it never ends by itself"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_protected_while_there_is_work_and_no_longer(ecs: EcsAgent) -> None:
    work = Work()
    async with protecting(ecs.uri, work):
        await eventually(lambda: ecs.asked == [ON], "protected")
        await work.is_looked_at()
        assert ecs.asked == [ON], "it is asked once"
        work.is_there = False
        await eventually(lambda: ecs.asked == [ON, OFF], "given up")
        await work.is_looked_at()
        assert ecs.asked == [ON, OFF]
        work.is_there = True
        await eventually(lambda: ecs.asked == [ON, OFF, ON], "protected again")


async def test_without_work_nothing_is_asked(ecs: EcsAgent) -> None:
    work = Work()
    work.is_there = False
    async with protecting(ecs.uri, work):
        await work.is_looked_at()
    assert ecs.asked == []


async def test_renewed_before_it_ends(ecs: EcsAgent) -> None:
    async with protecting(ecs.uri, Work(), renew_s=0.02):
        await eventually(lambda: ecs.asked[:3] == [ON] * 3, "renewed twice")


@pytest.mark.parametrize(
    ("status", "text", "name"),
    [
        (200, '{"failure": {"Arn": "a", "Reason": "DEPLOYMENT_BLOCKED"}}', "DEPLOYMENT_BLOCKED"),
        (400, '{"error": {"Code": "AccessDeniedException"}}', "AccessDeniedException"),
        (500, "no JSON", "JSONDecodeError"),
        (200, '["surprise"]', "bad_answer"),
    ],
)
async def test_a_refusal_is_told_once_and_asked_again(
    ecs: EcsAgent, status: int, text: str, name: str
) -> None:
    ecs.answer = lambda _body: (status, text)
    with capture_logs() as logs:
        async with protecting(ecs.uri, Work()):
            await eventually(lambda: len(ecs.asked) > 3, "asked again")
            ecs.answer = agreed
            seen = len(ecs.asked)
            await eventually(lambda: len(ecs.asked) > seen, "asked until it is given")
    told = [log for log in logs if log["event"] == "task_protection_failed"]
    assert [log["error"] for log in told] == [name]


async def test_an_agent_that_is_not_there_harms_nobody(ecs: EcsAgent) -> None:
    uri = ecs.uri
    await ecs.http.stop()
    work = Work()
    with capture_logs() as logs:
        async with protecting(uri, work):
            await eventually(lambda: logs, "told")
            await work.is_looked_at()
    assert logs[0]["error"] == "ClientConnectorError"


async def test_a_gateway_with_sessions_protects_its_task(redis_url: str, ecs: EcsAgent) -> None:
    streams = Streams(redis_url)
    hand = SessionHand(streams)
    async with Container() as container, gateway(redis_url, container.url, ecs_agent=ecs.uri):
        await hand.put(hand.open())
        await eventually(lambda: ecs.asked == [ON], "protected")
        await hand.put(m.SessionClose())
        await eventually(lambda: ecs.asked == [ON, OFF], "given up")
    await streams.close()
