"""What the images hold, package by package: versions and sums as pinned, licences as declared."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import metadata

from packaging.markers import Marker

from tools.image_requirements import ADDITIONS, FOLDER, IMAGES, PYTHON

_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; (.+?))? \\$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_IMAGE = {
    "implementation_name": "cpython",
    "implementation_version": f"{PYTHON}.0",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": f"{PYTHON}.0",
    "python_version": PYTHON,
    "sys_platform": "linux",
}
"""What markers are asked about: the images, whatever runs this."""

# Of the images for CUDA, and nowhere else: what their metadata say cannot be looked up here.
_NVIDIA = "NVIDIA's own (proprietary)"
_NOT_INSTALLED = {
    "cuda-bindings": _NVIDIA,
    "cuda-pathfinder": "Apache-2.0",
    "cuda-toolkit": _NVIDIA,
    "onnxruntime-gpu": "MIT",
    "torch": "BSD-3-Clause",
    "triton": "MIT",
}

CARRIES_GPL = {
    "av": "its wheels carry FFmpeg with x264 and x265",
    "espeakng-loader": "it carries espeak-ng, and declares nothing",
}
"""Packages with parts under the GPL that their metadata do not tell of."""

GPL_FILES = {"misaki": ("misaki/vi.py", "misaki/vi_cleaner")}
"""What is taken out of a package where nothing may be under the GPL. `vi.py` (Vietnamese, which the
model does not speak) is close to vPhon, which is under GPL-3, though misaki declares Apache-2.0."""

_GPL = re.compile(r"(?<!L)GPL|GNU (Affero )?General Public")

_SHORT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The MIT License (MIT)": "MIT",
}


@dataclass(frozen=True, slots=True)
class Package:
    """One package of an image. `sums` are the sha256 of the files that may be installed."""

    name: str
    version: str
    sums: tuple[str, ...] = field(repr=False)

    @property
    def licence(self) -> str:
        """As its metadata declare it, by the SPDX name where that is clear.

        Raises PackageNotFoundError where it is not installed: some need the images' Python.
        """
        if self.name.startswith("nvidia-"):
            return _NVIDIA
        if self.name in _NOT_INSTALLED:
            return _NOT_INSTALLED[self.name]
        return declared(self.name)

    @property
    def under_gpl(self) -> bool:
        """Whether it is, or carries something that is; the LGPL is another licence."""
        return self.name in CARRIES_GPL or bool(_GPL.search(self.licence))


def of_image(name: str) -> list[Package]:
    """What is installed in that image on Linux."""
    found: list[Package] = []
    text = (FOLDER / f"{name}.txt").read_text("utf-8")
    for block in re.split(r"^(?=[a-z0-9-]+==)", text, flags=re.MULTILINE)[1:]:
        pin = _PIN.match(block.splitlines()[0])
        if pin is None:
            raise ValueError(f"{name}.txt: cannot be read at {block.splitlines()[0]!r}")
        if pin[3] is None or Marker(pin[3]).evaluate(_IMAGE):
            found.append(Package(pin[1], pin[2], tuple(_HASH.findall(block))))
    return found


def all_packages() -> dict[Package, list[str]]:
    """Every package of any image or addition, and those that have it."""
    having: dict[Package, list[str]] = {}
    for image in (*IMAGES, *ADDITIONS):
        for package in of_image(image):
            having.setdefault(package, []).append(image)
    return dict(sorted(having.items(), key=lambda pair: pair[0].name))


def declared(name: str) -> str:
    """The licence in an installed package's metadata. Raises PackageNotFoundError."""
    told = metadata.metadata(name)
    expression = told.get("License-Expression")
    if expression:
        return str(expression)
    classified = [
        each.rsplit(" :: ", 1)[-1]
        for each in told.get_all("Classifier") or []
        if each.startswith("License :: ") and each != "License :: OSI Approved"
    ]
    written = (told.get("License") or "").strip().splitlines()
    line = classified[0] if classified else written[0] if written else "not declared"
    return _SHORT.get(line.strip(), line.strip())
