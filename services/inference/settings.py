"""Settings of the inference service."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.settings import setting


@dataclass(frozen=True, slots=True)
class InferenceSettings:
    """Read from FIRSTWORD_INFERENCE_…; see `firstword.settings`."""

    host: str = setting(
        "127.0.0.1",
        "FIRSTWORD_INFERENCE_HOST",
        "Address to listen on. In a container: 0.0.0.0.",
    )
    port: int = setting(
        8080, "FIRSTWORD_INFERENCE_PORT", "Port; 0 picks a free one.", minimum=0, maximum=65535
    )
    voice: str = setting("af_heart", "FIRSTWORD_INFERENCE_VOICE", "Voice where none is asked for.")
    engine: str = setting(
        "onnx",
        "FIRSTWORD_INFERENCE_ENGINE",
        "What computes: onnx, or torch, which is not installed by default.",
        choices=("onnx", "torch"),
    )
    device: str = setting(
        "auto",
        "FIRSTWORD_INFERENCE_DEVICE",
        "What it computes on; auto is CUDA where the installed engine has it, else the CPU.",
        choices=("auto", "cpu", "cuda"),
    )
    precision: str = setting(
        "full",
        "FIRSTWORD_INFERENCE_PRECISION",
        "Of the torch engine on CUDA: half lets the vocoder compute in float16.",
        choices=("full", "half"),
    )
    batch: str = setting(
        "vocoder",
        "FIRSTWORD_INFERENCE_BATCH",
        "What torch makes for several pieces at once: the vocoder's part, or everything, for GPUs "
        "that are quick with float64 (A100, H100, H200).",
        choices=("vocoder", "everything"),
    )
    threads: int = setting(
        0,
        "FIRSTWORD_INFERENCE_THREADS",
        "Threads inside one synthesis; 0 means the cores divided by the workers.",
        minimum=0,
        maximum=256,
    )
    workers: int = setting(
        1,
        "FIRSTWORD_INFERENCE_WORKERS",
        "Pieces synthesised at the same time. 1 gives the earliest first audio; as many as cores, "
        "with one thread each, the most audio.",
        minimum=1,
        maximum=64,
    )
    max_text_chars: int = setting(
        5000, "FIRSTWORD_INFERENCE_MAX_TEXT_CHARS", "Longest text of one request.", minimum=1
    )
    max_queued: int = setting(
        8,
        "FIRSTWORD_INFERENCE_MAX_QUEUED",
        "Requests a connection may have waiting behind the one that runs; more get `busy`.",
        minimum=0,
    )
    max_waiting: int = setting(
        64,
        "FIRSTWORD_INFERENCE_MAX_WAITING",
        "Requests of all connections in progress or waiting; more get `busy`.",
        minimum=1,
    )
    max_wait_s: float = setting(
        2.0,
        "FIRSTWORD_INFERENCE_MAX_WAIT_S",
        "A request whose listener would be in silence for longer, because of others, gets `busy`.",
        minimum=0,
    )
    max_batch: int = setting(
        8,
        "FIRSTWORD_INFERENCE_MAX_BATCH",
        "Most pieces of several requests in one run, where the engine can do that.",
        minimum=1,
        maximum=64,
    )
    lexicon: str = setting(
        "",
        "FIRSTWORD_INFERENCE_LEXICON",
        "A JSON file of words and how they are said; empty: none.",
    )
    first_chunk_words: int = setting(
        5,
        "FIRSTWORD_INFERENCE_FIRST_CHUNK_WORDS",
        "A turn's first segment is cut at its first clause of so many words, to be heard early; "
        "0 does not cut it.",
        minimum=0,
        maximum=100,
    )
    hang_s: float = setting(
        60.0,
        "FIRSTWORD_INFERENCE_HANG_S",
        "A piece that takes longer counts as hung: error `synthesis_stuck`, `/ping` turns red.",
        minimum=0.01,
    )
    drain_s: float = setting(
        25.0,
        "FIRSTWORD_INFERENCE_DRAIN_S",
        "After SIGTERM, how long syntheses in flight may take before they are stopped.",
        minimum=0,
    )
    send_timeout_s: float = setting(
        20.0,
        "FIRSTWORD_INFERENCE_SEND_TIMEOUT_S",
        "A client that takes no audio for this long is disconnected.",
        minimum=0.01,
    )
