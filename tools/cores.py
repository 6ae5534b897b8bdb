"""The modules that only decide: no clock, no sockets, no log. Their coverage must be complete.

`python -m tools.cores` prints them as a list for `coverage report --include`.
The import contracts name the same modules in `.importlinter`; a test holds the two together.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PATTERNS = (
    "firstword/codec.py",
    "firstword/heard.py",
    "firstword/ids.py",
    "firstword/keys.py",
    "firstword/messages.py",
    "firstword/outbox.py",
    "firstword/session_*.py",
    "services/*/core.py",
    "services/segmenter/admission.py",
    "services/segmenter/options.py",
    "services/segmenter/outlet.py",
    "services/segmenter/resend.py",
    "services/segmenter/rules.py",
    "services/segmenter/session.py",
    "services/segmenter/turns.py",
    "services/tts_gateway/actions.py",
    "services/tts_gateway/progress.py",
    "services/tts_gateway/retention.py",
    "services/tts_gateway/said.py",
    "services/tts_gateway/retries.py",
    "services/tts_gateway/work.py",
)


def cores(root: Path = ROOT) -> list[str]:
    """Paths of the cores that exist, relative to `root`."""
    return sorted(
        str(path.relative_to(root)) for pattern in PATTERNS for path in root.glob(pattern)
    )


if __name__ == "__main__":
    print(",".join(cores()))
