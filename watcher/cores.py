"""Cores: how many there are to work with, and how the threads around the session share them."""

from __future__ import annotations

import ctypes
import os
import sys

_LEAST, _MOST_LOADERS, _MOST_FINISHERS = 2, 3, 4  # each thread may hold a large picture, so there are never many


def usable() -> int:
    """Cores that this process may run on; on a Mac with two kinds of them only the fast ones."""
    if sys.platform == "darwin":
        return _darwin_fast() or os.cpu_count() or 1
    else:
        return len(os.sched_getaffinity(0))


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
