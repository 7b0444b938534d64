"""The rows of the table: what is measured, against what, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from bench import living, pictures, place
from bench.streams import (
    bare,
    between,
    callback,
    loop,
    midas_sized,
    ours,
    ours_watching,
    picture,
    processor_ms,
    starter,
    trivial,
)


@dataclass(frozen=True)
class Row:
    """``measure`` returns one value a round; ``at_least`` or ``at_most`` is the goal for their median."""

    name: str
    what: str
    unit: str
    measure: Callable[[int], list[float]]
    rounds: int = 3
    at_least: float | None = None
    at_most: float | None = None

    @property
    def goal(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}" if self.at_most is not None else "–"

    def met(self, value: float) -> bool | None:
        if self.at_least is not None:
            return value >= self.at_least
        return value <= self.at_most if self.at_most is not None else None


@dataclass
class Found:
    row: Row
    values: list[float] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def mark(self) -> str:
        met = self.row.met(self.middle)
        return "" if met is None else "pass" if met else "**short**"


def simulated(rounds: int) -> list[float]:
    return [ours("1080p.jpg", 72, starter(), run_ms=40.0) / 25.0 for _ in range(rounds)]


def large_against_loop(rounds: int) -> list[float]:
    return between(lambda: ours("12mp.jpg", 40, starter()), lambda: loop("12mp.jpg", 8, starter()), rounds)


def large_midas_against_loop(rounds: int) -> list[float]:
    return between(lambda: ours("12mp.jpg", 40, midas_sized()), lambda: loop("12mp.jpg", 8, midas_sized()), rounds)


def png_against_loop(rounds: int) -> list[float]:
    return between(lambda: ours("12mp.png", 28, starter()), lambda: loop("12mp.png", 8, starter()), rounds)


def midas_against_loop(rounds: int) -> list[float]:
    return between(lambda: ours("1080p.jpg", 60, midas_sized()), lambda: loop("1080p.jpg", 20, midas_sized()), rounds)


def midas_against_seed(rounds: int) -> list[float]:
    baseline = lambda: loop("1080p.jpg", 20, midas_sized(), "seed")  # noqa: E731
    return between(lambda: ours("1080p.jpg", 60, midas_sized()), baseline, rounds)


def midas_against_callback(rounds: int) -> list[float]:
    baseline = lambda: callback("1080p.jpg", 20, midas_sized())  # noqa: E731
    return between(lambda: ours_watching("1080p.jpg", 60, midas_sized()), baseline, rounds)


def around_the_network(rounds: int) -> list[float]:
    return between(lambda: ours("1080p.jpg", 72, trivial()), lambda: loop("1080p.jpg", 20, trivial()), rounds)


def midas_against_bare(lanes: int, rounds: int) -> list[float]:
    baseline = lambda: bare(midas_sized(), 40, lanes)  # noqa: E731
    return between(lambda: ours("384.jpg", 70, midas_sized()), baseline, rounds)


def heic_stream(rounds: int) -> list[float]:
    """Seconds a frame; no baseline, because OpenCV reads no HEIC."""
    return [1 / ours("48mp.heic", 20, starter()) for _ in range(rounds)]


def _peak(kind: str, frames: int, rounds: int) -> list[float]:
    values = []
    for _ in range(rounds):
        with place.place() as where:
            config = where.lay_out(starter())
            pictures.fill(where.inbox, picture(kind), frames)
            values.append(place.child(where, "path", config=config)["peak_mib"])
    return values


def _drops(rounds: int) -> list[float]:
    return living.after_drop(rounds, whole_copy=False)[0]


def _drops_p99(rounds: int) -> list[float]:
    return living.after_drop(rounds, whole_copy=False)[1]


def _copies(rounds: int) -> list[float]:
    return living.after_drop(rounds, whole_copy=True)[0]


# fmt: off
ROWS = (
    Row("simulated", "simulated accelerator of 40 ms, 1080p JPEG: share of its 25 frames/s", "×",
        simulated, 3, at_least=0.97),
    Row("12mp-loop", "12-megapixel JPEG, starter: frames/s against loop", "×", large_against_loop, 3, at_least=4.0),
    Row("12mp-midas-loop", "12-megapixel JPEG, MiDaS-small-sized: frames/s against loop", "×",
        large_midas_against_loop, 3),
    Row("12mp-png-loop", "12-megapixel PNG, starter: frames/s against loop", "×", png_against_loop, 2),
    Row("1080p-loop", "1080p JPEG, MiDaS-small-sized: frames/s against loop", "×", midas_against_loop, 7, at_least=1.8),
    Row("1080p-seed", "the same against seed (one HTTP request a frame)", "×", midas_against_seed, 2),
    Row("1080p-callback", "the same, watching, against rembg-style watch", "×", midas_against_callback, 2),
    Row("1080p-trivial", "1080p JPEG, trivial network: frames/s against loop", "×", around_the_network, 3),
    Row("48mp-heic", "48-megapixel HEIC, starter: seconds a frame", "s", heic_stream, 1),
    Row("cpu-384", "processor time a frame around the network (trivial network), 384 x 384 JPEG", "ms",
        lambda n: [processor_ms("384.jpg", 72) for _ in range(n)], 3),
    Row("cpu-1080p", "the same, 1080p JPEG", "ms", lambda n: [processor_ms("1080p.jpg", 72) for _ in range(n)], 3),
    Row("cpu-progressive", "the same, progressive 1080p JPEG", "ms",
        lambda n: [processor_ms("1080p-progressive.jpg", 72) for _ in range(n)], 3),
    Row("384-bare", "384 x 384 JPEG, MiDaS-small-sized: frames/s against bare", "×",
        lambda n: midas_against_bare(1, n), 7, at_least=0.95),
    Row("384-bare-two", "the same against bare with two runs at once", "×", lambda n: midas_against_bare(2, n), 3),
    Row("drop", "renamed in → map visible, above decode, run and encode alone: median", "ms", _drops, 200,
        at_most=30.0),
    Row("drop-p99", "the same, 99th percentile of each hundred", "ms", _drops_p99, 200, at_most=80.0),
    Row("copy", "end of a plain copy → map visible, above the same: median", "ms", _copies, 60, at_most=60.0),
    Row("start", "start → first map, starter", "s", living.first_map, 9, at_most=1.2),
    Row("help", "`--help`", "s", lambda n: living.answer(["--help"], n), 9, at_most=0.25),
    Row("status", "`status`", "s", lambda n: living.answer(["status"], n), 9, at_most=0.25),
    Row("config", "`config check`", "s", lambda n: living.answer(["config", "check"], n), 9, at_most=0.25),
    Row("idle-cpu", "idle, starter: share of a core", "%", lambda n: living.idle(n)[0], 2, at_most=0.1),
    Row("idle-memory", "idle after ten 12-megapixel JPEGs, starter: memory", "MiB", lambda n: living.idle(n)[1], 2,
        at_most=150.0),
    Row("idle-wakes", "idle: wake-ups of all threads", "1/s", lambda n: living.idle(n)[2], 2, at_most=1.0),
    Row("crowd", "processor time a frame beside 100 000 other files, against none", "×", living.crowd, 2, at_most=1.05),
    Row("peak", "peak memory, stream of 12-megapixel JPEGs", "MiB", lambda n: _peak("12mp.jpg", 32, n), 2,
        at_most=600.0),
    Row("peak-png", "peak memory, stream of 12-megapixel PNGs", "MiB", lambda n: _peak("12mp.png", 16, n), 2,
        at_most=600.0),
    Row("peak-heic", "peak memory, stream of 48-megapixel HEICs", "MiB", lambda n: _peak("48mp.heic", 6, n), 1),
)
# fmt: on
