"""Networks to measure with: the embedded starter, one of the size and shape of MiDaS v2.1 small, and a trivial one.

The middle one has random weights: what it says is meaningless, what it costs is not. Its layers follow the published
description of MiDaS v2.1 small (an EfficientNet-lite3 encoder, four fusion blocks): about 21 million parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE_PX = 256
# (blocks, kernel, stride, expansion, channels) of EfficientNet-lite3; the four outputs that are tapped are marked.
_STAGES = (
    (1, 3, 1, 1, 24, False),
    (3, 3, 2, 6, 32, True),
    (3, 5, 2, 6, 48, True),
    (5, 3, 2, 6, 96, False),
    (5, 5, 1, 6, 136, True),
    (6, 5, 2, 6, 232, False),
    (1, 3, 1, 6, 384, True),
)
_FUSED = (64, 128, 256, 512)


@dataclass
class _Graph:
    """Collects nodes and weights; every method adds something and returns the name of its output."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(21))
    parameters: int = 0

    def constant(self, values: object, kind: type[np.generic] = np.float32) -> str:
        name = f"w{len(self.weights)}"
        array = np.asarray(values, kind)
        self.parameters += array.size
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def conv(  # noqa: PLR0913
        self, x: str, inside: int, outside: int, kernel: int, *, stride: int = 1, groups: int = 1
    ) -> str:
        spread = float(np.sqrt(2.0 / (inside // groups * kernel * kernel)))
        shape = (outside, inside // groups, kernel, kernel)
        weight = self.constant(self.random.standard_normal(shape) * spread)
        bias = self.constant(self.random.standard_normal(outside) * 0.01)
        pads = [kernel // 2] * 4
        return self.add("Conv", x, weight, bias, strides=[stride, stride], pads=pads, group=groups)

    def relu6(self, x: str) -> str:
        return self.add("Clip", x, self.constant(0.0), self.constant(6.0))

    def twice(self, x: str) -> str:
        scales = self.constant([1.0, 1.0, 2.0, 2.0])
        return self.add("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="align_corners")

    def refine(self, x: str, channels: int) -> str:
        """A residual unit: two 3x3 convolutions beside the identity."""
        y = self.conv(self.add("Relu", x), channels, channels, 3)
        y = self.conv(self.add("Relu", y), channels, channels, 3)
        return self.add("Add", self.add("Mul", y, self.constant(0.1)), x)


def midas_sized(path: Path) -> int:
    """Write the network; returns its number of parameters. Input ``(1, 3, 256, 256)``, output ``(1, 256, 256)``."""
    graph = _Graph()
    taps = _encoder(graph)
    last = _decoder(graph, taps)
    _write(path, graph, "MiDaS v2.1 small in size and shape, random weights", last)
    return graph.parameters


def _encoder(graph: _Graph) -> list[tuple[str, int]]:
    mean = graph.constant(np.array([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1))
    std = graph.constant(np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1))
    x = graph.add("Div", graph.add("Sub", "picture", mean), std)
    x, channels = graph.relu6(graph.conv(x, 3, 32, 3, stride=2)), 32
    taps = []
    for blocks, kernel, stride, expansion, outside, tapped in _STAGES:
        for block in range(blocks):
            step = stride if block == 0 else 1
            wide = channels * expansion
            y = graph.relu6(graph.conv(x, channels, wide, 1)) if expansion > 1 else x
            y = graph.relu6(graph.conv(y, wide, wide, kernel, stride=step, groups=wide))
            y = graph.conv(y, wide, outside, 1)
            x = graph.add("Add", x, y) if step == 1 and channels == outside else y
            channels = outside
        if tapped:
            taps.append((x, channels))
    return taps


def _decoder(graph: _Graph, taps: list[tuple[str, int]]) -> str:
    x = ""
    for (tap, channels), width in reversed(list(zip(taps, _FUSED, strict=True))):
        side = graph.refine(graph.conv(tap, channels, width, 3), width)
        x = graph.twice(graph.refine(graph.add("Add", x, side) if x else side, width))
        x = graph.conv(x, width, max(_FUSED[0], width // 2), 1)
    x = graph.twice(graph.conv(x, _FUSED[0], 32, 3))
    x = graph.add("Relu", graph.conv(x, 32, 32, 3))
    x = graph.add("Relu", graph.conv(x, 32, 1, 1))
    return graph.add("Squeeze", x, graph.constant([1], np.int64))


def trivial(path: Path) -> int:
    """Write a network that only averages the channels: what is left is the cost of everything around it."""
    graph = _Graph()
    mean = graph.add("ReduceMean", "picture", axes=[1], keepdims=0)
    _write(path, graph, "trivial", mean)
    return 0


def _write(path: Path, graph: _Graph, name: str, last: str) -> None:
    size = (1, 3, SIDE_PX, SIDE_PX)
    taken = helper.make_tensor_value_info("picture", TensorProto.FLOAT, size)
    given = helper.make_tensor_value_info(last, TensorProto.FLOAT, (1, SIDE_PX, SIDE_PX))
    whole = helper.make_graph(graph.nodes, name, [taken], [given], graph.weights)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
