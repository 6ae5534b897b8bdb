"""The plumbing of sessions."""

from __future__ import annotations

from tools.dashboards.parts import (
    PER_SECOND,
    Board,
    Panel,
    Query,
    Row,
    per_second,
    quantile,
    rare,
)

WAITS = Row(
    "What waits, and what nobody works on",
    (
        Panel(
            "Lag",
            "Segmenter: age of the oldest text that is not read. Gateway: longest that a session "
            "has had a sentence in hand without a word of it. Over 5 s pages.",
            "s",
            (Query("max by (stage) (firstword_lag_seconds)", "{{stage}}"),),
            limits=((5, "red"),),
        ),
        Panel(
            "Nobody's, and stuck",
            "For four scrapes: sessions without a gateway (all are full), partitions without a "
            "segmenter; and sessions without a word for 10 s. Each pages after 15 s.",
            "short",
            (
                Query(
                    'max(min_over_time(firstword_unowned_units{stage="gateway"}[$__rate_interval]))',
                    "sessions without a gateway",
                ),
                Query(
                    'max(min_over_time(firstword_unowned_units{stage="segmenter"}[$__rate_interval]))',
                    "partitions without a segmenter",
                ),
                Query("sum(firstword_stuck_sessions)", "stuck sessions"),
            ),
            limits=((1, "red"),),
        ),
        Panel(
            "Sessions with something to do",
            "At the segmenter a turn that is not over, at the gateway what waits or is in hand.",
            "short",
            (Query("sum by (stage) (firstword_open_sessions)", "{{stage}}"),),
        ),
    ),
)
HEARD = Row(
    "What listeners hear",
    (
        Panel(
            "Turns",
            "By how they ended, and cancels answered.",
            PER_SECOND,
            (
                Query(per_second("firstword_turns_total", "outcome"), "{{outcome}}"),
                Query("sum(rate(firstword_cancels_total[$__rate_interval]))", "cancels"),
            ),
        ),
        Panel(
            "Audio ahead",
            "How far a realtime listener is from running dry when a segment is complete: the "
            "median, and what 5 of 100 have less than.",
            "s",
            (
                Query(quantile(0.5, "firstword_audio_ahead_seconds"), "p50"),
                Query(quantile(0.05, "firstword_audio_ahead_seconds"), "p5"),
            ),
        ),
        Panel(
            "Listeners that ran dry",
            "Sentences in which one had nothing to play, of all; over 2 % is a ticket.",
            "percentunit",
            (Query("firstword:underruns:ratio_rate5m", "ran dry"),),
            limits=((0.02, "orange"),),
        ),
    ),
)
OWNERS = Row(
    "Who works on what",
    (
        Panel(
            "Sessions by gateway",
            "Owned now. One that has none beside full ones takes no part.",
            "short",
            (
                Query(
                    'sum by (instance) (firstword_owned_units{stage="gateway", service="gateway"})',
                    "{{instance}}",
                ),
            ),
            "stacked",
            6,
        ),
        Panel(
            "Partitions by segmenter",
            "The sum is their number and one, the door fw:text; less for longer than a moment, and "
            "text is not read.",
            "short",
            (
                Query(
                    "sum by (instance) "
                    '(firstword_owned_units{stage="segmenter", service="segmenter"})',
                    "{{instance}}",
                ),
            ),
            "stacked",
            6,
        ),
        Panel(
            "Taken over, fenced",
            "What workers that died owned; commits of workers that had lost what they owned.",
            PER_SECOND,
            (
                Query(per_second("firstword_takeovers_total", "stage"), "{{stage}}: taken over"),
                Query(per_second("firstword_fenced_commits_total", "stage"), "{{stage}}: fenced"),
            ),
            "events",
            6,
        ),
        Panel(
            "Dead letters",
            "Messages that could not be used, by reason: `firstword dead`. More than one a second "
            "pages.",
            PER_SECOND,
            (Query(rare("firstword_dead_letters_total", "reason"), "{{reason}}"),),
            "events",
            6,
            limits=((1, "red"),),
        ),
    ),
)
CONNECTIONS = Row(
    "Connections to the synthesis backend",
    (
        Panel(
            "Open",
            "One for each session that has spoken lately.",
            "short",
            (Query("sum(firstword_upstream_connections)", "open"),),
            span=6,
        ),
        Panel(
            "Opened, lost, replaced",
            "Replaced: by a younger one, before their time is up.",
            PER_SECOND,
            (
                Query("sum(rate(firstword_upstream_opened_total[$__rate_interval]))", "opened"),
                Query("sum(rate(firstword_upstream_reconnects_total[$__rate_interval]))", "lost"),
                Query(
                    "sum(rate(firstword_upstream_rotations_total[$__rate_interval]))", "replaced"
                ),
            ),
            span=6,
        ),
        Panel(
            "Failures",
            "Connections that could not be had or broke, by code; over 0.2 /s is a ticket.",
            PER_SECOND,
            (Query(rare("firstword_upstream_failures_total", "code"), "{{code}}"),),
            "events",
            6,
            limits=((0.2, "orange"),),
        ),
        Panel(
            "Sentences on one connection",
            "How often a connection is used again, over an hour.",
            "short",
            (Query("firstword:segments_per_connection:ratio_rate1h", "sentences"),),
            span=6,
        ),
    ),
)
SESSIONS = Board(
    "sessions",
    "Firstword: sessions",
    "The plumbing: what waits, who owns what, and what happens to connections.",
    (WAITS, HEARD, OWNERS, CONNECTIONS),
)
