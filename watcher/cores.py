"""Cores: how many there are to work with, and how the threads around the session share them."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_LEAST, _MOST_LOADERS, _MOST_FINISHERS = 2, 3, 4  # each thread may hold a large picture, so there are never many

_MAC: bool = sys.platform == "darwin"


def usable() -> int:
    """Cores that this process may run on; on a Mac with two kinds of them only the fast ones."""
    if _MAC:
        return _darwin_fast() or os.cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def physical() -> int:
    """``usable`` without those that share a core with another: as many threads as the runtime would take by itself."""
    if not hasattr(os, "sched_getaffinity"):
        return usable()
    places = Path("/sys/devices/system/cpu")
    try:
        shared = {
            (places / f"cpu{number}" / "topology" / "thread_siblings_list").read_text(encoding="ascii")
            for number in os.sched_getaffinity(0)
        }
    except OSError:
        return usable()
    return len(shared)


def _darwin_fast() -> int:
    """``hw.perflevel0.physicalcpu``: the performance cores; 0 where the system does not say."""
    count, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    library = ctypes.CDLL(None)
    refused = library.sysctlbyname(
        b"hw.perflevel0.physicalcpu", ctypes.byref(count), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return 0 if refused else count.value


def pools(cores: int, *, accelerated: bool) -> tuple[int, int]:
    """(loaders, finishers) beside the session.

    ``accelerated``: the network runs elsewhere, so half of the cores finish maps, which cost most, and a quarter loads.
    Otherwise the runtime has a thread on every core already, and two of each are enough to hide the waiting.
    """
    if not accelerated:
        return _LEAST, _LEAST
    return max(_LEAST, min(_MOST_LOADERS, cores // 4)), max(_LEAST, min(_MOST_FINISHERS, cores // 2))
