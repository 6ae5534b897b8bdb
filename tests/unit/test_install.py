"""How `make install` puts the tree on the path."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.install import EDITABLE, ROOT

_BUILD = """
import sys
from setuptools import build_meta
build_meta.build_editable(sys.argv[1], {settings!r})
"""
_SCRIPT = """
import importlib.util, site, sys
site.addsitedir(sys.argv[1])
print(importlib.util.find_spec("firstword").origin)
"""


def test_a_script_beside_a_clone_named_firstword_finds_the_package(tmp_path: Path) -> None:
    """Its folder comes first on the path, and in it the clone looks like a package to Python."""
    clone, wheels, site = (tmp_path / name for name in ("firstword", "wheels", "site"))
    for package in ("firstword", "services"):
        shutil.copytree(
            ROOT / package, clone / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, clone)
    wheels.mkdir()
    build = [sys.executable, "-c", _BUILD.format(settings=EDITABLE), str(wheels)]
    subprocess.run(build, cwd=clone, capture_output=True, check=True, timeout=60)
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)

    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    # -S: without what is installed in the environment that runs this test.
    command = [sys.executable, "-S", str(script), str(site)]
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == str(clone / "firstword" / "__init__.py")
