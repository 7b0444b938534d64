"""Cut, flip and splice real pictures, many thousand times, and count what the decoder says.

    python tests/fuzz/mutate.py FOLDER [FOLDER …] [--rounds N] [--seed S]

Every file of the folders is first decoded as it is, then mutated N times. A wrong exception, a picture that breaks its
contract, or a dead process is a finding; so is a cut file that is returned as a picture of full size. Prints counts for
each outcome, the peak of memory and the longest time for one input.
"""

from __future__ import annotations

import argparse
import collections
import random
import resource
import sys
import warnings
from pathlib import Path

import numpy as np

from watcher import imagefile
from watcher.clock import now_s
from watcher.errors import FrameError

MOST_PIXELS = 30_000_000
MOST_BYTES = 2_000_000


def mutated(data: bytes, dice: random.Random) -> tuple[str, bytes]:
    """One mutation and its name."""
    kind = dice.choice(("cut", "flip", "splice", "zero", "swap"))
    if len(data) < 16:
        return "flip", bytes(byte ^ 1 << dice.randrange(8) for byte in data)
    if kind == "cut":
        return kind, data[: dice.randrange(len(data))]
    array = bytearray(data)
    if kind == "flip":
        for _ in range(dice.choice((1, 1, 2, 8, 64))):
            array[dice.randrange(len(array))] ^= 1 << dice.randrange(8)
    elif kind == "zero":
        start = dice.randrange(len(array))
        array[start : start + dice.randrange(1, 4096)] = bytes(min(dice.randrange(1, 4096), len(array) - start))
    else:
        start, other = dice.randrange(len(array)), dice.randrange(len(array))
        length = dice.randrange(1, 512)
        piece = array[other : other + length]
        if kind == "splice":
            array[start:start] = piece
        else:
            array[start : start + len(piece)] = piece
    return kind, bytes(array)


def outcome(data: bytes) -> str:
    """What the decoder says: the error's class, or ``picture``; anything else is a ``FINDING``."""
    try:
        picture = imagefile.decode(data, max_pixels=MOST_PIXELS)
    except FrameError as error:
        return type(error).__name__
    except BaseException as error:
        return f"FINDING {type(error).__name__}: {error}"[:160]
    sound = picture.pixels.shape == (picture.height_px, picture.width_px, 3) and bool(
        np.isfinite(picture.pixels).all() if picture.pixels.dtype == np.float32 else True
    )
    return "picture" if sound else "FINDING picture that breaks its contract"


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folders", nargs="+", type=Path)
    arguments.add_argument("--rounds", type=int, default=40)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    warnings.simplefilter("error")
    dice = random.Random(chosen.seed)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    longest = (0.0, "")
    for file in sorted(path for folder in chosen.folders for path in folder.iterdir() if path.is_file()):
        data = file.read_bytes()
        if len(data) > MOST_BYTES:
            continue
        for round_ in range(chosen.rounds + 1):
            kind, tried = mutated(data, dice) if round_ else ("as it is", data)
            began = now_s()
            said = outcome(tried)
            longest = max(longest, (now_s() - began, f"{file.name} ({kind})"))
            counts[kind, said] += 1
            if said.startswith("FINDING"):
                print(f"{file.name} {kind} round {round_}: {said}", flush=True)
    for (kind, said), count in sorted(counts.items()):
        print(f"{count:7d}  {kind:9} {said}")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    print(f"{sum(counts.values())} inputs, peak memory {peak_mb:.0f} MB, longest {longest[0]:.2f} s for {longest[1]}")
    return any(said.startswith("FINDING") for _, said in counts)


if __name__ == "__main__":
    sys.exit(main())
