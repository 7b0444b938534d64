"""The network: five halvings, residual blocks, a global mean for context, skips back. Only what CoreML takes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (24, 32, 64, 96, 160)  # channels at 1/2, 1/4, 1/8, 1/16, 1/32
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of natural photographs, the usual ImageNet figures


def conv(inside: int, outside: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    """Convolution, batch norm, ReLU; the norm is folded into the convolution when exported."""
    layer = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outside), nn.ReLU(inplace=True))


class Residual(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = conv(width, width)
        self.second = nn.Sequential(nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.second(self.first(x)))


class Wide(nn.Module):
    """A cheap block with a wide view: 5x5 a channel, then two 1x1 across channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 5, 1, 2, groups=width, bias=False),
            nn.BatchNorm2d(width),
            *conv(width, 2 * width, 1),
            nn.Conv2d(2 * width, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


def planes(side: int) -> Tensor:
    """Row and column of each pixel, (1, 2, side, side), -1..1."""
    line = torch.linspace(-1, 1, side)
    return torch.stack(torch.meshgrid(line, line, indexing="ij"))[None].contiguous()


def twice(x: Tensor) -> Tensor:
    """Twice the size, linear with half-pixel centres: fixed scales, which CoreML wants."""
    return functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)


class Starter(nn.Module):
    """RGB (n, 3, side, side) 0..1 to inverse depth (n, side, side), larger is nearer; ``side`` divides by 32.

    ``fine``: a second head at the full size looks at the picture again and corrects the map, whose own head works at
    half of it. It begins with nothing to say, so that it can be put on a network that has learnt already.
    """

    def __init__(self, side: int, *, fine: bool = False) -> None:
        super().__init__()
        self.side = side
        a, b, c, d, e = WIDTHS
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.register_buffer("spread", torch.tensor(SPREAD).view(1, 3, 1, 1))
        self.register_buffer("planes", planes(side), persistent=False)
        self.down1 = conv(5, a, 5, 2)
        self.down2 = nn.Sequential(conv(a, b, 3, 2), Residual(b))
        self.down3 = nn.Sequential(conv(b, c, 3, 2), Residual(c), Wide(c))
        self.down4 = nn.Sequential(conv(c, d, 3, 2), Residual(d), Wide(d), Wide(d))
        self.down5 = nn.Sequential(conv(d, e, 3, 2), Wide(e), Wide(e), Wide(e))
        self.context = nn.Conv2d(e, d, 1)
        self.up5 = conv(e, d, 1)
        self.up4 = nn.Sequential(conv(2 * d, d, 1), Residual(d), conv(d, c, 1))
        self.up3 = nn.Sequential(conv(2 * c, c, 1), Residual(c), conv(c, b, 1))
        self.up2 = nn.Sequential(conv(2 * b, b), Residual(b), conv(b, a, 1))
        self.up1 = nn.Sequential(conv(2 * a, a), conv(a, 16), nn.Conv2d(16, 1, 3, 1, 1))
        nn.init.constant_(self.up1[2].bias, 0.3)
        self.fine = nn.Sequential(conv(16 + 1 + 5, 16), conv(16, 16), nn.Conv2d(16, 1, 3, 1, 1)) if fine else None
        if self.fine is not None:
            nn.init.zeros_(self.fine[2].weight)
            nn.init.zeros_(self.fine[2].bias)

    def set_side(self, side: int) -> None:
        """Take pictures of another size from now on; the weights know of none."""
        self.side = side
        self.planes = planes(side)

    def forward(self, image: Tensor, shift: Tensor | None = None) -> Tensor:
        """``shift`` (n, 2, 1, 1) moves the planes in training, so that position tells less; without it n is 1."""
        places = self.planes if shift is None else self.planes + shift
        seen = torch.cat([(image - self.mean) / self.spread, places], 1)
        a = self.down1(seen)
        b = self.down2(a)
        c = self.down3(b)
        d = self.down4(c)
        e = self.down5(d)
        e = self.up5(e) + functional.relu(self.context(functional.adaptive_avg_pool2d(e, 1)))
        d = self.up4(torch.cat([twice(e), d], 1))
        c = self.up3(torch.cat([twice(d), c], 1))
        b = self.up2(torch.cat([twice(c), b], 1))
        features = self.up1[:2](torch.cat([twice(b), a], 1))
        said = twice(self.up1[2](features))
        if self.fine is not None:
            said = said + self.fine(torch.cat([twice(features), said, seen], 1))
        return said.reshape(-1, self.side, self.side)
