"""What each choice of the recipe is worth: short runs that differ in one thing, on rendered and selected real pairs.

A short run on few scenes tells which choice learns faster, not where a long run ends. The test half is never looked at.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import torch

from training import materials
from training.evaluate import PLAIN, Guess, column, enlarged, look, shrunk
from training.losses import Weights
from training.measures import interval
from training.network import Starter
from training.shards import write_shard
from training.train import SIDE, Recipe, train
from training.truth import Pair

SHARDS = 8
BASE = Recipe(presentations=8_000, small_until=1.0, scenes=SHARDS * 250)
VARIANTS = {
    "as made, 96 px": BASE,
    "planes never shifted": replace(BASE, shift=0.0),
    "shape as heavy as at the end, from the start": replace(BASE, weights=Weights(late=1.0)),
    "no loss of order": replace(BASE, weights=Weights(order=0.0)),
    "rate doubled": replace(BASE, rate=2 * BASE.rate),
    "rate halved": replace(BASE, rate=BASE.rate / 2),
    "materials of any role": BASE,
    "shape and order alone, no values": replace(BASE, weights=Weights(late=1.0, values=0.0)),
    "128 px from the start": replace(BASE, small_until=0.0),
    "a second head at the full size": replace(BASE, fine=True),
}
OTHER_SCENES = {"materials of any role": "any-role"}  # variant -> folder of its scenes


def ablate(place: Path, real: list[Pair], made: list[Pair], pause: Path | None) -> str:
    """Train each variant from nothing with shards in ``place`` and measure it; a Markdown table. Resumable."""
    folder = place / "ablation"
    scenes = {"": place / "scenes", "any-role": folder / "any-role"}
    lines = [
        f"| {BASE.presentations} presentations of {BASE.scenes} scenes | rendered: ordinal | delta1 "
        "| edge F1 | selection: ordinal | delta1 | edge F1 | minutes |",
        "|---" * 8 + "|",
    ]
    for name, recipe in VARIANTS.items():
        shown = OTHER_SCENES.get(name, "")
        if shown:
            _any_role(scenes[shown], pause)
        checkpoint, began = folder / f"{name}.pt", time.process_time()
        train(scenes[shown], checkpoint, recipe, pause)
        spent = time.process_time() - began
        guess = of_checkpoint(checkpoint, SIDE if recipe.small_until < 1 else SIDE * 3 // 4, fine=recipe.fine)
        lines.append(_row(name, guess, real, made) + f" {spent / 60:.0f} |")
        print(lines[-1], flush=True)
    lines += [_row(name, guess, real, made) + " |" for name, guess in PLAIN.items()]
    return "\n".join(lines)


def of_checkpoint(checkpoint: Path, side: int, *, fine: bool = False) -> Guess:
    """The guess of the mean weights of a checkpoint at ``side``."""
    net = Starter(side, fine=fine)
    net.load_state_dict(torch.load(checkpoint, weights_only=True)["mean"])
    net.eval()

    def guess(pair: Pair) -> materials.Array:
        with torch.no_grad():
            said = net(torch.from_numpy(shrunk(pair, side)))[0].clamp(min=0)
        return enlarged(said.numpy(), pair)

    return guess


def _row(name: str, guess: Guess, real: list[Pair], made: list[Pair]) -> str:
    cells = []
    for pairs in (made, real):
        rows = look(pairs, {name: guess})[name]
        cells += [interval(column(rows, measure)) for measure in ("ordinal", "delta1", "edge F1")]
    return f"| {name} | {' | '.join(cells)} |"


def _any_role(folder: Path, pause: Path | None) -> None:
    """Scenes from the same seeds whose surfaces look as anything may look."""
    kept, materials.ANY_ROLE = materials.ANY_ROLE, 1.0
    try:
        for number in range(SHARDS):
            write_shard(folder, pause, number)
    finally:
        materials.ANY_ROLE = kept
