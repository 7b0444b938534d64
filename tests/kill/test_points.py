"""Killed before and after every step on disk and every statement to the journal: nothing lost, doubled or half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Home

_POINTS = Path(__file__).with_name("points.py")
_SAMPLE = "12"  # of each kind, in the normal run


def kills(home: Home, place: Path, kind: str, how_many: str) -> list[dict[str, Any]]:
    """One record a killed run, after the checks of ``points.py``."""
    done = subprocess.run(
        [sys.executable, str(_POINTS), str(place), kind, how_many],
        env={**home.env, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, *records = map(json.loads, done.stdout.splitlines())
    assert found["points"] > 200, "the harness no longer finds the steps of the program"
    for needed in ("exclusive rename", "os.fsync", "os.replace", "COMMIT", "INSERT INTO frames"):
        assert any(needed in label for label in found["labels"]), f"{needed} is no longer seen"
    problems = [record for record in records if record["problems"]]
    killed = sum(record["killed"] for record in records)
    print(f"{kind}: {found['points']} points, {killed} of {len(records)} runs killed, {len(problems)} violations")
    assert problems == []
    assert killed > len(records) * 0.8  # threads take fewer steps in some lives than in the counted one
    return records


@pytest.mark.parametrize("kind", ["move", "across"])
def test_sampled_points(home: Home, tmp_path: Path, kind: str) -> None:
    """A few points, spread over the whole life of the program."""
    kills(home, tmp_path, kind, os.environ.get("KILL_POINTS_SAMPLE", _SAMPLE))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["move", "across", "delete", "keep"])
def test_points(home: Home, tmp_path: Path, kind: str) -> None:
    """All points (``KILL_POINTS``: how many of them)."""
    kills(home, tmp_path, kind, os.environ.get("KILL_POINTS", "all"))


def test_the_checks_can_fail(tmp_path: Path) -> None:
    """The checks see a lost source, a doubled map, a half map, a hidden file and a wrong count."""
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(_POINTS.parent)!r})
import points
place = Path(sys.argv[1])
def lay():
    points.lay_out(place / "work", "move", place / "store")
    assert points.run(place / "work", "move") == 1
    return place / "work"
for name, size in points.GOOD.items():
    points.make_picture(place / "store" / name, size)
(place / "store" / points.BAD).write_text("no picture")
work = lay()
assert list(points.wrong_at_last(work, "move")) == [], list(points.wrong_at_last(work, "move"))
assert list(points.wrong_after_kill(work)) == []
(work / "processed" / "good.png").unlink()
assert list(points.wrong_at_last(work, "move"))
(work / "out" / "good_depth.png").unlink()
assert "good.png is lost" in list(points.wrong_after_kill(work))
work = lay()
points.shutil.copy(work / "out" / "good_depth.png", work / "out" / "again.png")
assert list(points.wrong_after_kill(work)) and list(points.wrong_at_last(work, "move"))
(work / "out" / "again.png").write_bytes((work / "out" / "good_depth.png").read_bytes()[:60])
assert "half" in list(points.wrong_after_kill(work))[0]
work = lay()
(work / "out" / ".x.tmp-1-1").write_bytes(b"")
assert list(points.wrong_at_last(work, "move"))
work = lay()
journal = points.Journal(work / "state" / "journal.db")
journal._db.execute("UPDATE totals SET value = 5")
journal.close()
assert list(points.wrong_at_last(work, "move"))
print("seen")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("seen\n"), done.stderr
