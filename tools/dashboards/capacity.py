"""How much more there is room for."""

from __future__ import annotations

from tools.dashboards.parts import Board, Panel, Query, Row, percentiles

CAPACITY = Board(
    "capacity",
    "Firstword: capacity",
    "How much more there is room for, and what fills up first.",
    (
        Row(
            "Speech",
            (
                Panel(
                    "Waits, and is made",
                    "Seconds of speech that wait; seconds made in a second.",
                    "none",
                    (
                        Query("firstword:unspoken_seconds:sum", "waits, s"),
                        Query("firstword:speech_made:rate1m", "made, s/s"),
                    ),
                ),
                Panel(
                    "RTF",
                    "Synthesis time by audio time; below 1 is faster than it is played.",
                    "none",
                    percentiles("firstword_rtf"),
                ),
                Panel(
                    "Queue of the engine",
                    "How long a request waits for its start.",
                    "s",
                    percentiles("firstword_synthesis_queue_seconds"),
                ),
                Panel(
                    "Refused as too many",
                    "Requests that inference refuses, a second.",
                    "reqps",
                    (
                        Query(
                            'sum(rate(firstword_synthesis_errors_total{code="busy"}[$__rate_interval]))',
                            "busy",
                        ),
                    ),
                ),
                Panel(
                    "Callers",
                    "On the line at the agents.",
                    "none",
                    (Query("sum by (door) (firstword_agent_callers)", "{{door}}"),),
                ),
                Panel(
                    "Sessions of a gateway",
                    "By process; each takes FIRSTWORD_GATEWAY_MAX_SESSIONS.",
                    "none",
                    (
                        Query(
                            'max by (instance) (firstword_owned_units{stage="gateway"})',
                            "{{instance}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Redis and processes",
            (
                Panel(
                    "Memory of the Redis server",
                    "Of what it may use; new sessions are refused from 80 % on.",
                    "percentunit",
                    (Query("max(firstword_server_memory_share)", "used"),),
                ),
                Panel(
                    "Deleted to make room",
                    "Keys the server has evicted since it started, and whether it may.",
                    "none",
                    (
                        Query("max(firstword_server_evicted_keys)", "evicted"),
                        Query("max(firstword_server_evicts)", "may evict"),
                    ),
                ),
                Panel(
                    "CPU",
                    "By process; one is full at 1.",
                    "none",
                    (
                        Query(
                            'rate(process_cpu_seconds_total{job="firstword"}[$__rate_interval])',
                            "{{service}} {{instance}}",
                        ),
                    ),
                ),
                Panel(
                    "Memory",
                    "By process.",
                    "bytes",
                    (
                        Query(
                            'process_resident_memory_bytes{job="firstword"}',
                            "{{service}} {{instance}}",
                        ),
                    ),
                ),
                Panel(
                    "Versions",
                    "How many processes run which.",
                    "none",
                    (
                        Query(
                            "count by (service, version) (firstword_build_info)",
                            "{{service}} {{version}}",
                        ),
                    ),
                ),
            ),
        ),
    ),
)
