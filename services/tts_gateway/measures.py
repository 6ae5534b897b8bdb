"""What the gateway's commits say in metrics."""

from __future__ import annotations

from firstword import messages as m
from firstword import telemetry
from firstword.ids import seconds_between
from services.tts_gateway.actions import Commit


def measure(
    commit: Commit,
    first_id: str,
    took_s: float,
    *,
    opened_at: str,
    ahead_s: float | None,
    traceparent: str | None,
) -> None:
    """Count one commit that is stored.

    It took `took_s` and its first event has the id `first_id`; the turn's first text came at
    `opened_at`. `ahead_s` of audio is out and not played yet, None where nobody plays as it comes.
    """
    trace = telemetry.trace_of(traceparent)
    turn_began = False
    for event in commit.events:
        match event:
            case m.TurnStarted():
                turn_began = True
                ttfa_s = max(0.0, seconds_between(opened_at, first_id))
                telemetry.first_audio.observe(ttfa_s, trace)
                telemetry.publish.observe(took_s, trace)
            case m.SegmentStarted(ttfb_ms=ttfb_ms, committed_at=committed_at):
                telemetry.upstream_first_byte.observe(ttfb_ms / 1000, trace)
                if turn_began:
                    waited = seconds_between(committed_at, first_id) - ttfb_ms / 1000 - took_s
                    telemetry.wait.observe(max(0.0, waited), trace)
            case m.SegmentDone():
                telemetry.segments.labels("done").inc()
                if ahead_s is not None:
                    telemetry.audio_ahead.observe(max(0.0, ahead_s))
            case m.TurnDone(reason=reason):
                telemetry.turns.labels(reason).inc()
            case m.ErrorEvent(code=code):
                telemetry.segments.labels("error").inc()
                telemetry.count_error(code)
            case _:
                pass
    if commit.dry_s and ahead_s is not None:
        telemetry.underruns.inc()
        telemetry.underrun_seconds.inc(commit.dry_s)
    if commit.drops:
        counter = telemetry.turns if commit.drops == "turn" else telemetry.segments
        counter.labels("cancelled").inc()
