"""The trained network and its mirror image in one graph: their mean says the same of a picture and of its mirror image.

A network should not care where left is, but each has its habits. The mean of both maps is the usual remedy; here the
mirror image is made of the weights, once, so that the graph needs no operator that turns pictures around.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.network import Starter


def mirrored(net: Starter) -> Starter:
    """The network whose map of a picture is the mirror image of the map that ``net`` makes of the mirrored picture.

    Kernels are mirrored, and so is the plane of columns. Where a convolution takes every second column, of an even
    number of them, the mirrored one has to take the others: its kernel gets a column of zeros in front.
    """
    twin = copy.deepcopy(net)
    twin.planes[:, 1] = -twin.planes[:, 1]
    for layer in twin.modules():
        if isinstance(layer, nn.Conv2d):
            kernel = layer.weight.detach().flip(3)
            if layer.stride == (2, 2):
                kernel = functional.pad(kernel, (1, 0))
                layer.kernel_size = (layer.kernel_size[0], layer.kernel_size[1] + 1)
            layer.weight = nn.Parameter(kernel)
    return twin


class BothWays(nn.Module):
    """RGB (n, 3, side, side) 0..1 to the mean of both maps, (n, side, side), 0 or more."""

    def __init__(self, net: Starter) -> None:
        super().__init__()
        self.net, self.twin = net, mirrored(net)

    def forward(self, image: Tensor) -> Tensor:
        return torch.relu((self.net(image) + self.twin(image)) * 0.5)
