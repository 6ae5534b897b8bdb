"""Metrics and spans of the gateway's commits."""

from __future__ import annotations

import time

from firstword import messages as m
from firstword import telemetry
from firstword.ids import seconds_between
from firstword.tracing import TurnTrace, at
from services.tts_gateway.actions import Commit


def measure(
    commit: Commit, first_id: str, took_s: float, *, ahead_s: float | None, trace: TurnTrace
) -> None:
    """Count one stored commit, and make the spans that end with it.

    It took `took_s`, and its first event has the id `first_id`. `ahead_s`: audio published and not
    played yet, None if nobody plays it in real time. `trace` is of the present or the last turn.
    """
    turn_began = False
    for event in commit.events:
        match event:
            case m.TurnStarted():
                turn_began = True
                _first_audio(first_id, took_s, trace)
            case m.SegmentStarted():
                _first_byte(event, first_id, took_s, trace, of_turn=turn_began)
            case m.SegmentDone():
                telemetry.segments.labels("done").inc()
                if ahead_s is not None:
                    telemetry.audio_ahead.observe(max(0.0, ahead_s))
            case m.TurnDone(reason=reason):
                telemetry.turns.labels(reason).inc()
                if event.turn == trace.turn:
                    trace.record("turn", at(trace.opened_at), at(first_id), outcome=reason)
            case m.ErrorEvent(code=code, turn=turn, n=n):
                telemetry.segments.labels("error").inc()
                telemetry.count_error(code)
                telemetry.logger().warning("segment_failed", turn=turn, segment=n, code=code)
            case _:
                pass
    telemetry.speech.inc(commit.speech_s)
    if commit.dry_s and ahead_s is not None:
        telemetry.underruns.inc()
        telemetry.underrun_seconds.inc(commit.dry_s)
    if commit.drops:
        counter = telemetry.turns if commit.drops == "turn" else telemetry.segments
        counter.labels("cancelled").inc()
    if commit.drops == "turn" and commit.fields["done_turn"] == trace.turn:
        # Nothing is published, so the server tells no time.
        trace.record("turn", at(trace.opened_at), time.time(), outcome="cancelled")


def _first_audio(first_id: str, took_s: float, trace: TurnTrace) -> None:
    ttfa_s = max(0.0, seconds_between(trace.opened_at, first_id))
    telemetry.first_audio.observe(ttfa_s, trace.exemplar)
    telemetry.publish.observe(took_s, trace.exemplar)
    out = at(first_id)
    trace.record("first_audio", at(trace.opened_at), out, first_audio_s=ttfa_s)
    trace.record("publish", out - took_s, out)


def _first_byte(
    begun: m.SegmentStarted, first_id: str, took_s: float, trace: TurnTrace, *, of_turn: bool
) -> None:
    ttfb_s = begun.ttfb_ms / 1000
    telemetry.upstream_first_byte.observe(ttfb_s, trace.exemplar)
    came = at(first_id) - took_s
    trace.record("upstream", came - ttfb_s, came, first_byte_s=ttfb_s, segment=begun.n)
    if of_turn:
        waited_s = max(0.0, seconds_between(begun.committed_at, first_id) - ttfb_s - took_s)
        telemetry.wait.observe(waited_s, trace.exemplar)
        trace.record("wait", came - ttfb_s - waited_s, came - ttfb_s)
