"""CoreML's options in the words of each runtime version, and temporary models that a kill left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from watcher.errors import SessionError
from watcher.session import dialect, leaks
from watcher.session.provider import COREML, CPU, CoreMLOptions, offers

WISHES = {
    "ModelFormat": "MLProgram",
    "MLComputeUnits": "CPUAndGPU",
    "RequireStaticInputShapes": "1",
    "EnableOnSubgraphs": "0",
}
FLAGS = "COREML_FLAG_USE_CPU_AND_GPU|COREML_FLAG_ONLY_ALLOW_STATIC_INPUT_SHAPES|COREML_FLAG_CREATE_MLPROGRAM"


@pytest.mark.parametrize(
    ("runtime", "words"),
    [("1.16.3", {}), ("1.19.2", {}), ("1.20.1", {"flags": FLAGS}), ("1.21.0", WISHES), ("1.32.0", WISHES)],
)
def test_each_version_in_its_own_words(runtime: str, words: dict[str, str]) -> None:
    """Named options since 1.21, a word of flags in 1.20, nothing before: and never a word it would refuse."""
    assert dialect.translate(WISHES, runtime) == words
    dialect.check(words, runtime)
    assert offers(COREML, CoreMLOptions(compute_units="CPUAndGPU"), runtime) == [(COREML, words), (CPU, {})]


@pytest.mark.parametrize(
    ("options", "runtime", "says"),
    [
        ({"MLComputeUnits": "all"}, "1.32.0", "ALL"),
        ({"ModelFormat": "mlprogram"}, "1.32.0", "MLProgram"),
        ({"RequireStaticInputShapes": "true"}, "1.32.0", "0, 1"),
        ({"RequireStaticInputShapes": 1}, "1.32.0", "only text"),
        ({"AllowFP16Compute": "1"}, "1.32.0", "no option AllowFP16Compute"),
        ({"coreml_flags": "1"}, "1.32.0", "no option coreml_flags"),
        ({"flags": "COREML_FLAG_CREATE_MLPROGRAM", "MLComputeUnits": "ALL"}, "1.32.0", "ignored"),
        ({"flags": "COREML_FLAG_ONLY_ENABLE_DEVICE_WITH_ANE"}, "1.20.0", "no flag"),
        ({"MLComputeUnits": "ALL"}, "1.20.0", "only the option flags"),
        ({"MLComputeUnits": "ALL"}, "1.16.3", "passes no option"),
    ],
)
def test_what_would_be_refused_or_dropped_is_said_before(options: dict[str, object], runtime: str, says: str) -> None:
    """The runtime's Python class would print a line and run on the CPU; we refuse in words."""
    with pytest.raises(SessionError, match=says):
        dialect.check(options, runtime)


def leave(place: Path, name: str, age_s: float) -> Path:
    path = place / name
    path.mkdir()
    (path / "weights").write_text("x")
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_only_our_own_stale_temporary_models_go(tmp_path: Path) -> None:
    """What appeared while a dead process of ours loaded goes; other programs' files, and new ones, stay."""
    place, notes = tmp_path / "tmp", tmp_path / "notes"
    place.mkdir()
    notes.mkdir()
    foreign = leave(place, "onnxruntime-foreign", 9e4)
    with leaks.noted(notes, place):
        ours = leave(place, "onnxruntime-ours", 9e4)
        fresh = leave(place, "onnxruntime-fresh", 0)
        other = leave(place, "something-else", 9e4)
    (note,) = notes.iterdir()
    note.rename(notes / f"temporary-{os.getppid()}.json")
    assert leaks.sweep(notes, place) == 0, "its process lives"
    (notes / f"temporary-{os.getppid()}.json").rename(notes / "temporary-999999999.json")
    assert leaks.sweep(notes, place) == 1
    assert [foreign.exists(), ours.exists(), fresh.exists(), other.exists()] == [True, False, True, True]
    os.utime(fresh, (0, 0))
    assert leaks.sweep(notes, place) == 1
    assert not list(notes.iterdir())


def test_a_note_cannot_point_outside(tmp_path: Path) -> None:
    """A damaged note removes nothing."""
    victim = tmp_path / "victim"
    victim.write_text("")
    notes = tmp_path / "notes"
    notes.mkdir()
    (tmp_path / "onnxruntime-x").mkdir()
    (notes / "temporary-999999999.json").write_text('["onnxruntime-x/../victim", "../victim", 7]')
    assert leaks.sweep(notes, tmp_path) == 0
    assert victim.exists()
