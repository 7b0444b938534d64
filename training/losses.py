"""What is wrong with a map: first the values, later more and more the shape, whatever its scale and shift."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

PAIRS, EQUAL, STEEP = 2048, 0.02, 8.0  # pairs a picture; difference without an order; how fast a wrong order costs


@dataclass(frozen=True, slots=True)
class Weights:
    """``late`` from the start or, where None, growing; shares of the losses of ``values`` and of ``order``."""

    late: float | None = None
    values: float = 1.0
    order: float = 1.0


WEIGHTS = Weights()
SHAPE = Weights(late=1.0)  # as at the end of a training, from the start


def normalised(maps: Tensor) -> Tensor:
    """(n, h, w) with median 0 and mean absolute deviation 1, as in MiDaS (Ranftl et al. 2020, equation 5)."""
    flat = maps.flatten(1)
    middle = flat.median(1, keepdim=True).values
    return ((flat - middle) / ((flat - middle).abs().mean(1, keepdim=True) + 1e-3)).view_as(maps)


def gradients(residue: Tensor) -> Tensor:
    """Mean absolute slope of a residue (n, h, w) over four scales, as in MiDaS (equation 11)."""
    total = residue.new_zeros(())
    for scale in (1, 2, 4, 8):
        part = residue[:, ::scale, ::scale]
        total = total + part.diff(dim=1).abs().mean() + part.diff(dim=2).abs().mean()
    return total


def disorder(said: Tensor, truth: Tensor, seed: int) -> Tensor:
    """Mean loss of 2048 pairs of points a picture whose order is wrong or undecided; pairs of equal depth do not count.

    As in Chen et al. 2016 (Single-Image Depth Perception in the Wild, equation 2). Values alone care for what is near,
    where inverse depth is large; the order of what is far counts as much.
    """
    points = torch.randint(truth[0].numel(), (2, PAIRS), generator=torch.Generator().manual_seed(seed))
    s, t = said.flatten(1), truth.flatten(1)
    apart = t[:, points[0]] - t[:, points[1]]
    decided = apart.abs() > EQUAL
    ahead = (s[:, points[0]] - s[:, points[1]]) * apart.sign()
    return (functional.softplus(-STEEP * ahead) * decided).sum() / decided.sum().clamp(min=1)


def loss(said: Tensor, truth: Tensor, progress: float, weights: Weights = WEIGHTS) -> Tensor:
    """A scalar for maps (n, h, w); ``progress`` 0..1 through the training moves weight from values to shape.

    Starting with the shape alone got stuck beside the plain ramp: values lead, shape refines.
    """
    late = min(1.0, max(0.0, (progress - 0.15) / 0.5)) if weights.late is None else weights.late
    residue = normalised(said) - normalised(truth)
    values = 4 * (1 - late / 2) * functional.mse_loss(said, truth) + functional.l1_loss(said, truth)
    shape = (0.2 + 0.8 * late) * residue.abs().clamp(max=8).mean() + (0.03 + 0.37 * late) * gradients(residue)
    order = (0.1 + 0.3 * late) * disorder(said, truth, round(progress * 1e7))
    return torch.as_tensor(weights.values * values + shape + weights.order * order + functional.relu(-said).mean())
