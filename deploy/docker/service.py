"""In the images: `service` runs the one that the image is for, `service healthy` asks it how it is.

Which one that is, FIRSTWORD_SERVICE says, which the Dockerfile sets. Any other argument goes on to
the service: SageMaker starts its containers with the word `serve`.
"""

from __future__ import annotations

import os
import runpy
import sys
import urllib.error
import urllib.request

SERVICES = {
    "segmenter": ("services.segmenter", "FIRSTWORD_SEGMENTER_PORT", 9101, "/readyz"),
    "tts_gateway": ("services.tts_gateway", "FIRSTWORD_GATEWAY_PORT", 9102, "/readyz"),
    "inference": ("services.inference", "FIRSTWORD_INFERENCE_PORT", 8080, "/ping"),
    "agent": ("services.agent", "FIRSTWORD_AGENT_PORT", 8000, "/readyz"),
    "agentcore": ("services.agent.agentcore", "FIRSTWORD_AGENT_AGENTCORE_PORT", 8080, "/ping"),
}
"""Name -> its module, the variable and default of its port, and what says whether it is ready."""

TIMEOUT_S = 4


def main() -> None:
    """Run the service in this process, which keeps its signals; or ask and exit with 0 or 1."""
    module, variable, default, path = SERVICES[os.environ["FIRSTWORD_SERVICE"]]
    if sys.argv[1:] == ["healthy"]:
        sys.exit(problem(f"http://127.0.0.1:{os.environ.get(variable, default)}{path}"))
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def problem(url: str) -> str | None:
    """Why what is asked there is not ready, in its own words; None when it is."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S):  # noqa: S310 - always http
            return None
    except urllib.error.HTTPError as error:
        return f"{error.code}: {error.read(2000).decode(errors='replace')}"
    except OSError as error:
        return str(error)


if __name__ == "__main__":
    main()
