"""Endurance: a backlog of any length, and many thousand frames in one life.

``python -m bench.endurance backlog 100000`` and ``python -m bench.endurance soak 20000`` print what they found. Linux.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from bench import networks, place

_SAMPLES = 40
_WARM = 0.2  # of the frames; before that caches fill


def _picture(where: place.Place) -> Path:
    """64 x 48 pixels: so small that what is measured is everything but the picture."""
    path = where.root / "small.jpg"
    Image.linear_gradient("L").resize((64, 48)).save(path)
    return path


def _fill(inbox: Path, picture: Path, first: int, count: int) -> None:
    data = picture.read_bytes()
    for number in range(first, first + count):
        (inbox / f"frame-{number:06}.jpg").write_bytes(data)


def _held(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Resident KiB, open descriptors and threads, from proc(5)."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in text.splitlines())
    return {
        "kib": float(lines["VmRSS"].split()[0]),
        "threads": float(lines["Threads"]),
        "descriptors": float(len(os.listdir(f"/proc/{process.pid}/fd"))),
    }


def _done(where: place.Place) -> int:
    return int(place.status(where).get("counts", {}).get("done", 0))


def _laid_out(where: place.Place, **watch: Any) -> None:
    model = where.root / "trivial.onnx"
    networks.trivial(model)
    where.lay_out(model, watch={"rescan_s": 30, **watch})


def _start(where: place.Place) -> subprocess.Popen[bytes]:
    words = [*place.command(), "run", "--config", str(where.config)]
    return subprocess.Popen(words, env=where.env(), stderr=subprocess.DEVNULL)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


def backlog(count: int, frames: int = 5000) -> dict[str, float]:
    """``count`` pictures wait at the start: seconds to the first map, and memory until ``frames`` are done."""
    with place.place() as where:
        _laid_out(where)
        _fill(where.inbox, _picture(where), 0, count)
        began = time.perf_counter()
        process = _start(where)
        first = where.outbox / "frame-000000_depth.png"
        place.until(first.exists, 120, "no first map", 0.005)
        first_s = time.perf_counter() - began
        most, wanted = 0.0, min(frames, count)
        while _done(where) < wanted:
            most = max(most, _held(process)["kib"])
            time.sleep(0.5)
        rate = wanted / (time.perf_counter() - began)
        journal = (where.state / "journal.db").stat().st_size
        _stop(process)
        return {"first_map_s": first_s, "most_mib": most / 1024, "rate": rate, "journal_mib": journal / 2**20}


def soak(count: int) -> dict[str, float]:
    """``count`` pictures, at most a thousand waiting at any time: what is held, along the way."""
    found: list[tuple[int, dict[str, float]]] = []
    with place.place() as where:
        _laid_out(where)
        picture = _picture(where)
        process = _start(where)
        dropped = 0
        while (done := _done(where)) < count:
            while dropped < min(count, done + 1000):
                _fill(where.inbox, picture, dropped, 100)
                dropped += 100
            if done >= count * len(found) / _SAMPLES and done:
                found.append((done, _held(process)))
            time.sleep(0.2)
        found.append((done, _held(process)))
        journal = (where.state / "journal.db").stat().st_size
        _stop(process)
    warm = [(done, held) for done, held in found if done > count * _WARM]
    return {
        "slope_kib_a_frame": _slope([(done, held["kib"]) for done, held in warm]),
        "first_mib": warm[0][1]["kib"] / 1024,
        "last_mib": warm[-1][1]["kib"] / 1024,
        "most_threads": max(held["threads"] for _, held in warm),
        "fewest_threads": min(held["threads"] for _, held in warm),
        "most_descriptors": max(held["descriptors"] for _, held in warm),
        "fewest_descriptors": min(held["descriptors"] for _, held in warm),
        "journal_mib": journal / 2**20,
    }


def _slope(points: list[tuple[int, float]]) -> float:
    """Of the straight line with the least squares."""
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / sum((x - middle_x) ** 2 for x, _ in points)


def main() -> int:
    kinds: dict[str, Callable[[int], dict[str, float]]] = {"backlog": backlog, "soak": soak}
    if len(sys.argv) != 3 or sys.argv[1] not in kinds or not sys.argv[2].isdigit():
        print("usage: python -m bench.endurance backlog|soak COUNT", file=sys.stderr)
        return 2
    for name, value in kinds[sys.argv[1]](int(sys.argv[2])).items():
        print(f"{name:20} {value:10.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
