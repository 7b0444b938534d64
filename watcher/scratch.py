"""Scratch: memory that a thread uses again from frame to frame instead of asking the system for it each time.

A map of twelve megapixels takes a hundred megabytes on its way. New memory has to be cleared page by page by the
system, which cost an eighth of the processor time around a 1080p picture (docs/performance.md). What is written into
scratch memory is gone with the thread's next frame, so only what ends as bytes of a file may be made in it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_KEPT_MOST_BYTES = 64 << 20  # a block; larger pictures are rare, and must not hold their memory for the others


class Scratch:
    """The blocks of one thread, by what they are for: a name is in use once at a time."""

    def __init__(self) -> None:
        self._blocks: dict[str, NDArray[np.uint8]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        size_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        block = self._blocks.get(name)
        if block is None or block.nbytes < size_bytes:
            block = np.empty(size_bytes, np.uint8)
            if size_bytes <= _KEPT_MOST_BYTES:
                self._blocks[name] = block
        return block[:size_bytes].view(dtype).reshape(shape)

    def drop(self) -> None:
        """From any thread: what is in use lives on until it is no longer."""
        self._blocks = {}


_mine = threading.local()


@contextmanager
def used(scratch: Scratch) -> Iterator[None]:
    """Inside, ``empty`` gives this thread the memory of ``scratch``."""
    _mine.scratch = scratch
    try:
        yield
    finally:
        _mine.scratch = None


def empty(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array with anything in it: new, or inside ``used`` what this thread last had under that name."""
    scratch: Scratch | None = getattr(_mine, "scratch", None)
    return np.empty(shape, dtype) if scratch is None else scratch.array(name, shape, dtype)
