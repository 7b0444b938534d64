"""What is wrong with a map: first the values, later more and more the shape, whatever its scale and shift."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


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


def loss(said: Tensor, truth: Tensor, progress: float) -> Tensor:
    """A scalar for maps (n, h, w); ``progress`` 0..1 through the training moves weight from values to shape.

    Starting with the shape alone got stuck beside the plain ramp: values lead, shape refines.
    """
    late = min(1.0, max(0.0, (progress - 0.15) / 0.5))
    residue = normalised(said) - normalised(truth)
    values = 4 * (1 - late / 2) * functional.mse_loss(said, truth) + functional.l1_loss(said, truth)
    shape = (0.2 + 0.8 * late) * residue.abs().clamp(max=8).mean() + (0.03 + 0.37 * late) * gradients(residue)
    return torch.as_tensor(values + shape + functional.relu(-said).mean())
