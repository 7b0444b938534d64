"""Rewriting a graph so that CoreML takes it whole: fixed shapes, a newer opset, folded constants, plain Resize nodes.

No weight is changed. ``trained`` changes which positions the resizes of MiDaS-small read, back to what it was trained
with; ``static`` changes nothing that can be seen.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from watcher.errors import ModelError
from watcher.prepare.forecast import opset

OPSET = 17
_TRAINED_RESIZES = 5


def static(model: onnx.ModelProto, size_px: tuple[int, int]) -> onnx.ModelProto:
    """The graph at (1, 3, height, width), constants folded, every Resize with a fixed size.

    Raises ``ModelError`` where the graph cannot be brought to the newer opset or folded.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _fix_input(made, size_px)
    made = _upgrade(made)
    made = _fold(made)
    _fix_resizes(made)
    _sweep(made)
    return made


def trained(made: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """MiDaS-small as it was trained: four fusion blocks with aligned corners, the head with half pixels.

    ``made`` is a graph from ``static``, changed in place. Source: the network's published definition; its ONNX export
    at opset 10 could not say either, so that all five became asymmetric. Raises ``ModelError`` for any other graph.
    """
    resizes = [node for node in made.graph.node if node.op_type == "Resize"]
    modes = [_attributes(node).get("coordinate_transformation_mode") for node in resizes]
    if modes != [b"asymmetric"] * _TRAINED_RESIZES:
        raise ModelError(
            f"{name} is not an export of MiDaS v2.1 small: {len(resizes)} resizes are not the five without a mode",
            "The preparation `trained` is only for midas-v21-small; `static` fits every network.",
        )
    for node in resizes[:-1]:
        _set(node, "coordinate_transformation_mode", "align_corners")
    _set(resizes[-1], "coordinate_transformation_mode", "half_pixel")
    return made


def _fix_input(model: onnx.ModelProto, size_px: tuple[int, int]) -> None:
    constants = {value.name for value in model.graph.initializer}
    entry = next(value for value in model.graph.input if value.name not in constants)
    for dim, length in zip(entry.type.tensor_type.shape.dim, (1, 3, *size_px), strict=True):
        dim.ClearField("dim_param")
        dim.dim_value = length
    del model.graph.value_info[:]
    for output in model.graph.output:  # what the export believed of open lengths; inferred anew
        for dim in output.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.Clear()
    while model.graph.input and any(value.name in constants for value in model.graph.input):
        model.graph.input.remove(next(value for value in model.graph.input if value.name in constants))


def _upgrade(model: onnx.ModelProto) -> onnx.ModelProto:
    before = opset(model)
    if before >= OPSET:
        return model
    try:
        made: onnx.ModelProto = version_converter.convert_version(model, OPSET)
    except Exception as error:  # the converter has no classes of its own
        raise ModelError(
            f"the graph cannot be brought from opset {before} to {OPSET}: {str(error).splitlines()[0]}",
            "Export it again with opset 17.",
        ) from error
    made.ir_version = max(made.ir_version, 8)
    if before < 11:  # before 11 a Resize could say nothing; this is what it did
        for node in made.graph.node:
            if node.op_type == "Resize":
                _set(node, "coordinate_transformation_mode", "asymmetric")
                _set(node, "nearest_mode", "floor")
    return made


def _fold(model: onnx.ModelProto) -> onnx.ModelProto:
    """ONNX Runtime's own basic passes: constants folded, normalisation put into convolutions."""
    import onnxruntime

    with tempfile.TemporaryDirectory(prefix="depth-watcher-") as place:
        before, after = Path(place) / "before.onnx", Path(place) / "after.onnx"
        before.write_bytes(model.SerializeToString())
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        settings.optimized_model_filepath = str(after)
        try:
            onnxruntime.InferenceSession(str(before), settings, providers=["CPUExecutionProvider"])
        except Exception as error:  # a dozen classes of its own
            raise ModelError(f"the graph cannot be folded: {str(error).splitlines()[0]}") from error
        made = onnx.load(after)
    _constants_to_initialisers(made)
    return made


def _constants_to_initialisers(model: onnx.ModelProto) -> None:
    for node in [node for node in model.graph.node if node.op_type == "Constant"]:
        value = _attributes(node).get("value")
        if isinstance(value, onnx.TensorProto):
            value.name = node.output[0]
            model.graph.initializer.append(value)
            model.graph.node.remove(node)


def _fix_resizes(model: onnx.ModelProto) -> None:
    """Sizes instead of scales wherever both mean the same; what is left keeps constant scales."""
    shapes = _shapes(model)
    constants = {value.name: value for value in model.graph.initializer}
    for index, node in enumerate(node for node in model.graph.node if node.op_type == "Resize"):
        source, target = shapes.get(node.input[0]), shapes.get(node.output[0])
        if source is None or target is None:
            continue
        scales = constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        exact = np.asarray(target, np.float64) / np.asarray(source, np.float64)
        if scales is not None and not np.array_equal(numpy_helper.to_array(scales).astype(np.float64), exact):
            continue
        name = f"prepared_size_{index}"
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(target, np.int64), name))
        value = node.input[0]
        del node.input[:]
        node.input.extend([value, "", "", name])


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    known = onnx.shape_inference.infer_shapes(model, data_prop=True)
    shapes = {}
    for value in (*known.graph.value_info, *known.graph.input, *known.graph.output):
        dims = value.type.tensor_type.shape.dim
        if dims and all(dim.HasField("dim_value") and dim.dim_value > 0 for dim in dims):
            shapes[value.name] = tuple(dim.dim_value for dim in dims)
    return shapes


def _sweep(model: onnx.ModelProto) -> None:
    """Drop constants that nobody reads any more."""
    read = {name for node in model.graph.node for name in node.input} | {v.name for v in model.graph.output}
    kept = [value for value in model.graph.initializer if value.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def _attributes(node: Any) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _set(node: Any, name: str, value: str) -> None:
    for attribute in [attribute for attribute in node.attribute if attribute.name == name]:
        node.attribute.remove(attribute)
    node.attribute.append(helper.make_attribute(name, value))
