"""One trace from the token to its audio, through every service, and what its spans say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from firstword import messages as m
from firstword import tracing
from firstword.client import collect
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack
from tests.integration.test_agent import serving
from tests.support import eventually

NAMES = {
    *("firstword.segmentation", "firstword.wait", "firstword.upstream", "firstword.publish"),
    *("firstword.first_audio", "firstword.turn"),
}
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Spans:
    """What was exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def of(self, turn: str) -> dict[str, ReadableSpan]:
        """A turn's spans by name; of several of a name the first."""
        found: dict[str, ReadableSpan] = {}
        for span in self.exporter.get_finished_spans():
            if (span.attributes or {}).get("firstword.turn") == turn:
                found.setdefault(span.name, span)
        return found

    def has(self, turn: str, name: str) -> bool:
        """Whether a turn has a span of this name."""
        return name in self.of(turn)

    def of_requests(self, trace_id: int) -> dict[str, ReadableSpan]:
        """A trace's spans of the container, by name; of several of a name the first."""
        found: dict[str, ReadableSpan] = {}
        for span in self.exporter.get_finished_spans():
            ours = span.context is not None and span.context.trace_id == trace_id
            if ours and "firstword.request" in (span.attributes or {}):
                found.setdefault(span.name, span)
        return found

    def numbers(self, attribute: str) -> list[float]:
        """What all spans say that have this attribute."""
        said = [
            (span.attributes or {}).get(attribute) for span in self.exporter.get_finished_spans()
        ]
        return [each for each in said if isinstance(each, float)]


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    tracing.use(made.provider)
    yield made
    tracing.use(None)


async def traced(
    stack: Stack, spans: Spans, turn: str, traceparent: str | None
) -> dict[str, ReadableSpan]:
    """Publish a turn as any service may, and wait for its spans."""
    partitions = await eventually(stack.firstword.partitions, "a segmenter has started")
    text = m.Text(session="s", turn=turn, text="One. Two.", traceparent=traceparent)
    for message in (text, m.End(session="s", turn=turn)):
        await stack.firstword.streams.publish(message, partitions)
    await eventually(lambda: set(spans.of(turn)) == NAMES, "every span of the turn is there")
    return spans.of(turn)


async def test_a157_one_trace_leads_from_the_token_to_its_audio(stack: Stack, spans: Spans) -> None:
    found = await traced(stack, spans, "t", f"00-{TRACE_ID}-{SPAN_ID}-01")
    for span in found.values():
        assert span.context is not None and span.parent is not None
        assert f"{span.context.trace_id:032x}" == TRACE_ID
        assert f"{span.parent.span_id:016x}" == SPAN_ID
        assert span.start_time is not None and span.end_time is not None
        assert span.start_time <= span.end_time
    turn, first_audio = found["firstword.turn"], found["firstword.first_audio"]
    assert turn.start_time == first_audio.start_time
    assert (turn.attributes or {})["firstword.outcome"] == "complete"


async def test_the_containers_part_of_a_sentence_is_in_its_trace(
    stack: Stack, spans: Spans
) -> None:
    await traced(stack, spans, "t", f"00-{TRACE_ID}-{SPAN_ID}-01")
    found = spans.of_requests(int(TRACE_ID, 16))
    assert set(found) == {"firstword.queue", "firstword.synthesis"}
    for span in found.values():
        assert span.parent is not None and f"{span.parent.span_id:016x}" == SPAN_ID
    queue, synthesis = found["firstword.queue"], found["firstword.synthesis"]
    assert queue.end_time == synthesis.start_time
    assert (synthesis.attributes or {})["firstword.outcome"] == "complete"


async def test_a_turn_without_a_traceparent_has_the_containers_part_too(
    stack: Stack, spans: Spans
) -> None:
    turn = (await traced(stack, spans, "t", None))["firstword.turn"]
    assert turn.context is not None
    found = spans.of_requests(turn.context.trace_id)
    assert set(found) == {"firstword.queue", "firstword.synthesis"}


async def test_no_span_has_text(stack: Stack, spans: Spans) -> None:
    await traced(stack, spans, "t", None)
    for span in spans.exporter.get_finished_spans():
        said = f"{span.name} {dict(span.attributes or {})} {span.events} {span.status.description}"
        assert "One" not in said and "Two" not in said


async def test_cancelled_turns_have_their_span_too(redis_url: str, spans: Spans) -> None:
    """The one that is spoken, at the gateway; one that waited behind it, at the segmenter."""
    slow = ToneSynthesizer(ToneOptions(latency_s=60))
    async with Stack(redis_url, lambda: slow) as stack:
        session = stack.firstword.session("s")
        tracer = spans.provider.get_tracer("a publisher")
        with tracer.start_as_current_span("mine") as mine:
            spoken = await session.say("One is spoken.")
            waiting = await session.say("Two waits.")
        await eventually(slow.running.is_set, "the first is spoken")
        await session.cancel()
        for turn in (spoken, waiting):
            has_span = partial(spans.has, turn, "firstword.turn")
            await eventually(has_span, f"{turn} is over")
            span = spans.of(turn)["firstword.turn"]
            assert span.context is not None
            assert span.context.trace_id == mine.get_span_context().trace_id
            assert (span.attributes or {})["firstword.outcome"] == "cancelled"
            assert span.start_time is not None and span.end_time is not None
            assert span.start_time <= span.end_time

        def stopped() -> bool:
            found = spans.of_requests(mine.get_span_context().trace_id)
            outcomes = [(span.attributes or {}).get("firstword.outcome") for span in found.values()]
            return "cancelled" in outcomes

        await eventually(stopped, "the container's part says so, too")


async def test_without_a_traceparent_all_services_find_the_same_trace(
    stack: Stack, spans: Spans
) -> None:
    found = await traced(stack, spans, "t", None)
    assert len({span.context.trace_id for span in found.values() if span.context}) == 1
    other = await traced(stack, spans, "u", "nonsense")
    ids = {
        span.context.trace_id for each in (found, other) for span in each.values() if span.context
    }
    assert len(ids) == 2


def total(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0.0


async def test_a156_what_spans_say_is_what_the_histograms_have(stack: Stack, spans: Spans) -> None:
    sums = ("firstword_first_audio_seconds_sum", "firstword_upstream_first_byte_seconds_sum")
    before = [total(name) for name in sums]
    await traced(stack, spans, "t", None)
    said = [
        sum(spans.numbers(attribute))
        for attribute in ("firstword.first_audio_s", "firstword.first_byte_s")
    ]
    counted = [total(name) - was for name, was in zip(sums, before, strict=True)]
    # A sum that other tests of this process made large has few digits left.
    assert counted == pytest.approx(said, abs=0.001)
    assert all(said)


async def test_what_is_published_inside_a_span_belongs_to_its_trace(
    stack: Stack, spans: Spans
) -> None:
    tracer = spans.provider.get_tracer("a publisher")
    async with stack.firstword.session() as session:
        with tracer.start_as_current_span("mine") as mine:
            turn = await session.say("One. Two.")
        await collect(session.listen(), turn)
    await eventually(lambda: set(spans.of(turn)) == NAMES, "every span of the turn is there")
    for span in spans.of(turn).values():
        assert span.context is not None and span.parent is not None
        assert span.context.trace_id == mine.get_span_context().trace_id
        assert span.parent.span_id == mine.get_span_context().span_id


DOORS = {
    "/invocations": {"text": "One. Two.", "turn": "mine"},
    "/v1/audio/speech": {"input": "One. Two.", "response_format": "pcm"},
    "/v1/sessions/s/text": {"text": "One. Two.", "turn": "mine", "end": True},
}


@pytest.mark.parametrize("door", DOORS)
async def test_a157_a_caller_of_the_agent_finds_its_own_trace_again(
    stack: Stack, spans: Spans, door: str
) -> None:
    traceparent = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01"}
    turn = "speech" if "speech" in door else "mine"
    async with serving(stack.redis_url) as agent:
        async with agent.post(door, json=DOORS[door], headers=traceparent) as response:
            assert response.status < 300
            await response.read()
        await eventually(lambda: set(spans.of(turn)) == NAMES, "every span of the turn is there")
    made = spans.exporter.get_finished_spans()
    traces = {span.context.trace_id for span in made if span.context is not None}
    assert traces == {int(TRACE_ID, 16)}, "also those of the agent and of the container"


def test_what_is_published_while_the_agent_replies_has_its_span_around_it(spans: Spans) -> None:
    with tracing.span("firstword.reply"):
        inside = trace.get_current_span().get_span_context()
    [reply] = spans.exporter.get_finished_spans()
    assert reply.name == "firstword.reply"
    assert reply.context is not None and reply.context.trace_id == inside.trace_id
