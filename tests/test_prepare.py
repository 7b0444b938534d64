"""Preparing graphs for CoreML: one partition, the same numbers, the original kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from watcher import catalog
from watcher.catalog import Model, Spec, digest
from watcher.errors import ModelError
from watcher.prepare import forecast as forecasting
from watcher.prepare import prepare
from watcher.prepare.forecast import forecast, opset
from watcher.session import Options, dialect, open_session

needs_operator_list = pytest.mark.skipif(
    dialect.version_of(onnxruntime.__version__) < (1, 20),
    reason=f"onnxruntime {onnxruntime.__version__} carries no list of CoreML's operators, so nothing can be foretold",
)


class Builder:
    """A graph at opset 10 in the manner of MiDaS v2.1 small: fusion blocks with asymmetric resizes by scales."""

    def __init__(self, channels: int, side_px: int | str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(7)
        self._channels = channels
        self._side = side_px
        self._count = 0

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        self._count += 1
        name = f"v{self._count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def conv(self, source: str, cin: int, cout: int, stride: int = 1) -> str:
        weights = self._random.normal(0, 0.6 / np.sqrt(9 * cin), (cout, cin, 3, 3)).astype(np.float32)
        made = self.add("Conv", source, self.constant(weights), kernel_shape=[3, 3], pads=[1] * 4, strides=[stride] * 2)
        ones = [np.full(cout, value, np.float32) for value in (1.1, 0.1, 0.05, 0.9)]
        return self.add("BatchNormalization", made, *(self.constant(value) for value in ones), epsilon=1e-5)

    def twice(self, source: str) -> str:
        """As PyTorch 1.6 exports ``interpolate(scale_factor=2)``: lengths computed in the graph, then divided."""
        shape = self.add("Shape", source)
        axes = self.add("Slice", shape, *(self.constant(np.array([v], np.int64)) for v in (2, 4, 0)))
        floats = self.add("Cast", axes, to=TensorProto.FLOAT)
        doubled = self.add("Floor", self.add("Mul", floats, self.constant(np.array([2, 2], np.float32))))
        ratio = self.add("Div", doubled, floats)
        scales = self.add("Concat", self.constant(np.array([1, 1], np.float32)), ratio, axis=0)
        return self.add("Resize", source, scales, mode="linear")

    def build(self, path: Path) -> Path:
        c = self._channels
        mean = self.constant(np.array([0.485, 0.456, 0.406], np.float32).reshape(1, 3, 1, 1))
        deviation = self.constant(np.array([0.229, 0.224, 0.225], np.float32).reshape(1, 3, 1, 1))
        x = self.add("Div", self.add("Sub", "0", mean), deviation)
        levels = []
        for index in range(5):
            x = self.add("Clip", self.conv(x, 3 if index == 0 else c, c, stride=2), min=0.0, max=6.0)
            levels.append(x)
        path_out = levels[4]
        for level in (levels[3], levels[2], levels[1], levels[0]):
            up = self.twice(self.add("Relu", self.conv(path_out, c, c)))
            path_out = self.add("Add", up, self.conv(level, c, c))
        head = self.twice(self.conv(path_out, c, c))
        head = self.add("Relu", self.conv(self.add("Relu", self.conv(head, c, c)), c, 1))
        last = self.add("Squeeze", head, axes=[1])
        entry = helper.make_tensor_value_info("0", TensorProto.FLOAT, [1, 3, self._side, self._side])
        out = helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, self._side, self._side])
        graph = helper.make_graph(self.nodes, "midas", [entry], [out], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=6)
        onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString())
        return path


@pytest.fixture
def midas(tmp_path: Path) -> Model:
    path = Builder(16, 128).build(tmp_path / "midas.onnx")
    return Model(Spec("midas", path.name, input_px=(128, 128)), path, digest(path))


@needs_operator_list
def test_the_starter_falls_to_one_partition(tmp_path: Path) -> None:
    """Of the embedded network CoreML takes every node, in one piece, and not a digit changes."""
    done = prepare(catalog.find("starter", tmp_path), tmp_path)
    assert done.before.partitions > 1
    assert (done.after.partitions, done.after.supported) == (1, done.after.nodes)
    assert done.largest_difference < 1e-5


@needs_operator_list
def test_midas_falls_to_one_partition(midas: Model, tmp_path: Path) -> None:
    """Five asymmetric resizes with computed scales at opset 10 become one graph that CoreML takes whole."""
    kept = midas.path.read_bytes()
    done = prepare(midas, tmp_path)
    assert done.before.partitions >= 5
    assert "Resize" in done.before.unsupported
    assert (done.after.partitions, done.after.supported) == (1, done.after.nodes)
    assert done.largest_difference < 1e-4
    made = onnx.load(done.path)
    onnx.checker.check_model(made)
    assert opset(made) >= 17
    assert midas.path.read_bytes() == kept


@needs_operator_list
def test_trained_resizes_are_another_map(midas: Model, tmp_path: Path) -> None:
    """The trained semantics change the map, not the weights; four blocks align corners, the head takes half pixels."""
    done = prepare(midas, tmp_path, "trained")
    assert 0.001 < done.mean_difference < 0.5
    assert done.after.partitions == 1
    resizes = [node for node in onnx.load(done.path).graph.node if node.op_type == "Resize"]
    modes = [
        helper.get_attribute_value(attribute)
        for node in resizes
        for attribute in node.attribute
        if attribute.name == "coordinate_transformation_mode"
    ]
    assert modes == [b"align_corners"] * 4 + [b"half_pixel"]
    assert catalog.prepared_path(midas, tmp_path, "static") != done.path


def test_trained_is_only_for_midas_small(tmp_path: Path) -> None:
    """Another network is refused in words, and nothing is left behind."""
    with pytest.raises(ModelError, match="not an export of MiDaS"):
        prepare(catalog.find("starter", tmp_path), tmp_path, "trained")
    assert not (tmp_path / "prepared").exists()


@needs_operator_list
def test_open_sizes_are_closed(tmp_path: Path) -> None:
    """A graph that leaves its sides open is fixed at the size that the catalogue knows."""
    path = Builder(8, "side").build(tmp_path / "open.onnx")
    model = Model(Spec("open", path.name, input_px=(64, 64)), path, digest(path))
    done = prepare(model, tmp_path)
    assert (done.after.partitions, done.after.supported) == (1, done.after.nodes)
    with open_session(done.path, Options(provider="cpu")) as session:
        assert (session.shape.height_px, session.shape.width_px, session.shape.fixed) == (64, 64, True)


@needs_operator_list
def test_the_record_says_what_it_came_from(midas: Model, tmp_path: Path) -> None:
    """A prepared graph is found by the content of its original, and only while it is whole."""
    assert catalog.prepared(midas, tmp_path, "static") is None
    done = prepare(midas, tmp_path)
    found = catalog.prepared(midas, tmp_path, "static")
    assert found is not None
    assert found.path == done.path
    record = json.loads(catalog.prepared_record(done.path).read_text())
    assert record["source_sha256"] == midas.sha256
    assert record["sha256"] == found.sha256
    assert str(done.after) == record["forecast_after"]
    other = Model(midas.spec, midas.path, "f" * 64)
    assert catalog.prepared(other, tmp_path, "static") is None
    done.path.write_bytes(b"damaged")
    assert catalog.prepared(midas, tmp_path, "static") is None


@needs_operator_list
def test_a_resize_by_open_scales_is_no_partition(midas: Model) -> None:
    """The forecast does not believe the tool's list alone: Resize before opset 11 stays on the CPU."""
    found = forecast(onnx.load(midas.path))
    assert found.supported < found.nodes
    assert "Resize" in str(found)


def test_a_runtime_without_the_list(monkeypatch: pytest.MonkeyPatch, midas: Model, tmp_path: Path) -> None:
    """onnxruntime-silicon carries no list of CoreML's operators: it is said in words, and nothing is left behind."""
    monkeypatch.setattr(forecasting, "_MLPROGRAM", "none.md")
    with pytest.raises(ModelError, match="too old to say"):
        prepare(midas, tmp_path / "models")
    assert not (tmp_path / "models").exists()
