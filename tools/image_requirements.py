"""What each image installs, with the sha256 of every file: `python -m tools.image_requirements`.

Makes deploy/docker/requirements/*.txt anew from pyproject.toml and constraints.txt. Needs `uv`. A
test holds that the files agree with constraints.txt.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "docker" / "requirements"
CONSTRAINTS = ROOT / "constraints.txt"
TORCH = ROOT / "constraints-torch.txt"
PYTHON = "3.12"
FREE = "-gpl-free"
"""What ends the name of an image that holds nothing under the GPL."""


@dataclass(frozen=True, slots=True)
class Image:
    """Extras of pyproject.toml, what is taken besides, and what is left out though it is needed."""

    extras: tuple[str, ...]
    besides: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def torch_pin() -> str:
    """The version of torch that the engine's tests run with."""
    (pin,) = re.findall(r"^torch==\S+", TORCH.read_text("utf-8"), re.MULTILINE)
    return str(pin)


# Only num2words' command uses docopt, which has no wheel.
_VOICE = ("docopt",)
_FLAVOURS = {
    "cpu": Image(()),
    # onnxruntime and onnxruntime-gpu are the same package to Python; torch needs neither.
    "cuda": Image((), besides=("onnxruntime-gpu[cuda,cudnn]",), without=("onnxruntime",)),
    "torch": Image((), besides=(torch_pin(),), without=("onnxruntime", "flatbuffers")),
}


def _inference(flavour: str, extra: str) -> Image:
    part = _FLAVOURS[flavour]
    return Image((extra, "tracing"), part.besides, (*_VOICE, *part.without))


_AGENT = ("agent", "bedrock", "strands", "tracing")
_AGENTCORE = ("agentcore", "bedrock", "tracing")

IMAGES = {
    "segmenter": Image(("segmenter", "tracing")),
    "tts_gateway": Image(("gateway", "tracing")),
    "agent": Image(_AGENT),
    f"agent{FREE}": Image(_AGENT, without=("av",)),
    "agentcore": Image(_AGENTCORE),
    f"agentcore{FREE}": Image(_AGENTCORE, without=("av",)),
    **{f"inference-{each}": _inference(each, "inference") for each in _FLAVOURS},
    **{f"inference-{each}{FREE}": _inference(each, "inference-gpl-free") for each in _FLAVOURS},
}

ADDITIONS = {"extra-chinese": Image(("chinese",)), "extra-japanese": Image(("japanese",))}
"""What any of the images of the voice takes on, where it is built with EXTRAS."""


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
    for name, image in {**IMAGES, **ADDITIONS}.items():
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
