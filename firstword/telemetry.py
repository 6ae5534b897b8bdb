"""Every metric with its help and its buckets, and the set-up of the JSON logs.

Labels never carry a session, a turn or text; log lines carry ids where they help, never text.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from prometheus_client import REGISTRY, Counter, Gauge, Histogram, generate_latest

LATENCY = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
    *(0.75, 1, 1.5, 2.5, 5, 10, 20),
)
FIRST_AUDIO = (
    *(0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1, 1.5, 2.5, 5, 10),
)

# -- the number this product exists for, and its parts ------------------------------------------

first_audio = Histogram(
    "firstword_first_audio_seconds",
    "Turn's first text accepted to its first audio published (TTFA).",
    buckets=FIRST_AUDIO,
)
segmentation = Histogram(
    "firstword_segmentation_seconds",
    "Turn's first text accepted to its first segment committed.",
    buckets=LATENCY,
)
wait = Histogram(
    "firstword_wait_seconds",
    "Segment committed to its synthesis request sent, first segments of a turn only.",
    buckets=LATENCY,
)
upstream_first_byte = Histogram(
    "firstword_upstream_first_byte_seconds",
    "Synthesis request sent to first audio byte (TTFB), every segment.",
    buckets=LATENCY,
)
publish = Histogram(
    "firstword_publish_seconds",
    "First audio byte of a turn received to first audio published.",
    buckets=LATENCY,
)
underruns = Counter(
    "firstword_underruns_total",
    "Times that a listener who plays as it comes ran dry while a segment was being synthesised, by "
    "the gateway's clock; realtime sessions only.",
)
underrun_seconds = Counter(
    "firstword_underrun_seconds_total", "Seconds that these listeners had nothing to play."
)
client_first_audio = Histogram(
    "firstword_client_first_audio_seconds",
    "Request of a caller accepted to the first audio handed to it, at the agent.",
    ["mode"],
    buckets=FIRST_AUDIO,
)

# -- counts ---------------------------------------------------------------------------------------

segments = Counter("firstword_segments_total", "Segments by how they ended.", ["outcome"])
turns = Counter("firstword_turns_total", "Turns by how they ended.", ["outcome"])
errors = Counter(
    "firstword_errors_total",
    "Error events published, by code; `other` is a synthesis backend's own.",
    ["code"],
)
skipped = Counter(
    "firstword_skipped_messages_total",
    "Ingress messages that were not spoken, by reason (late, repeat, nothing_open, …).",
    ["reason"],
)
cancels = Counter("firstword_cancels_total", "Cancels answered.")
dead_letters = Counter("firstword_dead_letters_total", "Entries moved to fw:dead.", ["reason"])

# -- ownership and connections --------------------------------------------------------------------

owned_units = Gauge("firstword_owned_units", "Partitions or sessions owned now.", ["stage"])
unowned_units = Gauge(
    "firstword_unowned_units",
    "Partitions or sessions with work that no worker owns now; sessions that stay here are more "
    "than all gateways may take (FIRSTWORD_GATEWAY_MAX_SESSIONS).",
    ["stage"],
)
acquisitions = Counter("firstword_acquisitions_total", "Units taken over or begun.", ["stage"])
server_memory = Gauge(
    "firstword_server_memory_share",
    "Memory the Redis server uses, of what it may use; of a cluster, its fullest node's.",
)
server_evicts = Gauge(
    "firstword_server_evicts",
    "1 if the Redis server may delete live sessions or their state when it is full: its eviction "
    "policy is not noeviction.",
)
fenced_commits = Counter(
    "firstword_fenced_commits_total",
    "Commits refused because another worker owns the unit now; nothing was written.",
    ["stage"],
)
upstream_connections = Gauge("firstword_upstream_connections", "Upstream connections open now.")
upstream_reconnects = Counter(
    "firstword_upstream_reconnects_total",
    "Upstream connections lost or given up and opened again.",
)
upstream_rotations = Counter(
    "firstword_upstream_rotations_total",
    "Upstream connections replaced by a younger one before their time was up.",
)

# -- inference ------------------------------------------------------------------------------------

synthesis_queue = Histogram(
    "firstword_synthesis_queue_seconds",
    "Synthesis request accepted by the container to its start.",
    buckets=LATENCY,
)
synthesis = Histogram(
    "firstword_synthesis_seconds",
    "Time the engine worked on one request.",
    buckets=LATENCY,
)
synthesis_audio = Counter("firstword_synthesis_audio_seconds_total", "Seconds of audio made.")
synthesis_errors = Counter(
    "firstword_synthesis_errors_total", "Requests refused or failed, by code.", ["code"]
)

# -- agent ----------------------------------------------------------------------------------------

callers = Gauge("firstword_agent_callers", "Callers connected now, by door (sse, ws).", ["door"])
caller_turns = Counter(
    "firstword_agent_turns_total",
    "Turns that callers asked for, by how they ended (complete, cancelled, gone, lost, failed).",
    ["outcome"],
)
refused_requests = Counter(
    "firstword_agent_refused_requests_total",
    "Requests and frames of callers that were refused, by code.",
    ["code"],
)

ERROR_CODES = frozenset(
    (
        # of what was published
        *("ambiguous_seq", "bad_field", "bad_msgpack", "bad_name", "missing_field", "no_session"),
        *("nothing_to_do", "too_large", "bad_setting", "not_opened", "gap", "gap_skipped"),
        # of the services
        *("failed", "no_capacity", "overloaded", "server_full", "state_lost"),
        # of the way to the backend
        *("audio_torn", "audio_unannounced", "bad_json", "bad_message", "complete_unexpected"),
        *("frame_too_large", "no_audio", "sample_rate_differs", "start_unexpected", "stopped"),
        *("unknown_type", "upstream_forbidden", "upstream_lost", "upstream_no_credentials"),
        *("upstream_no_region", "upstream_refused", "upstream_rejected", "upstream_throttled"),
        *("upstream_timeout", "upstream_unavailable", "upstream_unreachable"),
        # of our inference container
        *("bad_voice", "busy", "draining", "engine_failed", "lang_mismatch", "loading"),
        *("pronunciation_failed", "synthesis_stuck", "unknown_voice", "unsupported_lang"),
        *("voice_damaged", "voices_mismatch"),
    )
)
"""What error events say; a backend may say anything, and a label must not."""


def count_error(code: str) -> None:
    """An error event is published."""
    errors.labels(code if code in ERROR_CODES else "other").inc()


# Outcomes that dashboards divide by exist from the start, as zeros.
for _outcome in ("done", "error", "cancelled"):
    segments.labels(_outcome)
for _outcome in ("complete", "abandoned", "cancelled"):
    turns.labels(_outcome)
for _outcome in ("complete", "cancelled", "gone", "lost", "failed"):
    caller_turns.labels(_outcome)
for _mode in ("stream", "batch"):
    client_first_audio.labels(_mode)


def render() -> bytes:
    """The exposition text of every metric of this process."""
    return generate_latest(REGISTRY)


def configure_logging(service: str, level: str = "INFO") -> None:
    """One JSON object a line on standard output: time, level, event, service and its fields."""
    logging.basicConfig(stream=sys.stdout, level=level, format="%(message)s", force=True)
    for noisy in ("aiohttp.access", "phonemizer", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)


def logger() -> Any:
    """The process's structured logger."""
    return structlog.get_logger()
