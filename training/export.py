"""From a checkpoint to the shipped file: ONNX opset 17, fixed shape, weights in float16, arithmetic in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from training.network import Starter
from training.train import SIDE
from training.twin import BothWays

LEAN = 0.2  # how much "lower is nearer" is added, of a map that reaches about 1: what is unsure leans on what is usual
SMALL = 256  # a tensor with fewer values stays float32: nothing is saved there


class Shipped(nn.Module):
    """What is exported, alone or in the mean with its mirror image: leant a little on the ramp, nothing below zero.

    RGB (1, 3, side, side) 0..1 to (1, side, side).
    """

    def __init__(self, net: Starter, both_ways: bool) -> None:
        super().__init__()
        self.net = BothWays(net) if both_ways else net
        self.register_buffer("ramp", LEAN * (net.planes[:, 0] + 1) / 2, persistent=False)

    def forward(self, image: Tensor) -> Tensor:
        return torch.relu(self.net(image) + self.ramp).reshape(1, SIDE, SIDE)


def export(checkpoint: Path, target: Path, both_ways: bool = False) -> None:
    """Write the mean weights of ``checkpoint`` to ``target``; input ``image`` (1, 3, 128, 128), output ``depth``."""
    net = Starter(SIDE)
    net.load_state_dict(torch.load(checkpoint, weights_only=True)["mean"])
    net.eval()
    image = torch.zeros(1, 3, SIDE, SIDE)
    names = {"input_names": ["image"], "output_names": ["depth"]}
    torch.onnx.export(Shipped(net, both_ways).eval(), (image,), str(target), opset_version=17, dynamo=False, **names)
    model = onnx.load(target)
    halve(model)
    onnx.checker.check_model(model)
    onnx.save(model, target)


def halve(model: onnx.ModelProto) -> None:
    """Store large weights as float16 with a cast in front: half the bytes, the same arithmetic."""
    graph, casts = model.graph, []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.data_type == TensorProto.FLOAT and values.size >= SMALL:
            name = tensor.name
            casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
