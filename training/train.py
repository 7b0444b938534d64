"""The training: a fixed number of presentations, a checkpoint every minute, and from it the same way on."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from training.losses import WEIGHTS, Weights, loss
from training.network import Starter
from training.shards import presentation, read_shards, wait_while

BATCH, RATE, SIDE, SHIFT = 16, 1.5e-3, 128, 0.35
SMALL_UNTIL = 0.6  # of the presentations are shown at three quarters of the side: half the time a picture
KEEP_S = 60.0  # seconds between checkpoints


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is settled before a training starts; the defaults are what the shipped network is made with.

    ``rate`` the highest learning rate; ``shift`` the spread of the shifts of the planes (1 = half a picture);
    ``small_until`` the share of presentations at three quarters of the side; ``weights`` of the losses (losses.py);
    ``scenes`` at most so many, 0 for all; ``begin`` with the mean weights of that checkpoint; ``fine``: with a second
    head at the full size.
    """

    presentations: int = 300_000
    seed: int = 0
    rate: float = RATE
    shift: float = SHIFT
    small_until: float = SMALL_UNTIL
    weights: Weights = WEIGHTS
    scenes: int = 0
    begin: Path | None = None
    fine: bool = False


def rate(recipe: Recipe, progress: float, step: int) -> float:
    """Learning rate: up over 200 steps, then down along a cosine to a fiftieth."""
    return recipe.rate * min(1.0, (step + 1) / 200) * (0.02 + 0.98 * (1 + math.cos(math.pi * progress)) / 2)


def side_at(recipe: Recipe, progress: float) -> int:
    """Side of what is shown: small first, then the shipped size; always a multiple of 32."""
    return SIDE * 3 // 4 // 32 * 32 if progress < recipe.small_until else SIDE


def batch(
    recipe: Recipe, step: int, scenes: tuple[np.ndarray, np.ndarray], side: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures, truths and shifts of the planes for one step; the same step always draws the same."""
    rng = np.random.default_rng([recipe.seed, step])
    pictures, truths = scenes
    chosen = rng.integers(len(pictures), size=BATCH)
    shown = [presentation(rng, pictures[i], truths[i], side) for i in chosen]
    shift = rng.normal(0, recipe.shift, (BATCH, 2, 1, 1)) * (rng.random((BATCH, 1, 1, 1)) < 0.5)
    images, depths = (np.stack(part) for part in zip(*shown, strict=True))
    faster = torch.from_numpy(images).to(memory_format=torch.channels_last)
    return faster, torch.from_numpy(depths), torch.from_numpy(shift.astype(np.float32))


def averaged(mean: dict[str, torch.Tensor], now: dict[str, torch.Tensor], step: int) -> None:
    """Let the running mean of the weights follow ``now``; what is exported is this mean."""
    keep = min(0.998, (step + 1) / (step + 20))
    for name, value in now.items():
        if value.dtype.is_floating_point:
            mean[name].lerp_(value, 1 - keep)
        else:
            mean[name].copy_(value)


def save(path: Path, what: dict[str, Any]) -> None:
    """Write a checkpoint whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save(what, part)
    os.replace(part, path)


def train(scenes: Path, checkpoint: Path, recipe: Recipe, pause: Path | None = None) -> None:
    """Train on the shards in ``scenes`` up to the presentations of ``recipe``, from ``checkpoint`` on if it exists."""
    torch.manual_seed(recipe.seed)
    torch.set_num_threads(1)  # beside other work two threads wait for each other: 3 to 10 pictures a second against 34
    pictures, truths = read_shards(scenes)
    shown = (pictures[: recipe.scenes or None], truths[: recipe.scenes or None])
    net = Starter(SIDE, fine=recipe.fine)
    if recipe.begin is not None:
        begun = torch.load(recipe.begin, weights_only=True)["mean"]
        net.load_state_dict(begun, strict=not recipe.fine)  # a second head has nothing to begin with
    net = net.train().to(memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(net.parameters(), lr=recipe.rate, weight_decay=0.02, betas=(0.9, 0.98))
    mean, step = {name: value.clone() for name, value in net.state_dict().items()}, 0
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        net.load_state_dict(kept["net"])
        optimiser.load_state_dict(kept["optimiser"])
        mean, step = kept["mean"], kept["step"]
    saved, recent = time.monotonic(), []
    while step * BATCH < recipe.presentations:
        wait_while(pause)
        progress = step * BATCH / recipe.presentations
        for group in optimiser.param_groups:
            group["lr"] = rate(recipe, progress, step)
        if net.side != (side := side_at(recipe, progress)):
            net.set_side(side)
        images, depths, shift = batch(recipe, step, shown, side)
        wrong = loss(net(images, shift), depths, progress, recipe.weights)
        optimiser.zero_grad(set_to_none=True)
        wrong.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        if torch.isfinite(norm):
            optimiser.step()
        step += 1
        averaged(mean, net.state_dict(), step)
        recent.append(float(wrong.detach()))
        last = step * BATCH >= recipe.presentations
        if last or time.monotonic() - saved > KEEP_S:
            saved = time.monotonic()
            state = {"net": net.state_dict(), "mean": mean, "optimiser": optimiser.state_dict(), "step": step}
            save(checkpoint, state)
            shown_yet = f"{step * BATCH} of {recipe.presentations} presentations"
            print(f"step {step}, {shown_yet}, loss {np.mean(recent[-100:]):.3f}", flush=True)
