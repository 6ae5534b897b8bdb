"""Makes weights for torch of the int8 graph.

`python -m services.inference.kokoro_torch.dequantise` puts them beside the graph.

For machines that reach a package registry but not the place of the original checkpoint, and for
tests. What comes out is a state dict of `Kokoro` in float32, exactly as precise as the int8 graph.
Needs the package `onnx`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from firstword import assets
from firstword.errors import FirstwordError
from services.inference.kokoro_torch import weights

Array = npt.NDArray[Any]

_PARAMETER: Final = re.compile(r"(en|de)coder\.[\w.]+\.(bias|weight|gamma|beta|alpha[12]\.\d)")
_CALLED_BY_THE_MODEL: Final = ("F0", "N", "F0_proj", "N_proj", "shared")
"""Parts of the predictor that the model calls itself: the graph does not name it there."""


class _Graph:
    """What an `onnx.GraphProto` stores, as float32 arrays under the names of `Kokoro`."""

    def __init__(self, graph: Any) -> None:
        from onnx import numpy_helper

        self._nodes = graph.node
        self._stored = {item.name: numpy_helper.to_array(item) for item in graph.initializer}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        for name, array in self._stored.items():
            if _PARAMETER.fullmatch(name):
                yield name.partition(".")[2], array
        seen: set[str] = set()  # ALBERT's layers read the same weights twelve times
        for node in self._nodes:
            weight = node.input[1] if len(node.input) > 1 else ""
            if weight not in seen and "/istft/" not in node.name:
                seen.add(weight)
                yield from self._weights(node, weight)

    def _weights(self, node: Any, weight: str) -> Iterator[tuple[str, Array]]:
        """The weights that a node reads, if it is of a kind that has some."""
        match node.op_type:
            case "DequantizeLinear" if weight in self._stored:  # of a table that is looked up in
                name = weight.removesuffix("_scale")
                yield name.partition(".")[2], self._whole(f"{name}_quantized", node.input[2])
            case "Conv" | "ConvTranspose":
                yield f"{_module(node.name)}.weight", self._stored[weight]
            case "ConvInteger":
                yield f"{_module(node.name)}.weight", self._whole(weight, node.input[3])
            case "MatMulInteger" if weight in self._stored:
                yield f"{_module(node.name)}.weight", self._whole(weight, node.input[3]).T
            case "MatMul" if weight in self._stored:
                yield f"{_module(node.name)}.weight", self._stored[weight].T
            case "DynamicQuantizeLSTM":
                yield from self._lstm(_module(node.name), node.input)

    def _lstm(self, module: str, inputs: Any) -> Iterator[tuple[str, Array]]:
        from_input = self._whole(inputs[1], inputs[9])
        from_state = self._whole(inputs[2], inputs[11])
        for direction, suffix in enumerate(("", "_reverse")):
            yield f"{module}.weight_ih_l0{suffix}", _gates(from_input[direction].T)
            yield f"{module}.weight_hh_l0{suffix}", _gates(from_state[direction].T)
            both = np.split(self._stored[inputs[3]][direction], 2)
            for kind, bias in zip(("ih", "hh"), both, strict=True):
                yield f"{module}.bias_{kind}_l0{suffix}", _gates(bias)

    def _whole(self, quantised: str, zero: str) -> Array:
        """Small whole numbers, a zero point and a scale, as the float32 that they stand for."""
        numbers = self._stored[quantised].astype(np.float32)
        scale = self._stored[f"{quantised.removesuffix('_quantized')}_scale"]
        origin = self._stored[zero].astype(np.float32)
        if scale.ndim and scale.shape[0] != numbers.shape[-1]:  # by direction, not by column
            scale, origin = scale[:, None, None], origin[:, None, None]
        return (numbers - origin) * scale


def _module(node: str) -> str:
    """`/encoder/F0.1/conv1/Conv_quant` is `predictor.F0.1.conv1`."""
    path: list[str] = []
    for part in node.split("/")[2:-1]:
        if path and part.startswith(f"{path[-1]}."):  # a list repeats its name: cnn.0/cnn.0.0
            path.pop()
        path.append(part)
    inner = path[0].partition(".")[0] in _CALLED_BY_THE_MODEL
    return ".".join(["predictor", *path] if inner else path)


def _gates(array: Array) -> Array:
    """ONNX has input, output, forget, cell; torch has input, forget, cell, output."""
    entry, output, forget, cell = np.split(array, 4)
    return np.concatenate([entry, forget, cell, output])


def dequantise(folder: Path) -> dict[str, Tensor]:
    """The state dict of `Kokoro` made of the int8 graph in `folder`, which is checked first."""
    import onnx

    graph = onnx.load_from_string(assets.Assets(folder, assets.load_manifest()).read_model()).graph
    return {
        name: torch.from_numpy(np.array(array, np.float32, order="C"))
        for name, array in _Graph(graph).tensors()
    }


def write(folder: Path) -> Path:
    """Put the checkpoint beside the graph, whole or not at all, and tell where it is."""
    target = folder / weights.DEQUANTISED
    state = dequantise(folder)
    descriptor, partial = tempfile.mkstemp(dir=folder, prefix=".partial-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            torch.save(state, file)
        Path(partial).chmod(0o644)
        Path(partial).replace(target)
    finally:
        Path(partial).unlink(missing_ok=True)
    return target


def main() -> None:
    """For the person at the terminal."""
    try:
        target = write(assets.locate(os.environ).folder)
    except FirstwordError as error:
        sys.exit(error.message)
    except ImportError:
        sys.exit("this needs the package onnx: `pip install onnx`")
    sys.stdout.write(f"{target}\n")


if __name__ == "__main__":
    main()
