"""SIGKILL at random moments over hundreds of frames: nothing lost, nothing doubled, nothing half."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home, make_picture
from living import Life, files, maps_of
from PIL import Image
from waiting import until

from watcher import durable
from watcher.journal import Journal

_LIFE_S = (0.1, 1.2)  # from before the program has begun until it is well in the midst
_IN_THE_MIDST = 0.7  # of the kills come soon after the first sign of work in the outbox
_MIDST_S = 0.15


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    made = Life(home, tmp_path)
    made.settle({"output": {"sidecar": True}}, watch={"settle_s": 0.05, "rescan_s": 1})
    yield made
    made.bury()


def look_at_maps(life: Life) -> set[str]:
    """Every map that can be seen is whole."""
    names = {name for name in life.maps() if name.endswith(".png") and not Path(name).name.startswith(".")}
    for name in names:
        with Image.open(life.outbox / name) as image:
            image.load()
    return names


def await_work(life: Life, process: subprocess.Popen[str]) -> None:
    """Until something appears in the outbox, or there is nothing to do."""
    before = len(files(life.outbox))
    until(lambda: len(files(life.outbox)) != before or process.poll() is not None or not files(life.inbox), 30)


def kill_at_random(life: Life, times: int, waves: Iterator[list[str]], chance: random.Random) -> int:
    """Start and kill, again and again, with new files each time; returns how often there was something to kill."""
    killed = 0
    for _ in range(times):
        for name in next(waves, []):
            os.replace(life.place / "ready" / name, life.inbox / name)
        process = life.start()
        try:
            if chance.random() < _IN_THE_MIDST:
                await_work(life, process)
                process.wait(chance.uniform(0, _MIDST_S))
            else:
                process.wait(chance.uniform(*_LIFE_S))
        except subprocess.TimeoutExpired:
            killed += 1
            life.bury()
    return killed


def check(life: Life, names: list[str]) -> None:
    """After a last undisturbed start each source has its one map, and nothing else is anywhere."""
    with life.running():
        life.await_done(len(names), 300)
    assert look_at_maps(life) == set(maps_of(names))
    assert files(life.inbox) == []
    assert files(life.failed) == []
    assert files(life.processed) == sorted(names)
    everywhere = files(life.place)
    assert [name for name in everywhere if durable.is_temporary(Path(name).name)] == []
    journal = Journal(life.state / "journal.db")
    assert journal.counts().done == len(names)
    assert sorted(row.rel for row in journal.in_state("done")) == sorted(names)
    journal.close()


def make_ready(life: Life, count: int, chance: random.Random) -> list[str]:
    """Pictures of mixed sizes and kinds, beside the inbox."""
    sizes = [(48, 32), (160, 120), (640, 480), (1024, 768)]
    names = [
        f"{'sub/' if number % 5 == 0 else ''}{number:03}.{'jpg' if number % 3 else 'png'}" for number in range(count)
    ]
    for name in names:
        make_picture(life.place / "ready" / name, chance.choice(sizes), chance.choice(["gradient", "noise", "flat"]))
    return names


@pytest.mark.parametrize(
    ("frames", "kills"),
    [(60, 6), pytest.param(500, 200, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_random_kills(life: Life, frames: int, kills: int) -> None:
    """However often and whenever it is killed, in the end each frame was done once."""
    seed = int(os.environ.get("KILL_SEED", "2"))
    chance = random.Random(seed)
    names = make_ready(life, frames, chance)
    (life.inbox / "sub").mkdir()
    wave = -(-frames // kills)
    waves = (names[start : start + wave] for start in range(0, frames, wave))
    killed = kill_at_random(life, kills, waves, chance)
    done = len(look_at_maps(life))
    print(f"seed {seed}: {frames} frames, {killed} kills, {done} maps before the last start")
    check(life, names)
    assert killed == kills
