"""What each image installs, with the sha256 of every file: `python -m tools.image_requirements`.

Makes deploy/docker/requirements/*.txt anew from pyproject.toml and constraints.txt. Needs `uv`. A
test holds that the files agree with constraints.txt.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "docker" / "requirements"
CONSTRAINTS = ROOT / "constraints.txt"
PYTHON = "3.12"


@dataclass(frozen=True, slots=True)
class Image:
    """Extras of pyproject.toml, what is taken besides, and what is left out though it is needed."""

    extras: tuple[str, ...]
    besides: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


# Only num2words' command uses docopt, which has no wheel.
_VOICE = ("docopt",)

IMAGES = {
    "segmenter": Image(("segmenter", "tracing")),
    "tts_gateway": Image(("gateway", "tracing")),
    "agent": Image(("agent", "bedrock", "strands", "tracing")),
    "agentcore": Image(("agentcore", "bedrock", "tracing")),
    "inference-cpu": Image(("inference", "tracing"), without=_VOICE),
    "inference-cuda": Image(
        ("inference", "tracing"),
        besides=("onnxruntime-gpu[cuda,cudnn]",),
        without=(*_VOICE, "onnxruntime"),  # both are the same package to Python
    ),
}


def command(image: Image, target: Path) -> list[str]:
    """What makes the file of an image; requirements besides come on standard input."""
    made = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", PYTHON]
    made += ["--generate-hashes", "--no-annotate", "--no-header"]
    made += ["--no-emit-index-url", "--no-emit-find-links"]
    made += ["--constraint", str(CONSTRAINTS), "--output-file", str(target)]
    made += [f"--extra={extra}" for extra in image.extras]
    made += [f"--no-emit-package={name}" for name in image.without]
    return [*made, "pyproject.toml", *(["-"] if image.besides else [])]


def main() -> None:
    if shutil.which("uv") is None:
        sys.exit("needs `uv`: pip install uv")
    FOLDER.mkdir(exist_ok=True)
    for name, image in IMAGES.items():
        target = FOLDER / f"{name}.txt"
        target.unlink(missing_ok=True)
        wanted = "\n".join(image.besides)
        subprocess.run(command(image, target), cwd=ROOT, input=wanted, text=True, check=True)
        print(f"{target.relative_to(ROOT)}: {target.read_text().count('==')} packages")
    tools = ["uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-annotate", "--no-header"]
    tools += ["--no-emit-index-url", "--constraint", str(CONSTRAINTS), "-", "--output-file"]
    build = FOLDER / "build.txt"
    subprocess.run([*tools, str(build)], cwd=ROOT, input="setuptools", text=True, check=True)


if __name__ == "__main__":
    main()
