"""What is measured means what it says, and what is shown and counted by eye is what the lists name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import cv2
import numpy as np
import pytest

from training import seen, sheet
from training.evaluate import PLAIN, column, family_table, gate, look, whole_table
from training.measures import edges, interval, measures
from training.photos import LIST, photos
from training.shards import HELD_OUT, read_shard, read_shards, write_shard
from training.truth import Pair, rendered

STARTER = Path(__file__).parents[1] / "models" / "starter.onnx"


def _pair(inverse: np.ndarray, family: str = "made") -> Pair:
    known = np.ones(inverse.shape, dtype=np.bool_)
    return Pair(family, np.zeros((*inverse.shape, 3), np.uint8), inverse.astype(np.float32), known, True, family)


def _box() -> np.ndarray:
    """A box before a wall, twice as near."""
    inverse = np.full((80, 100), 0.5, dtype=np.float32)
    inverse[30:60, 40:80] = 1
    return inverse


def test_edges_of_the_truth_are_right() -> None:
    """The truth has all its edges and no error at them; a flat map has none of them; a blurred one lies between."""
    right = edges(_box(), _pair(_box()))
    assert right["edge F1"] == 1
    assert right["edge error"] == 0
    soft = edges(np.asarray(cv2.GaussianBlur(_box(), (0, 0), 6)), _pair(_box()))
    flat = edges(np.full_like(_box(), 0.7), _pair(_box()))
    assert flat["edge F1"] == 0
    assert 0.05 < soft["edge F1"] < 0.95
    assert 0.02 < soft["edge error"] < flat["edge error"]


def test_an_edge_the_wrong_way_is_none() -> None:
    """A step in the wrong direction counts as no step, and as one too many."""
    assert edges(np.asarray(1.5 - _box()), _pair(_box()))["edge F1"] == 0


def test_edges_need_a_truth_that_has_some() -> None:
    """Where the truth is smooth, nothing is said of edges."""
    found = measures(_box(), _pair(np.tile(np.linspace(1, 1.5, 100, dtype=np.float32), (80, 1))))
    assert np.isnan(found["edge F1"])
    assert np.isnan(found["edge error"])


@pytest.mark.parametrize(
    ("values", "said"), [([], "-"), ([1.0, np.nan], "1.000"), ([1.0] * 4, "1.000 (1.000 .. 1.000)")]
)
def test_interval(values: list[float], said: str) -> None:
    """An interval is given where there are pictures enough for one."""
    assert interval(np.array(values, dtype=np.float32)) == said


def test_tables_name_every_family_and_the_difference_to_the_ramp() -> None:
    """Each family has its row; a network has a row of its difference to the ramp, which is not that of the ramp."""
    pairs = [_pair(_box(), "box"), _pair(_box(), "box"), _pair(_box()[::-1].copy(), "turned")]
    found = look(pairs, {"true": lambda pair: pair.inverse} | PLAIN)
    whole, families = whole_table("made", pairs, found), family_table(pairs, found)
    assert "| true less ramp |" in whole
    assert "| ramp less ramp |" not in whole
    assert "3 of 3 |" in whole
    assert [line.split("|")[1].strip() for line in families.splitlines()[2:]] == ["box", "turned"]


def test_gate_says_by_how_much_it_is_missed() -> None:
    """The truth itself passes, but for what nobody has looked at; its opposite misses, by what is said."""
    pairs = [_pair(_box()), _pair(_box()[::-1].copy())]
    found = look(pairs, {"true": lambda pair: pair.inverse, "false": lambda pair: -pair.inverse} | PLAIN)
    passed = gate(found["true"], found["ramp"], float("nan"))
    assert passed.count("| reached |") == 4 + 1  # the head of the table says it too
    assert "| subjects lifted off | 0.7 | nan | not known |" in passed
    failed = gate(found["false"], found["ramp"], 0.6)
    assert "| ordinal | 0.82 | 0.000 | missed by 0.820 |" in failed
    assert "| subjects lifted off | 0.7 | 0.600 | missed by 0.100 |" in failed
    worst = float((0 - column(found["ramp"], "ordinal")).min())
    assert f"| worst to the ramp | -0.1 | {worst:.3f} | missed by {-0.1 - worst:.3f} |" in failed


def test_held_out_scenes_are_never_learnt_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured on is in no shard to learn from, and what is learnt from is in none that is measured."""
    monkeypatch.setattr("training.shards.SCENES", 2)
    for number in (0, HELD_OUT):
        write_shard(tmp_path, None, number)
    kept = read_shard(tmp_path, HELD_OUT)[0]
    shown = read_shards(tmp_path)[0]
    assert len(kept) == len(shown) == 2
    assert not np.array_equal(kept, shown)
    pairs = rendered(tmp_path)
    assert np.array_equal(pairs[0].picture, kept[0])
    assert np.array_equal(rendered(tmp_path, held_out=False)[0].picture, shown[0])
    assert all(pair.metric and pair.known.any() and pair.inverse[pair.known].min() > 0 for pair in pairs)


def test_nothing_held_out_nothing_measured(tmp_path: Path) -> None:
    """Where no scenes were rendered there are no rendered pairs, and no error."""
    assert rendered(tmp_path) == []


def test_photographs_are_enough_and_each_has_a_licence() -> None:
    """At least 20 photographs, 10 of them of people and pets, each with a known source and licence, none twice."""
    said = tomllib.loads(LIST.read_text(encoding="utf-8"))
    shown = photos()
    assert len(shown) >= 20
    assert len([photo for photo in shown if photo.subject]) >= 10
    assert {photo.source for photo in shown} <= set(said["sources"])
    assert {photo.licence for photo in shown} <= set(said["licences"])
    assert len({(photo.source, photo.file) for photo in shown}) == len(shown)


def test_every_subject_was_judged() -> None:
    """A network that was looked at was looked at for every subject on the list, and for nothing else."""
    subjects = sorted(photo.file for photo in photos() if photo.subject)
    for one in tomllib.loads(seen.LOOKED.read_text(encoding="utf-8"))["looked"]:
        assert sorted(one["lifted"] + one["not_lifted"]) == subjects


def test_the_shipped_network_was_looked_at(tmp_path: Path) -> None:
    """The network that is shipped has been looked at; one that nobody knows has not."""
    assert "subjects lifted off by eye" in seen.seen(STARTER)
    (tmp_path / "other.onnx").write_bytes(b"other")
    assert seen.seen(tmp_path / "other.onnx") == "nobody has looked at its contact sheet"


def test_sheet_shows_what_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Photographs of this project are shown with their maps; what cannot be fetched is named and left out."""
    examples = Path(__file__).parents[1] / "examples" / "inbox"
    monkeypatch.setattr(sheet, "fetched", lambda place: {"examples": examples})
    shown = sheet.sheet(tmp_path, {"shipped": STARTER}, tmp_path / "sheet.png")
    assert shown == sum(photo.source == "examples" for photo in photos())
    assert "cannot be had here: chelsea.png of skimage" in capsys.readouterr().out
    picture = cv2.imread(str(tmp_path / "sheet.png"))
    assert picture is not None
    assert picture.shape == (sheet.TILE, 2 * sheet.CELLS * sheet.TILE, 3)
