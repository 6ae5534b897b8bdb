"""What a log line is about stands in its fields: session, turn and segment, or the request's id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from firstword import keys
from firstword import messages as m
from firstword.session_protocol import Error
from firstword.streams import Streams
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Audio, Prepared, Stop
from tests.doubles.gateway_rig import Container, HeldTone, SessionHand, gateway
from tests.doubles.inference_client import running
from tests.doubles.tone_synthesizer import ToneSynthesizer
from tests.e2e.stack import Stack, until_done
from tests.support import eventually

TEXT = "The rain had stopped, and nobody noticed it at first."
NAMES = {"session": "s", "turn": "t"}


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """The lines as they are written."""
    with capture_logs([merge_contextvars]) as lines:
        yield lines


def of(logs: list[Any], event: str) -> list[dict[str, Any]]:
    """What the lines of this event are about."""
    about = ("session", "turn", "segment", "code", "request")
    lines = [line for line in logs if line["event"] == event]
    return [{name: line[name] for name in about if line.get(name) is not None} for line in lines]


async def test_the_gateway_names_the_segment_that_a_break_meets_and_no_other(
    redis_url: str, logs: list[Any]
) -> None:
    tone = HeldTone()
    streams = Streams(redis_url)
    hand = SessionHand(streams)
    async with Container(tone) as container, gateway(redis_url, container.url):
        await hand.put(hand.open(), hand.segment("t", 7, TEXT, first=True))

        async def begun() -> bool:
            return bool((await hand.hear()).segments.get(7))

        await eventually(begun, "it is audible")
        assert container.proxy is not None
        container.proxy.cut()
        tone.go.set()
        await hand.put(m.TurnEnd(turn="t", segments=1))

        async def over() -> bool:
            return "t" in (await hand.hear()).turn_ends

        await eventually(over, "the turn is over")
        container.proxy.cut()  # nothing is in hand
        await eventually(lambda: len(of(logs, "upstream_lost")) == 2, "both are told")
    await streams.close()
    in_hand = {**NAMES, "segment": 7, "code": "upstream_lost"}
    assert of(logs, "upstream_lost") == [in_hand, {"session": "s", "code": "upstream_lost"}]
    assert of(logs, "retry")[0] == in_hand
    assert TEXT not in str(logs)


async def test_the_gateway_names_the_segment_that_it_gives_up_and_the_entry_that_it_refuses(
    redis_url: str, logs: list[Any]
) -> None:
    streams = Streams(redis_url)
    hand = SessionHand(streams)
    async with Container() as container, gateway(redis_url, container.url):
        refused = replace(hand.segment("t", 1, TEXT, first=True), voice="nobody")
        await hand.put(hand.open(), refused)
        await hand.put_raw(b"\x00")
        await eventually(lambda: of(logs, "dead_letter"), "the entry is put aside")
    await streams.close()
    assert of(logs, "segment_failed") == [{**NAMES, "segment": 1, "code": "unknown_voice"}]
    assert of(logs, "dead_letter") == [{"session": "s"}]
    assert TEXT not in str(logs)


async def test_the_segmenter_names_session_and_turn_of_what_it_refuses(
    redis_url: str, logs: list[Any]
) -> None:
    partition = keys.ingress(keys.partition_of("s", keys.DEFAULT_PARTITIONS))
    async with Stack(redis_url) as stack:
        events = await stack.firstword.session("s").listener()
        both = {"text": TEXT, "seq": "0", "end": "1"}
        await stack.firstword.streams.append(partition, {**NAMES, **both})
        await stack.firstword.streams.append(partition, {**NAMES, "text": TEXT, "seq": "3"})
        await stack.firstword.streams.append(partition, {**NAMES, "seq": "4", "end": "1"})
        await until_done(events)
    assert of(logs, "dead_letter") == [{"session": "s"}]
    assert of(logs, "error_told") == [{**NAMES, "code": each} for each in ("gap", "gap_skipped")]
    assert TEXT not in str(logs)


class FailsLate(ToneSynthesizer):
    """The second piece of a text fails, and says what was said."""

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        if index == 1:
            raise RuntimeError(TEXT)
        return super().synthesize(prepared, index, stop)


async def test_inference_names_the_request_that_failed(logs: list[Any]) -> None:
    async with running(FailsLate, InferenceSettings()) as service:
        async with service.connect() as client:
            end = (await client.say("3.1", TEXT * 3)).end
            assert isinstance(end, Error)
        url = f"http://{service.address}/invocations"
        for name in ({"id": "7"}, {}):  # one after the other, by one connection
            body = {"text": TEXT * 3, "stream": False, **name}
            async with service.http.post(url, data=json.dumps(body)) as response:
                assert response.status == 503
    assert of(logs, "synthesis_failed") == [{"request": "3.1"}]
    assert of(logs, "invocation_failed") == [{"request": "7"}, {}]
    assert TEXT not in str(logs)
