"""How much more there is room for."""

from __future__ import annotations

from tools.dashboards.parts import PER_SECOND, Board, Panel, Query, Row, percentiles

SPEECH = Row(
    "Speech: does inference keep up",
    (
        Panel(
            "Speech that waits",
            "Seconds of speech that the text in hand will make. Some always waits while replies "
            "are long; what counts is growth: add inference.",
            "suffix:s",
            (Query("firstword:unspoken_seconds:sum", "waits"),),
        ),
        Panel(
            "Speech made",
            "Seconds of speech that the gateways publish in a second, whatever makes it.",
            "suffix:s/s",
            (Query("firstword:speech_made:rate1m", "made"),),
        ),
        Panel(
            "RTF",
            "Synthesis time by audio time; from 1 on it is slower than it is played. p95 over 0.8 "
            "is a ticket.",
            "none",
            percentiles("firstword_rtf"),
            "decades",
            limits=((0.8, "orange"), (1, "red")),
        ),
        Panel(
            "Queue of the engine",
            "How long a request waits for its start.",
            "s",
            percentiles("firstword_synthesis_queue_seconds"),
            "decades",
        ),
        Panel(
            "Refused as too many",
            "Requests that inference refuses, and sentences that fail by it, in one second; over "
            "0.2 together is a ticket.",
            PER_SECOND,
            (
                Query(
                    'sum(rate(firstword_synthesis_errors_total{code="busy"}[$__rate_interval]))',
                    "refused requests",
                ),
                Query(
                    'sum(rate(firstword_errors_total{code="busy"}[$__rate_interval]))',
                    "failed sentences",
                ),
            ),
            "events",
            limits=((0.2, "orange"),),
        ),
        Panel(
            "Callers",
            "On the line at the agents, by door.",
            "short",
            (Query("sum by (door) (firstword_agent_callers)", "{{door}}"),),
        ),
    ),
)
REDIS = Row(
    "Redis: is there room",
    (
        Panel(
            "Memory of the server",
            "Of what it may use. Over 70 % is a ticket; from 80 % on new sessions are refused.",
            "percentunit",
            (Query("max(firstword_server_memory_share)", "used"),),
            span=10,
            limits=((0.7, "orange"), (0.8, "red")),
        ),
        Panel(
            "Keys deleted to make room",
            "Since the server started: each was somebody's session. It must not rise.",
            "short",
            (Query("max(firstword_server_evicted_keys)", "evicted"),),
            span=10,
        ),
        Panel(
            "May it delete keys?",
            "1: its maxmemory-policy is not noeviction, it may delete live sessions when it is "
            "full. 0 is right.",
            "short",
            (Query("max(firstword_server_evicts) or vector(NaN)", "may evict"),),
            "number",
            4,
            limits=((1, "orange"),),
        ),
    ),
)
PROCESSES = Row(
    "Processes",
    (
        Panel(
            "CPU",
            "Of one core, by process; segmenter, gateway and agent use no more than one.",
            "percentunit",
            (
                Query(
                    'rate(process_cpu_seconds_total{job="firstword"}[$__rate_interval])',
                    "{{service}} {{instance}}",
                ),
            ),
            span=12,
        ),
        Panel(
            "Memory",
            "By process.",
            "bytes",
            (Query('process_resident_memory_bytes{job="firstword"}', "{{service}} {{instance}}"),),
            span=12,
        ),
        Panel(
            "Sessions of a gateway",
            "By process; each takes FIRSTWORD_GATEWAY_MAX_SESSIONS.",
            "short",
            (
                Query(
                    'max by (instance) (firstword_owned_units{stage="gateway", service="gateway"})',
                    "{{instance}}",
                ),
            ),
            span=12,
        ),
        Panel(
            "Versions",
            "How many processes run which.",
            "short",
            (
                Query(
                    "count by (service, version) (firstword_build_info)", "{{service}} {{version}}"
                ),
            ),
            "bars",
            12,
        ),
    ),
)
CAPACITY = Board(
    "capacity",
    "Firstword: capacity",
    "How much more there is room for, and what fills up first.",
    (SPEECH, REDIS, PROCESSES),
)
