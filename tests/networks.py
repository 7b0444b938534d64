"""Small networks for the tests, built node by node; each is a plain average or something that misbehaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper

Dim = int | str | None

NCHW: tuple[Dim, ...] = (1, 3, 16, 24)
OPEN: tuple[Dim, ...] = ("batch", 3, "height", "width")


def network(
    path: Path,
    shape: Sequence[Dim] = NCHW,
    *,
    squeeze: Sequence[int] = (),
    keep_channel: bool = False,
    kind: int = TensorProto.FLOAT,
    before: str = "Identity",
    output: Sequence[Dim] | None = (None, None, None),
) -> Path:
    """Write a network whose map is the mean over axis 1, after ``before`` (an operator with one input)."""
    nodes = [
        helper.make_node(before, ["picture"], ["changed"]),
        helper.make_node("ReduceMean", ["changed"], ["mean"], axes=[1], keepdims=int(keep_channel)),
    ]
    last = "mean"
    initialisers = []
    if squeeze:
        initialisers.append(helper.make_tensor("axes", TensorProto.INT64, [len(squeeze)], list(squeeze)))
        nodes.append(helper.make_node("Squeeze", ["mean", "axes"], ["squeezed"]))
        last = "squeezed"
    return _write(path, nodes, [_value("picture", shape, kind)], [_value(last, output, kind)], initialisers)


def two_inputs(path: Path) -> Path:
    nodes = [
        helper.make_node("Add", ["picture", "other"], ["sum"]),
        helper.make_node("ReduceMean", ["sum"], ["map"], axes=[1], keepdims=0),
    ]
    values = [_value(name, NCHW, TensorProto.FLOAT) for name in ("picture", "other")]
    return _write(path, nodes, values, [_value("map", (1, 16, 24), TensorProto.FLOAT)], [])


def two_outputs(path: Path) -> Path:
    """A class score beside the map; the map comes second."""
    nodes = [
        helper.make_node("ReduceMean", ["picture"], ["score"], axes=[2, 3], keepdims=0),
        helper.make_node("ReduceMax", ["picture"], ["map"], axes=[1], keepdims=0),
    ]
    outputs = [_value("score", (1, 3), TensorProto.FLOAT), _value("map", (1, 16, 24), TensorProto.FLOAT)]
    return _write(path, nodes, [_value("picture", NCHW, TensorProto.FLOAT)], outputs, [])


def no_map(path: Path) -> Path:
    """Everything that comes out is still three channels deep."""
    nodes = [helper.make_node("Identity", ["picture"], ["same"])]
    values = [_value("picture", NCHW, TensorProto.FLOAT)]
    return _write(path, nodes, values, [_value("same", NCHW, TensorProto.FLOAT)], [])


def _value(name: str, shape: Sequence[Dim] | None, kind: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _write(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initialisers: list[onnx.TensorProto],
) -> Path:
    graph = helper.make_graph(nodes, "test", inputs, outputs, initialisers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path
