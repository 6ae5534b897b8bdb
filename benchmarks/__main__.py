"""`python -m benchmarks [NAME …]`: the benchmarks, one after the other; all without a name."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks import first_audio, inference, ladder, pipeline, segmentation, upstreams

BENCHMARKS: dict[str, tuple[str, Callable[[], None]]] = {
    "pipeline": ("what lies between text and audio: time, CPU, memory; 3 minutes", pipeline.main),
    "segmentation": ("what a token costs, beside other libraries; 1 minute", segmentation.main),
    "ladder": ("first audio under load, our order beside others; simulated, 10 s", ladder.main),
    "first_audio": ("a first sentence cut at a clause or not; 2 minutes", first_audio.main),
    "upstreams": ("first audio over SageMaker's protocol and over WebSocket; 20 s", upstreams.main),
    "inference": ("how fast the real voice is here; 1 minute", inference.main),
}


def main() -> None:
    """Run what is named."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Benchmarks; docs/BENCHMARKS.md says how to read them.\n\n"
        + "\n".join(f"  {name:<14}{what}" for name, (what, _) in BENCHMARKS.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run; all without")
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := sorted(set(names) - BENCHMARKS.keys()):
        parser.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(BENCHMARKS)}")
    for name in names:
        what, run = BENCHMARKS[name]
        print(f"\n# {name}: {what}\n", flush=True)
        run()


if __name__ == "__main__":
    main()
