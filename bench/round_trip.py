"""Round trips: every format is written, read by somebody else's reader, undone and held against the raw depth.

``python -m bench.round_trip`` writes the table of docs/outputs.md; ``tests/test_tables.py`` makes it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import others, pages
from watcher import depth
from watcher.config import Output as OutputSettings
from watcher.frame import Frame, Identity, Raw, Source
from watcher.rendering import render

HEAD = "format | read by | holds | error, `near: white` | error, `near: black` | nearest is | facts inside"
SIZE = (375, 501)
_FULL = {"uint8": 255, "uint16": 65535}


def a_raw() -> Raw:
    """Raw depth (48, 64), 180 to 1900, smooth with a step; its map has 501 x 375 pixels."""
    y, x = np.mgrid[0:48, 0:64].astype(np.float32)
    values = 900 + 600 * np.sin(x / 9) * np.cos(y / 7)
    values[24:, 20:] += 350
    source = Source(Path("/in"), "a.jpg", "a.jpg", Identity(1, 1))
    return Raw(Frame(1, source, 0, "a_depth"), values.astype(np.float32), *SIZE, {"source": "a.jpg"})


def written(fmt: str, near: str) -> bytes:
    name, _, half = fmt.partition(" ")
    wishes: dict[str, Any] = {"format": name, "near": near, "exr_type": half or "float"}
    settings = OutputSettings(**wishes)
    return render(a_raw(), settings, {"model": "none"})[0].data


def one(fmt: str) -> str:
    """The row of a format."""
    true = depth.finish(a_raw().depth, SIZE, kind="float32")
    span = true.raw_min, true.raw_max
    errors: list[str] = []
    ends: list[bool] = []
    values: NDArray[Any] = np.empty(0)
    for near in ("white", "black"):
        values = others.values(written(fmt, near), fmt)
        back = depth.undone(values, span, near)
        errors.append(_told(float(np.abs(back - true.values).max()), span, values.dtype))
        order = np.argsort(true.values.ravel())
        ends.append(bool(values.ravel()[order[-1]] > values.ravel()[order[0]]))
    said = others.facts(written(fmt, "white"), fmt)
    right = ends == [True, False] and (not said or (said["near"] == "white" and said["source"] == "a.jpg"))
    name = f"one channel `{others.channel(written(fmt, 'white'))}`, " if fmt.startswith("exr") else ""
    polarity = "white / black" if right and values.dtype.kind == "u" else "larger / smaller" if right else "WRONG"
    return " | ".join(
        [
            f"`{fmt}`",
            others.READERS[fmt],
            f"{name}{values.dtype}",
            *errors,
            polarity,
            f"{len(said)}" if said else "none",
        ]
    )


def _told(error: float, span: tuple[float, float], dtype: np.dtype[Any]) -> str:
    """The largest error, in steps of an integer format or in shares of the range."""
    share = error / (span[1] - span[0])
    if dtype.name in _FULL:
        return f"{share * _FULL[dtype.name]:.2f} of 1/{_FULL[dtype.name]}"
    return "0" if error == 0 else f"{share:.0e} of the range"


def table() -> str:
    return pages.rows(HEAD, [one(fmt) for fmt in others.READERS])


def main() -> None:
    text = table()
    print(text)
    pages.put(pages.DOCS / "outputs.md", "round_trip", text)


if __name__ == "__main__":
    main()
