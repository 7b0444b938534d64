"""How the threads around the session share the processor."""

from __future__ import annotations

import os

import pytest

from watcher import cores


@pytest.mark.parametrize(("count", "pools"), [(1, (2, 2)), (2, (2, 2)), (8, (2, 2)), (64, (2, 2))])
def test_beside_a_runtime_that_takes_every_core_pools_stay_small(count: int, pools: tuple[int, int]) -> None:
    """On the processor two loaders and two finishers hide the waiting; more would only take cores from the network."""
    assert cores.pools(count, accelerated=False) == pools


@pytest.mark.parametrize(("count", "pools"), [(1, (2, 2)), (4, (2, 2)), (8, (2, 4)), (12, (3, 4)), (64, (3, 4))])
def test_beside_an_accelerator_pools_grow_and_stay_bounded(count: int, pools: tuple[int, int]) -> None:
    """The cores that the network leaves encode maps; never so many that large pictures fill the memory."""
    assert cores.pools(count, accelerated=True) == pools


def test_only_cores_that_may_be_used_are_counted() -> None:
    """There is at least one, and never one that this process may not run on."""
    assert 1 <= cores.usable() <= (os.cpu_count() or 1)
