"""What CoreML will take of a graph, told without a Mac: from the operator list in ONNX Runtime's own tools.

The tool judges by operator and shape alone, so the one operator that decides for depth networks, Resize, is judged here
by what CoreML's builder asks of it. A forecast, not a promise: the graph assignment of a real session is the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx

from watcher.errors import ModelError

_MLPROGRAM = "coreml_supported_mlprogram_ops.md"
_MODES = (b"half_pixel", b"align_corners", b"asymmetric")
_MOST_AXES = 5
_ABSENT = "(absent)"
_OLDEST_RESIZE = 11


@dataclass(frozen=True, slots=True)
class Forecast:
    """``unsupported``: the operators that stay on the CPU, each once."""

    nodes: int
    supported: int
    partitions: int
    unsupported: tuple[str, ...]

    def __str__(self) -> str:
        left = f"; not: {', '.join(self.unsupported)}" if self.unsupported else ""
        return f"{self.supported} of {self.nodes} nodes in {self.partitions} partition(s){left}"


def forecast(model: onnx.ModelProto) -> Forecast:
    """How CoreML (MLProgram, fixed shapes wanted) would cut the graph.

    Source of the cut: ``onnxruntime.tools.mobile_helpers.usability_checker``, which follows the runtime's own code.
    """
    import pathlib

    from onnxruntime.tools.mobile_helpers import usability_checker

    known = onnx.shape_inference.infer_shapes(model, data_prop=True)
    _name_the_absent(known)
    table = pathlib.Path(usability_checker.__file__).with_name(_MLPROGRAM)
    if not table.is_file():
        raise ModelError(
            "this ONNX Runtime is too old to say what CoreML takes",
            "The official package, 1.31 or newer, can: make install",
        )
    listed = usability_checker._SupportedOpsChecker(table)
    checker = _Checker(listed, known)
    info = usability_checker.check_partitioning(known.graph, checker, bool(known.graph.value_info), _MOST_AXES)
    names = set(checker.refused)
    return Forecast(info.num_nodes, info.num_supported_nodes, info.num_partitions, tuple(sorted(names)))


def _name_the_absent(model: onnx.ModelProto) -> None:
    """The tool takes an input that is left out for one of unknown shape; in this copy it gets a name and no length."""
    model.graph.initializer.append(onnx.helper.make_tensor(_ABSENT, onnx.TensorProto.FLOAT, [0], []))
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if not name:
                node.input[index] = _ABSENT


class _Checker:
    """The tool's list, with Resize judged by its attributes."""

    def __init__(self, listed: Any, model: onnx.ModelProto) -> None:
        self._listed = listed
        self._constants = {value.name for value in model.graph.initializer}
        self._opset = opset(model)
        self.refused: set[str] = set()

    def is_op_supported(self, node: Any) -> bool:
        fits = bool(self._listed.is_op_supported(node)) or (node.op_type == "BatchNormalization" and not node.domain)
        if fits and node.op_type == "Resize":
            fits = self._takes_resize(node)
        if not fits:
            self.refused.add(node.op_type)
        return fits

    def get_caveats(self) -> list[str]:
        return list(self._listed.get_caveats())

    def _takes_resize(self, node: Any) -> bool:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        sized = [name for name in node.input[2:] if name and name != _ABSENT]
        return (
            self._opset >= _OLDEST_RESIZE
            and attributes.get("mode", b"nearest") in (b"linear", b"nearest")
            and attributes.get("coordinate_transformation_mode", b"half_pixel") in _MODES
            and bool(sized)
            and all(name in self._constants for name in sized)
        )


def opset(model: onnx.ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
