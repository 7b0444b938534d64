"""Memory that is used again: by one thread, for one frame after the other, never for two things at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from watcher import depth, imagefile, scratch
from watcher.scratch import Scratch, used


def test_a_thread_gets_its_memory_back() -> None:
    """The same bytes under the same name, others under another, new ones outside."""
    mine = Scratch()
    with used(mine):
        first = scratch.empty("map", (4, 6), np.float32)
        again = scratch.empty("map", (3, 2), np.uint16)
        other = scratch.empty("other", (4, 6), np.float32)
    outside = scratch.empty("map", (4, 6), np.float32)
    assert (first.shape, first.dtype) == ((4, 6), np.dtype(np.float32))
    assert (again.shape, again.dtype) == ((3, 2), np.dtype(np.uint16))
    assert np.shares_memory(first, again)
    assert not np.shares_memory(first, other)
    assert not np.shares_memory(first, outside)
    assert first.flags.c_contiguous
    assert first.flags.writeable


def test_two_threads_share_nothing() -> None:
    """What one thread may use again is new to another, which has not said where its own is."""
    found: list[np.ndarray] = []
    with used(Scratch()):
        mine = scratch.empty("map", (4,), np.uint8)
        thread = threading.Thread(target=lambda: found.append(scratch.empty("map", (4,), np.uint8)))
        thread.start()
        thread.join(10)
    assert not np.shares_memory(mine, found[0])


def test_what_is_dropped_lives_until_it_is_not_needed() -> None:
    """Dropping is harmless to an array in use; the next one is new. The very large is never kept."""
    mine = Scratch()
    with used(mine):
        held = scratch.empty("map", (4,), np.uint8)
        held[:] = 7
        mine.drop()
        assert not np.shares_memory(held, scratch.empty("map", (4,), np.uint8))
        assert held.tolist() == [7, 7, 7, 7]
        huge = (scratch._KEPT_MOST_BYTES + 1,)
        assert not np.shares_memory(scratch.empty("huge", huge, np.uint8), scratch.empty("huge", huge, np.uint8))


@pytest.mark.parametrize("sizes", [((40, 60), (40, 60)), ((90, 70), (30, 20)), ((8, 12), (50, 90))])
def test_frames_in_used_memory_come_out_as_in_new(sizes: tuple[tuple[int, int], ...]) -> None:
    """Every kind of map, one frame after the other, byte for byte."""
    random, mine = np.random.default_rng(3), Scratch()
    for size in sizes:
        raw = random.random((16, 24), np.float32)
        fresh = {kind: depth.finish(raw, size, kind=kind) for kind in ("float32", "uint16", "uint8")}
        with used(mine):
            again = {kind: depth.finish(raw, size, kind=kind) for kind in ("float32", "uint16", "uint8")}
            files = [
                imagefile.encode(again["uint16"].values, "png16", {}),
                imagefile.encode(again["uint8"].values, "png8", {}),
            ]
        for kind, made in fresh.items():
            assert np.array_equal(made.values, again[kind].values)
        assert files[0] == imagefile.encode(fresh["uint16"].values, "png16", {})
        assert files[1] == imagefile.encode(fresh["uint8"].values, "png8", {})
