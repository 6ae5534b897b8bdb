"""The rules of the tree: who may import whom, how long is too long, what stays out."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import cores, tree

ROOT = tree.ROOT


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache", "--no-logo"], cwd=root, capture_output=True, text=True
    )


def test_the_import_contracts_hold() -> None:
    report = lint_imports(ROOT)
    assert report.returncode == 0, report.stdout


@pytest.mark.parametrize(
    ("path", "line", "contract"),
    [
        (
            "services/agent/__init__.py",
            "import services.segmenter",
            "Services never import each other",
        ),
        ("firstword/errors.py", "from services import agent", "The library imports no service"),
        ("firstword/keys.py", "import time", "Cores and codecs only decide"),
        # The codec imports this module.
        ("firstword/errors.py", "import asyncio", "Cores and codecs only decide"),
        (
            "services/agent/__init__.py",
            "import onnxruntime",
            "Only the ONNX adapter imports onnxruntime",
        ),
        (
            "services/tts_gateway/sagemaker_errors.py",
            "import botocore",
            "Only the adapters of SageMaker and Bedrock import what speaks to AWS",
        ),
        (
            "services/agent/talk.py",
            "import strands",
            "Only its own adapter imports what an agent's words come from",
        ),
        (
            "services/inference/__init__.py",
            "import spacy",
            "Only the text front end imports what reads text",
        ),
    ],
)
def test_the_import_contracts_bite(tmp_path: Path, path: str, line: str, contract: str) -> None:
    for package in ("firstword", "services"):
        shutil.copytree(ROOT / package, tmp_path / package)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    with (tmp_path / path).open("a") as module:
        module.write(f"\n{line}\n")
    report = lint_imports(tmp_path)
    assert report.returncode == 1
    assert f"{contract} BROKEN" in report.stdout


def test_contracts_and_coverage_speak_of_the_same_cores() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    modules = config["importlinter:contract:cores"]["source_modules"].split()
    patterns = [module.replace(".", "/") + ".py" for module in modules]
    listed = [str(p.relative_to(ROOT)) for pattern in patterns for p in ROOT.glob(pattern)]
    assert sorted(listed) == cores.cores()


def test_no_module_is_too_long() -> None:
    assert list(tree.long_modules(tree.files())) == []


def test_nothing_of_one_machine_is_in_the_tree() -> None:
    assert list(tree.private_words(tree.files())) == []


def test_the_tree_is_found_without_git_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", ".ci/run", ".venv/b.py", "c/__pycache__/c.pyc", "d.egg-info/e", "c/f.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setenv("PATH", "")
    assert [str(path.relative_to(tmp_path)) for path in tree.files(tmp_path)] == [
        ".ci/run",
        "a.py",
        "c/f.txt",
    ]


def test_the_checks_of_the_tree_bite(tmp_path: Path) -> None:
    long, long_test = tmp_path / "long.py", tmp_path / "tests" / "test_long.py"
    long_test.parent.mkdir()
    long.write_text("x = 1\n" * (tree.MAX_LINES + 1))
    long_test.write_text("x = 1\n" * (tree.MAX_LINES + 1))
    assert [line.split(":")[0] for line in tree.long_modules([long, long_test], tmp_path)] == [
        str(long)
    ]
    words = tmp_path / "words"
    words.write_text("ok\nhttps://files.python" + "hosted.org/x\n/ho" + "me/me/x\n")
    sound = tmp_path / "sound"
    sound.write_bytes(b"\xff\xfe")
    assert [line.split(":")[1] for line in tree.private_words([words, sound])] == ["2", "3"]
