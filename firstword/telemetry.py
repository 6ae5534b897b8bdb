"""Every metric with its help and its buckets.

Labels never carry a session, a turn or text; log lines carry ids where they help, never text.
"""

from __future__ import annotations

import platform
from importlib import metadata

from prometheus_client import (
    REGISTRY,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase

from firstword.codes import ERROR_CODES as ERROR_CODES
from firstword.codes import REFUSAL_CODES, SYNTHESIS_CODES
from firstword.logs import logger as logger

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each count

SLO_FIRST_AUDIO_S = 0.5
"""So soon the first audio of 95 of 100 turns is to be there: a boundary of FIRST_AUDIO, because
what lies between two cannot be told. The rules in deploy/observability go by it."""
LATENCY = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
    *(0.75, 1, 1.5, 2.5, 5, 10, 20),
)
FIRST_AUDIO = (
    *(0.02, 0.0225, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.07, 0.075, 0.085, 0.1),
    *(0.11, 0.125, 0.14, 0.15, 0.175, 0.2, 0.225, 0.25, 0.275, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.6, 0.675, 0.75, 0.875, 1, 1.25, 1.5, 2, 2.5, 5, 10),
)
"""Close enough that a median from 20 ms to 1 s is right to 10 %."""

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
audio_ahead = Histogram(
    "firstword_audio_ahead_seconds",
    "Audio out and not played yet when a segment is complete, by the gateway's clock; realtime "
    "sessions only.",
    buckets=(0, 0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20),
)

# -- what waits -----------------------------------------------------------------------------------

unspoken = Gauge(
    "firstword_unspoken_seconds",
    "Speech that the text of this gateway's sessions will make and that is not made yet, at a "
    "usual pace. The scaling signal.",
)
open_sessions = Gauge(
    "firstword_open_sessions",
    "Sessions with something to do: at the segmenter a turn that is not over, at the gateway a "
    "segment or a turn's end that waits or is in hand.",
    ["stage"],
)
lag = Gauge(
    "firstword_lag_seconds",
    "How long what a stage should be working on has waited. Segmenter: age of the oldest entry "
    "that its partitions have not read. Gateway: the longest that a session has had a segment in "
    "hand without a word of it coming out.",
    ["stage"],
)
stuck_sessions = Gauge(
    "firstword_stuck_sessions",
    "Sessions of this gateway that have had a segment in hand for more than 10 s without a word of "
    "it coming out.",
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
speech = Counter("firstword_speech_seconds_total", "Seconds of speech published, of any backend.")
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
takeovers = Counter(
    "firstword_takeovers_total",
    "Sessions and partitions taken from a worker that had not let them go: it died, or was away "
    "for too long. Counted by the worker that saw it.",
    ["stage"],
)
server_memory = Gauge(
    "firstword_server_memory_share",
    "Memory the Redis server uses, of what it may use; of a cluster, its fullest node's.",
)
server_evicts = Gauge(
    "firstword_server_evicts",
    "1 if the Redis server may delete live sessions or their state when it is full: its eviction "
    "policy is not noeviction.",
)
server_evicted = Gauge(
    "firstword_server_evicted_keys",
    "Keys the Redis server has deleted to make room, by its own count since it started.",
)
fenced_commits = Counter(
    "firstword_fenced_commits_total",
    "Commits refused because another worker owns the unit now; nothing was written.",
    ["stage"],
)
upstream_connections = Gauge("firstword_upstream_connections", "Upstream connections open now.")
upstream_opened = Counter(
    "firstword_upstream_opened_total",
    "Upstream connections opened. Segments by these: how often one connection is used again.",
)
upstream_failures = Counter(
    "firstword_upstream_failures_total",
    "Upstream connections that could not be had or broke, by code.",
    ["code"],
)
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
rtf = Histogram(
    "firstword_rtf",
    "Synthesis time by audio time (RTF) of one request; below 1 is faster than it is played.",
    buckets=(0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 2, 5),
)
synthesis_audio = Counter("firstword_synthesis_audio_seconds_total", "Seconds of audio made.")
synthesis_errors = Counter(
    "firstword_synthesis_errors_total", "Requests refused or failed, by code.", ["code"]
)

# -- agent ----------------------------------------------------------------------------------------

callers = Gauge(
    "firstword_agent_callers",
    "Callers connected now, by door (sse: one turn, ws, events: listeners, speech: files).",
    ["door"],
)
cut_listeners = Counter(
    "firstword_agent_cut_listeners_total",
    "Listeners cut off because they took nothing for too long, by door.",
    ["door"],
)
caller_turns = Counter(
    "firstword_agent_turns_total",
    "Turns that callers asked for, by how they ended (complete, cancelled, gone, lost, failed).",
    ["outcome"],
)
refused_requests = Counter(
    "firstword_agent_refused_requests_total",
    "Requests and frames of callers that were refused, by code; `other` is a synthesis backend's "
    "own.",
    ["code"],
)
model_first_text = Histogram(
    "firstword_model_first_text_seconds",
    "Prompt handed to the agent's model to the first text of its answer.",
    buckets=LATENCY,
)
model_failures = Counter(
    "firstword_model_failures_total", "Answers of the model that broke off, by code.", ["code"]
)

# -- every process --------------------------------------------------------------------------------

not_ready = Gauge(
    "firstword_not_ready",
    "1 while a check of /readyz is red: redis (nothing reaches the server), upstream (the "
    "synthesis backend is away or does not speak), engine (it loads, hangs or drains), memory "
    "(the server has none left for another session; agent: for text), partitions (the deployment "
    "is recorded with another number), poison (entries that cannot be used come in a flood). "
    "Looked at with each scrape.",
    ["check"],
)
loop_late = Histogram(
    "firstword_loop_late_seconds",
    "How much later than asked the event loop woke a timer, ten times a second: what blocks it "
    "delays every session.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
build = Gauge(
    "firstword_build_info",
    "Always 1; its labels say what runs.",
    ["service", "version", "python"],
)


def known_code(code: str) -> str:
    """The code as a label: `other` if it is not one of ours."""
    return code if code in ERROR_CODES else "other"


def count_error(code: str) -> None:
    """An error event is published."""
    errors.labels(known_code(code)).inc()


def count_refusal(code: str) -> None:
    """A caller of the agent was refused."""
    refused_requests.labels(code if code in REFUSAL_CODES else "other").inc()


def count_synthesis_error(code: str) -> None:
    """The inference service answered with an error."""
    synthesis_errors.labels(code if code in SYNTHESIS_CODES else "other").inc()


_CODES = (*sorted(ERROR_CODES), "other")
_STAGES = ("segmenter", "gateway")
LABELS: dict[MetricWrapperBase, tuple[str, ...]] = {
    segments: ("done", "error", "cancelled"),
    turns: ("complete", "abandoned", "cancelled", "failed"),
    errors: _CODES,
    upstream_failures: _CODES,
    skipped: (
        *("gap_full", "heard", "late", "not_opened", "nothing_open", "overloaded", "repeat"),
        *("server_full", "unknown_type"),
    ),
    dead_letters: (
        *("ambiguous_seq", "bad_field", "bad_msgpack", "bad_name", "broken_state", "failed"),
        *("missing_field", "no_session", "nothing_to_do", "too_large"),
    ),
    caller_turns: ("complete", "cancelled", "gone", "lost", "failed"),
    client_first_audio: ("stream", "batch"),
    callers: ("sse", "ws", "events", "speech"),
    cut_listeners: ("sse", "ws", "events", "speech"),
    refused_requests: (*sorted(REFUSAL_CODES), "other"),
    model_failures: (
        *("other", "source_broke", "source_cut", "source_garbled", "source_refused"),
        *("source_silent", "source_unreachable"),
    ),
    synthesis_errors: (*sorted(SYNTHESIS_CODES), "other"),
    owned_units: _STAGES,
    unowned_units: _STAGES,
    acquisitions: _STAGES,
    takeovers: _STAGES,
    fenced_commits: _STAGES,
    open_sessions: _STAGES,
    lag: _STAGES,
    not_ready: ("redis", "upstream", "engine", "memory", "partitions", "poison"),
}
"""What the one label of a metric may say, as far as it is known before. All of it exists from the
start, as zeros: what appears with its first event has no rate of it, and no rule sees it."""

for _metric, _values in LABELS.items():
    for _value in _values:
        _metric.labels(_value)

SECTIONS: dict[str, tuple[MetricWrapperBase, ...]] = {
    "First audio and its parts": (
        *(first_audio, segmentation, wait, upstream_first_byte, publish, client_first_audio),
        *(underruns, underrun_seconds, audio_ahead),
    ),
    "What was done": (segments, turns, speech, errors, cancels, skipped, dead_letters),
    "What waits": (unspoken, open_sessions, lag, stuck_sessions),
    "Who works on what": (owned_units, unowned_units, acquisitions, takeovers, fenced_commits),
    "The Redis server": (server_memory, server_evicts, server_evicted),
    "The way to the synthesis backend": (
        *(upstream_connections, upstream_opened, upstream_failures, upstream_reconnects),
        upstream_rotations,
    ),
    "The inference service": (synthesis_queue, synthesis, rtf, synthesis_audio, synthesis_errors),
    "The agent": (
        *(callers, caller_turns, refused_requests, cut_listeners, model_first_text, model_failures),
    ),
    "Every process": (not_ready, loop_late, build),
}
"""Every metric, for docs/METRICS.md (`python -m tools.metrics`)."""


def trace_of(traceparent: str | None) -> dict[str, str] | None:
    """The exemplar that leads from a measurement to its trace; None without a W3C traceparent."""
    parts = (traceparent or "").split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or not set(parts[1]) <= set("0123456789abcdef"):
        return None
    return {"trace_id": parts[1]}


def exposition(accept: str) -> tuple[bytes, str]:
    """Every metric of this process and the content type, as an Accept header asks: OpenMetrics,
    which has exemplars, or the older text."""
    encode, content_type = choose_encoder(accept)
    return encode(REGISTRY), content_type


def tell_build(service: str) -> None:
    """Say in `firstword_build_info` what runs here."""
    build.labels(service, metadata.version("firstword"), platform.python_version()).set(1)
