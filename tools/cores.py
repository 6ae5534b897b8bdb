"""The modules that only decide: no clock, no sockets, no log. Their coverage must be complete.

`python -m tools.cores` prints them as a list for `coverage report --include`.
The import contracts name the same modules in `.importlinter`; a test holds the two together.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PATTERNS = (
    "firstword/audio.py",
    "firstword/bench/figures.py",
    "firstword/bench/passages.py",
    "firstword/bench/results.py",
    "firstword/capacity.py",
    "firstword/codec.py",
    "firstword/codes.py",
    "firstword/comparison.py",
    "firstword/emulator/bridge.py",
    "firstword/emulator/eventstream.py",
    "firstword/emulator/faults.py",
    "firstword/emulator/invocation.py",
    "firstword/emulator/settings.py",
    "firstword/emulator/signatures.py",
    "firstword/heard.py",
    "firstword/ids.py",
    "firstword/keys.py",
    "firstword/messages.py",
    "firstword/outbox.py",
    "firstword/poison.py",
    "firstword/server_check.py",
    "firstword/session_*.py",
    "firstword/sse.py",
    "firstword/variables.py",
    "firstword/voice_languages.py",
    "firstword/waterfall.py",
    "services/*/core.py",
    "services/agent/access.py",
    "services/agent/ingress.py",
    "services/agent/speech_request.py",
    "services/agent/memory.py",
    "services/agent/thoughts.py",
    "services/inference/conjunctions.py",
    "services/inference/pieces.py",
    "services/inference/pace.py",
    "services/inference/scheduler.py",
    "services/inference/g2p/align.py",
    "services/inference/g2p/british.py",
    "services/inference/lexicon.py",
    "services/inference/normalise/*.py",
    "services/segmenter/admission.py",
    "services/segmenter/buffer.py",
    "services/segmenter/characters.py",
    "services/segmenter/cuts.py",
    "services/segmenter/events.py",
    "services/segmenter/languages.py",
    "services/segmenter/left.py",
    "services/segmenter/lists.py",
    "services/segmenter/markup.py",
    "services/segmenter/nesting.py",
    "services/segmenter/opening.py",
    "services/segmenter/options.py",
    "services/segmenter/outlet.py",
    "services/segmenter/repair.py",
    "services/segmenter/resend.py",
    "services/segmenter/right.py",
    "services/segmenter/rules.py",
    "services/segmenter/scanner.py",
    "services/segmenter/session.py",
    "services/segmenter/speakable.py",
    "services/segmenter/tables.py",
    "services/segmenter/turns.py",
    "services/segmenter/words.py",
    "services/tts_gateway/actions.py",
    "services/tts_gateway/backlog.py",
    "services/tts_gateway/doctor_audio.py",
    "services/tts_gateway/openai_audio.py",
    "services/tts_gateway/openai_frames.py",
    "services/tts_gateway/pace.py",
    "services/tts_gateway/progress.py",
    "services/tts_gateway/pulse.py",
    "services/tts_gateway/reachability.py",
    "services/tts_gateway/retention.py",
    "services/tts_gateway/retries.py",
    "services/tts_gateway/sagemaker_errors.py",
    "services/tts_gateway/sagemaker_parts.py",
    "services/tts_gateway/sagemaker_target.py",
    "services/tts_gateway/said.py",
    "services/tts_gateway/work.py",
)


def cores(root: Path = ROOT) -> list[str]:
    """Paths of the cores that exist, relative to `root`."""
    return sorted(
        str(path.relative_to(root)) for pattern in PATTERNS for path in root.glob(pattern)
    )


if __name__ == "__main__":
    print(",".join(cores()))
