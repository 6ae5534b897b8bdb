"""The plumbing of sessions."""

from __future__ import annotations

from tools.dashboards.parts import Board, Panel, Query, Row, per_second, quantile

SESSIONS = Board(
    "sessions",
    "Firstword: sessions",
    "The plumbing: who owns what, what waits, and what happens to connections.",
    (
        Row(
            "Sessions",
            (
                Panel(
                    "Owned",
                    "Sessions and partitions, by process.",
                    "none",
                    (
                        Query(
                            "sum by (stage, instance) (firstword_owned_units) > 0",
                            "{{stage}} {{instance}}",
                        ),
                    ),
                ),
                Panel(
                    "With something to do",
                    "At the segmenter a turn that is not over, at the gateway what waits.",
                    "none",
                    (Query("sum by (stage) (firstword_open_sessions)", "{{stage}}"),),
                ),
                Panel(
                    "Nobody's, and stuck",
                    "Units with work and without a worker; sessions without a word for 10 s.",
                    "none",
                    (
                        Query("max by (stage) (firstword_unowned_units)", "{{stage}}: nobody's"),
                        Query("sum(firstword_stuck_sessions)", "stuck"),
                    ),
                ),
                Panel(
                    "Lag",
                    "How long the oldest has waited.",
                    "s",
                    (Query("max by (stage) (firstword_lag_seconds)", "{{stage}}"),),
                ),
                Panel(
                    "Taken over, fenced",
                    "Units of dead workers, and commits of workers that had lost theirs, a second.",
                    "reqps",
                    (
                        Query(
                            per_second("firstword_takeovers_total", "stage"), "{{stage}} taken over"
                        ),
                        Query(
                            per_second("firstword_fenced_commits_total", "stage"),
                            "{{stage}} fenced",
                        ),
                    ),
                ),
                Panel(
                    "Turns",
                    "By how they ended, and cancels, a second.",
                    "reqps",
                    (
                        Query(per_second("firstword_turns_total", "outcome"), "{{outcome}}"),
                        Query("sum(rate(firstword_cancels_total[$__rate_interval]))", "cancels"),
                    ),
                ),
                Panel(
                    "Dead letters",
                    "Messages put aside, a second.",
                    "reqps",
                    (Query(per_second("firstword_dead_letters_total", "reason"), "{{reason}}"),),
                ),
                Panel(
                    "Audio ahead",
                    "How far a realtime listener is from running dry when a segment is complete.",
                    "s",
                    (
                        Query(quantile(0.5, "firstword_audio_ahead_seconds"), "half"),
                        Query(quantile(0.05, "firstword_audio_ahead_seconds"), "5 of 100 less"),
                    ),
                ),
                Panel(
                    "Ran dry",
                    "Listeners with nothing to play while a segment was made, a second.",
                    "reqps",
                    (Query("sum(rate(firstword_underruns_total[$__rate_interval]))", "times"),),
                ),
            ),
        ),
        Row(
            "Connections to the backend",
            (
                Panel(
                    "Open",
                    "One for each session that has spoken lately.",
                    "none",
                    (Query("sum(firstword_upstream_connections)", "open"),),
                ),
                Panel(
                    "Opened, lost, replaced",
                    "A second.",
                    "reqps",
                    (
                        Query(
                            "sum(rate(firstword_upstream_opened_total[$__rate_interval]))", "opened"
                        ),
                        Query(
                            "sum(rate(firstword_upstream_reconnects_total[$__rate_interval]))",
                            "lost",
                        ),
                        Query(
                            "sum(rate(firstword_upstream_rotations_total[$__rate_interval]))",
                            "replaced by a younger one",
                        ),
                    ),
                ),
                Panel(
                    "Failures",
                    "Connections that could not be had or broke, a second.",
                    "reqps",
                    (Query(per_second("firstword_upstream_failures_total", "code"), "{{code}}"),),
                ),
                Panel(
                    "Segments on one connection",
                    "How often a connection is used again, over an hour.",
                    "none",
                    (Query("firstword:segments_per_connection:ratio_rate1h", "segments"),),
                ),
            ),
        ),
    ),
)
