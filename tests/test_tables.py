"""The measured tables of the documents: made again, they say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import corpus as corpus_tables
from bench import flicker, pages, refine, round_trip
from training.truth import halves, read_pair

pytestmark = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")


def test_the_round_trips_are_as_told() -> None:
    """Sixteen bits come back to within half a step, float exactly, and the nearest is white or black as asked."""
    told = pages.between(pages.DOCS / "outputs.md", "round_trip").splitlines()
    found = round_trip.table().splitlines()
    lossy = [number for number, line in enumerate(found) if line.startswith("| `jpg`")]
    assert [line for at, line in enumerate(found) if at not in lossy] == [
        line for at, line in enumerate(told) if at not in lossy
    ]
    assert "WRONG" not in "".join(found)


def test_the_corpus_is_read_as_told(corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Every valid file is right, and what becomes of each broken one is what docs/formats.md says."""
    told = pages.between(pages.DOCS / "formats.md", "corpus")
    assert corpus_tables.valid() in told
    assert corpus_tables.broken() in told
    capfd.readouterr()  # the other readers' complaints


def test_refining_does_what_is_told(corpus: Path) -> None:
    """With the measured depth made small, the rows of docs/outputs.md come out again."""
    lines = pages.between(pages.DOCS / "outputs.md", "refine").splitlines()
    told = {
        cells[2].strip(): float(cells[3]) for line in lines if (cells := line.split("|"))[1:2] == [" measured depth "]
    }
    side = int(next(line for line in lines if line.startswith("Raw maps of")).split()[3])
    pairs = [read_pair(corpus / "depth" / name, whole=True) for name in halves()["selection"]]
    for name, way in refine.WAYS.items():
        errors = [refine.scores(way(refine.averaged(pair, (side, side)), pair.picture), pair)[0] for pair in pairs]
        assert float(np.mean(errors)) == pytest.approx(told[name], abs=2e-3)


def test_a_shot_keeps_to_a_quarter(corpus: Path) -> None:
    """Where only the range moves, a shot's keeps the patch to a quarter of what its frames' own do: in raw maps made
    up, and in the measured depth of real rooms.
    """
    for maps in (list(flicker.synthetic(40)), list(flicker.measured_rooms(40))):
        deviation = {mode: flicker.measured(maps, mode, flicker.PATCH)[0] for mode in ("frame", "shot")}
        assert deviation["frame"] > 0.01
        assert deviation["shot"] <= deviation["frame"] / 4
