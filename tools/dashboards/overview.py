"""Whether callers hear their first word in time."""

from __future__ import annotations

from firstword.telemetry import SLO_FIRST_AUDIO_S
from tools.dashboards.parts import (
    Board,
    Panel,
    Query,
    Row,
    per_second,
    percentiles,
    quantile,
    stage,
)

PARTS = ("segmentation", "wait", "upstream_first_byte", "publish")
"""Of a first audio, as they follow each other."""

OVERVIEW = Board(
    "overview",
    "Firstword: overview",
    "Whether callers hear their first word in time, and if not, which part of the way is slow.",
    (
        Row(
            "First audio",
            (
                Panel(
                    f"Later than {SLO_FIRST_AUDIO_S:g} s, 1 h",
                    "Share of turns whose first audio was late. The objective allows 5 %.",
                    "percentunit",
                    (Query("firstword:first_audio_slow:ratio_rate1h", "late"),),
                    "number",
                    4,
                ),
                Panel(
                    "First audio, 95 of 100",
                    "First text accepted to first audio published, over 5 minutes.",
                    "s",
                    (Query("firstword:first_audio_seconds:p95_5m", "95 of 100"),),
                    "number",
                    4,
                ),
                Panel(
                    "Alerts",
                    "How many fire now.",
                    "none",
                    (Query('count(ALERTS{alertstate="firing"}) or vector(0)', "firing"),),
                    "number",
                    4,
                ),
                Panel(
                    "First audio",
                    "By percentile; the points are single turns and lead to their traces.",
                    "s",
                    percentiles("firstword_first_audio_seconds", exemplars=True),
                    span=12,
                ),
                Panel(
                    "Where its time goes",
                    "Mean of each part, as they follow each other. The first byte "
                    "is that of every segment, the rest is of first ones.",
                    "s",
                    tuple(Query(f"firstword:{part}_seconds:mean_5m", part) for part in PARTS),
                    "stacked",
                    12,
                ),
                Panel(
                    "Allowance",
                    "How fast the allowance is used up: 1 is as fast as it may be. 14.4 over an "
                    "hour pages, 6 over six hours too.",
                    "none",
                    tuple(
                        Query(f"firstword:first_audio_slow:ratio_rate{window} / 0.05", window)
                        for window in ("1h", "6h", "3d")
                    ),
                    span=12,
                ),
            ),
        ),
        stage(
            "Agent",
            Query(per_second("firstword_agent_turns_total", "outcome"), "{{outcome}}"),
            Query(per_second("firstword_agent_refused_requests_total", "code"), "{{code}}"),
            (Query(quantile(0.95, "firstword_client_first_audio_seconds", "mode"), "{{mode}}"),),
        ),
        stage(
            "Segmenter",
            Query("sum(rate(firstword_segmentation_seconds_count[$__rate_interval]))", "turns"),
            Query(per_second("firstword_skipped_messages_total", "reason"), "{{reason}}"),
            percentiles("firstword_segmentation_seconds"),
        ),
        stage(
            "Gateway",
            Query(per_second("firstword_segments_total", "outcome"), "{{outcome}}"),
            Query(per_second("firstword_errors_total", "code"), "{{code}}"),
            percentiles("firstword_upstream_first_byte_seconds"),
        ),
        stage(
            "Inference",
            Query("sum(rate(firstword_synthesis_seconds_count[$__rate_interval]))", "requests"),
            Query(per_second("firstword_synthesis_errors_total", "code"), "{{code}}"),
            percentiles("firstword_synthesis_seconds"),
        ),
        Row(
            "Processes",
            (
                Panel(
                    "Down",
                    "Processes that do not answer.",
                    "none",
                    (Query('count(up{job="firstword"} == 0) or vector(0)', "down"),),
                ),
                Panel(
                    "Not ready",
                    "Checks that are red, by process.",
                    "none",
                    (
                        Query(
                            "max by (service, instance, check) (firstword_not_ready)",
                            "{{service}} {{instance}} {{check}}",
                        ),
                    ),
                ),
                Panel(
                    "Timers late",
                    "How late the event loop is, 99 of 100.",
                    "s",
                    (
                        Query(
                            quantile(0.99, "firstword_loop_late_seconds", "service"), "{{service}}"
                        ),
                    ),
                ),
            ),
        ),
    ),
)
