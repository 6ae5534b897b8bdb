"""`python -m tests.fuzz`: a hundred thousand malformed requests and frames, for `make soak`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from firstword.embedded import EmbeddedServer
from tests.fuzz.doors import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with EmbeddedServer() as server:
        began = time.monotonic()
        outcome = asyncio.run(fuzz(server.url, options.requests, options.seed))
    took = time.monotonic() - began
    sys.stdout.write(
        f"{outcome.sent} malformed requests and frames in {took:.0f} s, seed {options.seed}\n"
        f"answers by status (0: none): {dict(sorted(outcome.statuses.items()))}\n"
    )
    for failure in outcome.failures:
        sys.stdout.write(f"FAILED: {failure}\n")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
