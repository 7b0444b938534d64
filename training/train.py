"""The training: a fixed number of presentations, a checkpoint every minute, and from it the same way on."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from training.losses import loss
from training.network import Starter
from training.shards import presentation, read_shards, wait_while

BATCH, RATE, SIDE, SHIFT = 16, 1.5e-3, 128, 0.35
SMALL_UNTIL = 0.6  # of the presentations are shown at three quarters of the side: half the time a picture
KEEP_S = 60.0  # seconds between checkpoints


def rate(progress: float, step: int) -> float:
    """Learning rate: up over 200 steps, then down along a cosine to a fiftieth."""
    return RATE * min(1.0, (step + 1) / 200) * (0.02 + 0.98 * (1 + math.cos(math.pi * progress)) / 2)


def side_at(progress: float) -> int:
    """Side of what is shown: small first, then the shipped size; always a multiple of 32."""
    return SIDE * 3 // 4 // 32 * 32 if progress < SMALL_UNTIL else SIDE


def batch(
    seed: int, step: int, scenes: tuple[np.ndarray, np.ndarray], side: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures, truths and shifts of the planes for one step; the same step always draws the same."""
    rng = np.random.default_rng([seed, step])
    pictures, truths = scenes
    chosen = rng.integers(len(pictures), size=BATCH)
    shown = [presentation(rng, pictures[i], truths[i], side) for i in chosen]
    shift = rng.normal(0, SHIFT, (BATCH, 2, 1, 1)) * (rng.random((BATCH, 1, 1, 1)) < 0.5)
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
    part = path.with_suffix(".part")
    torch.save(what, part)
    os.replace(part, path)


def train(scenes: Path, checkpoint: Path, presentations: int, pause: Path | None = None, seed: int = 0) -> None:
    """Train on the shards in ``scenes`` up to ``presentations``, from ``checkpoint`` on if it exists."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # beside other work two threads wait for each other: 3 to 10 pictures a second against 34
    shown = read_shards(scenes)
    net = Starter(SIDE).train().to(memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=0.02, betas=(0.9, 0.98))
    mean, step = {name: value.clone() for name, value in net.state_dict().items()}, 0
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        net.load_state_dict(kept["net"])
        optimiser.load_state_dict(kept["optimiser"])
        mean, step = kept["mean"], kept["step"]
    saved, recent = time.monotonic(), []
    while step * BATCH < presentations:
        wait_while(pause)
        progress = step * BATCH / presentations
        for group in optimiser.param_groups:
            group["lr"] = rate(progress, step)
        if net.side != (side := side_at(progress)):
            net.set_side(side)
        images, depths, shift = batch(seed, step, shown, side)
        wrong = loss(net(images, shift), depths, progress)
        optimiser.zero_grad(set_to_none=True)
        wrong.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        if torch.isfinite(norm):
            optimiser.step()
        step += 1
        averaged(mean, net.state_dict(), step)
        recent.append(float(wrong.detach()))
        last = step * BATCH >= presentations
        if last or time.monotonic() - saved > KEEP_S:
            saved = time.monotonic()
            state = {"net": net.state_dict(), "mean": mean, "optimiser": optimiser.state_dict(), "step": step}
            save(checkpoint, state)
            print(
                f"step {step}, {step * BATCH} of {presentations} presentations, loss {np.mean(recent[-100:]):.3f}",
                flush=True,
            )
