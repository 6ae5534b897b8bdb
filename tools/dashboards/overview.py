"""Whether callers hear their first word in time."""

from __future__ import annotations

from firstword.telemetry import SLO_FIRST_AUDIO_S
from tools.dashboards.parts import (
    PER_SECOND,
    Board,
    Limit,
    Panel,
    Query,
    Row,
    per_second,
    percentiles,
    quantile,
    rare,
)

ALLOWED = 0.05
"""So many turns may be late; recording.yml and alerts.yml go by it."""
PARTS = {
    "segmentation": "1 segmentation",
    "wait": "2 wait",
    "upstream_first_byte": "3 upstream_first_byte",
    "publish": "4 publish",
}
"""Of a first audio, as they follow each other, in the words of the runbook."""
SLO: tuple[Limit, ...] = ((SLO_FIRST_AUDIO_S, "red"),)


def tile(title: str, says: str, unit: str, expr: str, *limits: Limit) -> Panel:
    """One number of the first line; "no data" where the expression has none now."""
    query = Query(f"{expr} or vector(NaN)", title)
    return Panel(title, says, unit, (query,), "number", 3, 5, limits)


NOW = Row(
    "Is anything wrong, for whom",
    (
        Panel(
            "Alerts that fire",
            "docs/RUNBOOK.md has an entry for each: start there.",
            "short",
            (
                Query(
                    'max by (alertname) (ALERTS{alertstate="firing"}) or '
                    'label_replace(absent(ALERTS{alertstate="firing"}) - 1, '
                    '"alertname", "none", "", "")',
                    "{{alertname}}",
                ),
            ),
            "names",
            6,
            5,
            ((1, "red"),),
        ),
        tile(
            "First audio, p95",
            "First text accepted to first audio published, over 5 minutes.",
            "s",
            "max(firstword:first_audio_seconds:p95_5m)",
            *SLO,
        ),
        tile(
            f"Later than {SLO_FIRST_AUDIO_S * 1000:g} ms",
            "Share of turns whose first audio was late, over 5 minutes. 5 % may be.",
            "percentunit",
            "max(firstword:first_audio_slow:ratio_rate5m)",
            (ALLOWED, "orange"),
            (6 * ALLOWED, "red"),
        ),
        tile(
            "Sentences that fail",
            "Share of segments that end in an error event instead of speech, over 5 minutes.",
            "percentunit",
            "max(firstword:segments_failed:ratio_rate5m)",
            (0.02, "red"),
        ),
        tile(
            "Stuck sessions",
            "A sentence in hand for more than 10 s and no word of it.",
            "short",
            "sum(firstword_stuck_sessions)",
            (1, "red"),
        ),
        tile(
            "Processes down",
            "They do not answer: dead or frozen.",
            "short",
            'sum(up{job="firstword"} == bool 0)',
            (1, "red"),
        ),
        tile(
            "Processes not ready",
            "They say themselves that they cannot work; which, and why, is below.",
            "short",
            "sum(sum by (instance) (firstword_not_ready) > bool 0)",
            (1, "red"),
        ),
    ),
)
FIRST_AUDIO = Row(
    "First audio: what callers wait for, and where the time goes",
    (
        Panel(
            "First audio",
            "First text accepted to first audio published; the points are single turns and lead "
            "to their traces. The line is the objective for 95 of 100.",
            "s",
            percentiles("firstword_first_audio_seconds", exemplars=True),
            "decades",
            height=8,
            limits=SLO,
        ),
        Panel(
            "Waterfall: where it goes now",
            "Mean of each part over 5 minutes, as they follow each other. The longest bar is the "
            "guilty one. 1 until the first sentence is there: the language model, the segmenter. "
            "2 until it is sent: the gateway, its connections. 3 until audio comes back: "
            "inference. 4 until it is on the stream: Redis.",
            "s",
            tuple(Query(f"firstword:{part}_seconds:mean_5m", says) for part, says in PARTS.items()),
            "bars",
            height=8,
        ),
        Panel(
            "Waterfall: where it went",
            "The same over time, on each other. (3 is the mean of every segment, the others of "
            "first ones.)",
            "s",
            tuple(Query(f"firstword:{part}_seconds:mean_5m", says) for part, says in PARTS.items()),
            "stacked",
            height=8,
        ),
    ),
)
AGENT = Row(
    "Agent: what callers see",
    (
        Panel(
            "Turns",
            "That callers asked for, by how they ended.",
            PER_SECOND,
            (Query(per_second("firstword_agent_turns_total", "outcome"), "{{outcome}}"),),
            span=6,
        ),
        Panel(
            "Refused requests",
            "By code. The caller's mistake, but for busy, quota, unreachable, too_many_sessions.",
            PER_SECOND,
            (Query(rare("firstword_agent_refused_requests_total", "code"), "{{code}}"),),
            "events",
            6,
        ),
        Panel(
            "Language model: first text, p95",
            "Prompt handed over to first text of the answer: before first audio is counted.",
            "s",
            (Query(quantile(0.95, "firstword_model_first_text_seconds"), "p95"),),
            "decades",
            6,
        ),
        Panel(
            "Callers' first audio, p95",
            "Request to first audio handed over, the model's time with it. In batch mode that is "
            "after the whole turn.",
            "s",
            (Query(quantile(0.95, "firstword_client_first_audio_seconds", "mode"), "{{mode}}"),),
            "decades",
            6,
        ),
    ),
)
SEGMENTER = Row(
    "Segmenter: text to sentences",
    (
        Panel(
            "Turns begun",
            "First sentences committed.",
            PER_SECOND,
            (Query("sum(rate(firstword_segmentation_seconds_count[$__rate_interval]))", "turns"),),
        ),
        Panel(
            "Messages not spoken",
            "By reason. Alarming: server_full, overloaded, gap_full.",
            PER_SECOND,
            (Query(rare("firstword_skipped_messages_total", "reason"), "{{reason}}"),),
            "events",
        ),
        Panel(
            "First sentence after",
            "First text accepted to first sentence committed: mostly the model writing it.",
            "s",
            percentiles("firstword_segmentation_seconds"),
            "decades",
        ),
    ),
)
GATEWAY = Row(
    "Gateway: sentences to audio",
    (
        Panel(
            "Sentences",
            "By how they ended.",
            PER_SECOND,
            (Query(per_second("firstword_segments_total", "outcome"), "{{outcome}}"),),
        ),
        Panel(
            "Errors",
            "Error events that listeners got, by code.",
            PER_SECOND,
            (Query(rare("firstword_errors_total", "code"), "{{code}}"),),
            "events",
        ),
        Panel(
            "First byte of synthesis after",
            "Request sent to first audio byte: the engine, its queue and the way there.",
            "s",
            percentiles("firstword_upstream_first_byte_seconds"),
            "decades",
        ),
    ),
)
INFERENCE = Row(
    "Inference: the engine (empty behind SageMaker)",
    (
        Panel(
            "Requests",
            "Syntheses done.",
            PER_SECOND,
            (Query("sum(rate(firstword_synthesis_seconds_count[$__rate_interval]))", "requests"),),
        ),
        Panel(
            "Refused or failed",
            "Requests, by code.",
            PER_SECOND,
            (Query(rare("firstword_synthesis_errors_total", "code"), "{{code}}"),),
            "events",
        ),
        Panel(
            "Synthesis takes",
            "The engine's time for one whole sentence.",
            "s",
            percentiles("firstword_synthesis_seconds"),
            "decades",
        ),
    ),
)
PROCESSES = Row(
    "Processes, and the month's allowance",
    (
        Panel(
            "Not ready, and why",
            "Red checks by process: `curl /readyz` there says why in words.",
            "short",
            (
                Query(
                    "max by (service, instance, check) (firstword_not_ready) > 0 "
                    'or label_replace(max(firstword_not_ready) == 0, "check", "none", "", "")',
                    "{{check}} {{service}} {{instance}}",
                ),
            ),
            "events",
        ),
        Panel(
            "Timers late, p99",
            "How late the event loop is; over 100 ms all sessions of the process wait.",
            "s",
            (Query(quantile(0.99, "firstword_loop_late_seconds", "service"), "{{service}}"),),
            "decades",
            limits=((0.1, "orange"),),
        ),
        Panel(
            "Allowance: how fast it is used up",
            "1: as fast as it may be. 14.4 over an hour pages, 6 over six hours pages, 1 over "
            "three days is a ticket.",
            "suffix:×",
            tuple(
                Query(
                    f"firstword:first_audio_slow:ratio_rate{window} / {ALLOWED}", f"over {window}"
                )
                for window in ("1h", "6h", "3d")
            ),
            limits=((1, "yellow"), (6, "orange"), (14.4, "red")),
        ),
    ),
)
OVERVIEW = Board(
    "overview",
    "Firstword: overview",
    "Whether callers hear their first word in time, and if not, which part of the way is slow.",
    (NOW, FIRST_AUDIO, AGENT, SEGMENTER, GATEWAY, INFERENCE, PROCESSES),
)
