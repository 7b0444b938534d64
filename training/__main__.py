"""``python -m training``: render, train, export, evaluate. Each step can be called alone and resumed."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from training.truth import Pair, halves, read_pair, rendered

PLACE = Path("build/training")
CORPUS = Path(__file__).parents[1] / "../shared/corpus/depth"
SHIPPED = Path(__file__).parents[1] / "models" / "starter.onnx"
STEPS = ("render", "train", "export", "evaluate")
ASKED = ("ablate", "sheet", "check", "ship", "pictures")  # only when asked for by name


def main() -> None:
    """Read the command line and do the steps that were asked for, or all."""
    asked = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    asked.add_argument(
        "steps",
        nargs="*",
        help=f"some of {', '.join(STEPS + ASKED)}; default: the first {len(STEPS)}",
        default=list(STEPS),
    )
    asked.add_argument("--place", type=Path, default=PLACE, help="folder of what is made")
    asked.add_argument("--shards", type=int, default=100, help="rendered shards of 250 scenes")
    asked.add_argument("--presentations", type=int, default=300_000, help="pictures shown to the network")
    asked.add_argument(
        "--begin",
        type=Path,
        help="weights a new training begins with (a training that is under way goes on from its own checkpoint)",
    )
    asked.add_argument("--rate", type=float, help="highest learning rate")
    asked.add_argument("--processes", type=int, default=2, help="that render at once")
    asked.add_argument("--pause-file", type=Path, help="render and train only while this file is absent")
    asked.add_argument(
        "--half", choices=("selection", "test"), default="selection", help="look at test once, at the end"
    )
    asked.add_argument("--both-ways", action="store_true", help="export the network together with its mirror image")
    said = asked.parse_args()
    if unknown := set(said.steps) - set(STEPS + ASKED):
        asked.error(f"unknown step {', '.join(sorted(unknown))}: the steps are {', '.join(STEPS + ASKED)}")
    scenes, checkpoint, file = said.place / "scenes", said.place / "checkpoint.pt", said.place / "starter.onnx"
    if "render" in said.steps:
        from training.shards import write_shards

        write_shards(scenes, said.shards, said.processes, said.pause_file)
    if "train" in said.steps:
        from training.losses import SHAPE, WEIGHTS
        from training.train import Recipe, train

        weights = WEIGHTS if said.begin is None else SHAPE  # what has learnt before knows the values
        recipe = Recipe(said.presentations, begin=said.begin, weights=weights)
        train(scenes, checkpoint, replace(recipe, rate=said.rate) if said.rate else recipe, said.pause_file)
    if "export" in said.steps:
        from training.export import export

        export(checkpoint, file, said.both_ways)
    networks = {"shipped": SHIPPED} | ({"trained": file} if file.exists() else {})
    if "evaluate" in said.steps:
        from training.evaluate import report

        made = {"rendered, held out": rendered(scenes), "rendered, learnt from": rendered(scenes, held_out=False)}
        print(report(said.half, _real(said.half), made, networks))
    if "ablate" in said.steps:
        from training.ablate import ablate

        print(ablate(said.place, _real("selection"), rendered(scenes), said.pause_file))
    if "sheet" in said.steps:
        from training.sheet import sheet

        shown = sheet(said.place / "photos", networks, said.place / "sheet.png")
        print(f"{shown} photographs in {said.place / 'sheet.png'}")
    _deliver(said.steps, networks)


def _deliver(steps: list[str], networks: dict[str, Path]) -> None:
    """The steps from an exported network to the one that is embedded."""
    if "check" in steps:
        from training.ship import report

        print("\n\n".join(report(path) for path in networks.values()))
    if "ship" in steps:
        from training.ship import ship

        if "trained" not in networks:
            raise SystemExit("there is no exported network: python -m training export")
        print(ship(networks["trained"], SHIPPED.parent))
    if "pictures" in steps:
        from training.pictures import draw

        print("\n".join(f"drawn: {path}" for path in draw()))


def _real(half: str) -> list[Pair]:
    """The real pairs of a half; none where the corpus is not beside the project."""
    return [read_pair(CORPUS / name) for name in halves()[half]] if CORPUS.is_dir() else []


if __name__ == "__main__":
    main()
