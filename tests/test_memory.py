"""Memory that grows: the daemon ends by itself before the system ends it, and whoever is to blame is found."""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home, make_picture
from living import Life, files, maps_of
from PIL import Image, PngImagePlugin

from watcher import memory
from watcher.daemon.limits import MemoryGuard, Nap
from watcher.errors import ExitCode

GOOD = [f"{number}.png" for number in range(8)]
LIMIT_MB = 400
FEW_MB, MANY_MB = 300, 600


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    made = Life(home, tmp_path)
    made.settle(limits={"max_memory_mb": LIMIT_MB, "max_attempts": 2})
    for name in GOOD:
        make_picture(made.inbox / name, kind="gray")
    yield made
    made.bury()


def ends(life: Life, most: int = 8) -> list[int]:
    """Start `run` again and again until it has nothing left to do; how each life ended, the last one by our signal."""
    codes: list[int] = []
    while len(codes) < most:
        process = life.start()
        while process.poll() is None:
            told = life.told()
            counts = told.counts
            over = counts.done + counts.failed >= len(GOOD) and not counts.waiting + counts.in_flight
            if over and (told.pid, told.state) == (process.pid, "running"):
                codes.append(life.stop())
                if codes[-1] != ExitCode.TRY_LATER:
                    return codes
                break  # it had just decided to end by itself: its last frame took too much
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        else:
            codes.append(process.returncode)
    raise AssertionError(f"it never came to rest: {codes}\n{life.log()}")


def test_a_leak(life: Life) -> None:
    """A network that leaks a little with each frame costs restarts, and no frame."""
    life.fake = {"FAKE_LEAK": "150"}
    codes = ends(life)
    assert set(codes[:-1]) == {ExitCode.TRY_LATER}
    assert codes[-1] == 0
    assert life.maps() == maps_of(GOOD)
    assert files(life.failed) == []


@pytest.mark.slow
def test_a_picture_that_takes_all_memory(life: Life) -> None:
    """A decoder that allocates without end is stopped; its picture is tried again, alone, then quarantined."""
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", "poison")
    Image.new("RGB", (32, 24), (255, 0, 0)).save(life.inbox / "poison.png", pnginfo=note)
    life.fake = {"FAKE_DECODER": "grow"}
    codes = ends(life)
    assert codes == [ExitCode.TRY_LATER, ExitCode.TRY_LATER, 0]
    assert life.maps() == maps_of(GOOD)
    reason = json.loads((life.failed / "poison.png.error.json").read_bytes())
    assert "memory" in reason["what"]


def test_the_guard_is_patient() -> None:
    """One large picture may need much for a moment; only what stays is too much. 0 means half of the machine's."""
    guard = MemoryGuard(500, 0)
    for _ in range(3):
        assert [guard.look(MANY_MB * 1_000_000) for _ in range(5)] == [""] * 5
        assert guard.look(FEW_MB * 1_000_000) == ""
    found = [guard.look(MANY_MB * 1_000_000) for _ in range(6)]
    assert found[:5] == [""] * 5
    assert "600 MB" in found[5]
    assert "500 MB" in found[5]
    half = MemoryGuard(0, 1_000_000_000)
    assert all(half.look(499_000_000) == "" for _ in range(20))
    assert any(half.look(501_000_000) for _ in range(6))
    assert not any(MemoryGuard(0, 0).look(10**15) for _ in range(20))


def test_what_the_system_says() -> None:
    """This process is in memory, and the machine has more than that."""
    assert 10_000_000 < memory.resident_bytes() < memory.physical_bytes()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another allocator than glibc's")
def test_what_was_freed_goes_back_to_the_system() -> None:
    """Memory between pieces that are still in use is kept by the allocator until it is told to give it back."""
    pieces = [bytes([number % 256]) * 100_000 for number in range(1000)]
    kept = pieces[::50]
    del pieces
    before = memory.resident_bytes()
    memory.give_back()
    assert before - memory.resident_bytes() > 50_000_000
    assert [piece[0] for piece in kept] == [number % 256 for number in range(0, 1000, 50)]


@pytest.mark.parametrize(
    ("now_s", "wall_s", "slept"),
    [
        (110.0, 1010.0, False),
        (110.0, 1012.0, False),
        (110.0, 1016.0, True),
        (110.0, 29_810.0, True),
        (110.0, 990.0, True),
    ],
)
def test_a_sleep_is_noticed(now_s: float, wall_s: float, slept: bool) -> None:
    """The wall clock runs on while the machine sleeps; that is told once, whatever the time is then."""
    nap = Nap(100.0, 1000.0)
    assert nap.over(now_s, wall_s) is slept
    assert nap.over(now_s + 1, wall_s + 1) is False
