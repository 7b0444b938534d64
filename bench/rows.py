"""The rows of the table: what is measured, against what, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import living, networks, pictures, place

WARM = 3  # frames that are left out at the beginning of every run


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


def rate(moments: list[float]) -> float:
    """Frames a second once everything is warm."""
    return (len(moments) - 1 - WARM) / (moments[-1] - moments[WARM])


def starter() -> Path:
    return place.PROJECT / "models" / "starter.onnx"


def midas_sized() -> Path:
    path = place.cache() / "midas-sized.onnx"
    if not path.exists():
        networks.midas_sized(path)
    return path


def trivial() -> Path:
    path = place.cache() / "trivial.onnx"
    if not path.exists():
        networks.trivial(path)
    return path


def picture(kind: str) -> Path:
    path = pictures.made(place.cache(), kind)
    if path is None:
        raise RuntimeError(f"{kind} cannot be made here")
    return path


def ours(kind: str, frames: int, model: Path, run_ms: float = 0.0) -> float:
    with place.place() as where:
        config = where.lay_out(model)
        pictures.fill(where.inbox, picture(kind), frames)
        return rate(place.child(where, "path", config=config, run_ms=run_ms)["moments"])


def _loop(kind: str, frames: int, model: Path, mode: str = "loop") -> float:
    with place.place() as where:
        pictures.fill(where.inbox, picture(kind), frames)
        found = place.child(where, mode, inbox=where.inbox, outbox=where.outbox, model=model)
        return rate(found["moments"])


def _callback(kind: str, frames: int, model: Path) -> float:
    with place.place() as where:
        task = {"model": model, "picture": picture(kind), "count": frames, "folder": where.root / "watch"}
        return rate(place.child(where, "callback", **task)["moments"])


def _bare(model: Path, frames: int) -> float:
    with place.place() as where:
        return rate(place.child(where, "bare", model=model, frames=frames)["moments"])


def between(ours: Callable[[], float], baseline: Callable[[], float], rounds: int) -> list[float]:
    """One ratio a round, the baseline before and after, so that a machine that slows down slows both."""
    ratios, before = [], baseline()
    for _ in range(rounds):
        measured, after = ours(), baseline()
        ratios.append(measured / ((before + after) / 2))
        before = after
    return ratios


def simulated(rounds: int) -> list[float]:
    return [ours("1080p.jpg", 60, starter(), run_ms=40.0) / 25.0 for _ in range(rounds)]


def large_against_loop(rounds: int) -> list[float]:
    return between(lambda: ours("12mp.jpg", 24, starter()), lambda: _loop("12mp.jpg", 8, starter()), rounds)


def midas_against_loop(rounds: int) -> list[float]:
    return between(lambda: ours("1080p.jpg", 40, midas_sized()), lambda: _loop("1080p.jpg", 20, midas_sized()), rounds)


def midas_against_bare(rounds: int) -> list[float]:
    return between(lambda: ours("384.jpg", 50, midas_sized()), lambda: _bare(midas_sized(), 40), rounds)


def midas_against_seed(rounds: int) -> list[float]:
    return between(
        lambda: ours("1080p.jpg", 40, midas_sized()), lambda: _loop("1080p.jpg", 20, midas_sized(), "seed"), rounds
    )


def midas_against_callback(rounds: int) -> list[float]:
    return between(
        lambda: ours("1080p.jpg", 40, midas_sized()), lambda: _callback("1080p.jpg", 20, midas_sized()), rounds
    )


def around_the_network(rounds: int) -> list[float]:
    return between(lambda: ours("1080p.jpg", 40, trivial()), lambda: _loop("1080p.jpg", 20, trivial()), rounds)


def png_against_loop(rounds: int) -> list[float]:
    return between(lambda: ours("12mp.png", 16, starter()), lambda: _loop("12mp.png", 8, starter()), rounds)


def heic_stream(rounds: int) -> list[float]:
    """Seconds a frame; no baseline, because OpenCV reads no HEIC."""
    return [1 / ours("48mp.heic", 8, starter()) for _ in range(rounds)]


def _processor_ms(kind: str, rounds: int) -> list[float]:
    """Milliseconds of processor a frame, of all threads together: steadier than any rate on a busy machine."""
    found = []
    for _ in range(rounds):
        with place.place() as where:
            config = where.lay_out(trivial())
            pictures.fill(where.inbox, picture(kind), 60)
            cpu_s = place.child(where, "path", config=config)["cpu_at_s"]
            found.append(1000 * rate_of_use(cpu_s))
    return found


def rate_of_use(cpu_s: list[float]) -> float:
    """Seconds of processor a frame once everything is warm."""
    return (cpu_s[-1] - cpu_s[WARM]) / (len(cpu_s) - 1 - WARM)


def _peak(kind: str, frames: int, rounds: int) -> list[float]:
    values = []
    for _ in range(rounds):
        with place.place() as where:
            config = where.lay_out(starter())
            pictures.fill(where.inbox, picture(kind), frames)
            values.append(place.child(where, "path", config=config)["peak_mib"])
    return values


def peak_memory(rounds: int) -> list[float]:
    return _peak("12mp.jpg", 32, rounds)


def png_memory(rounds: int) -> list[float]:
    return _peak("12mp.png", 16, rounds)


def heic_memory(rounds: int) -> list[float]:
    return _peak("48mp.heic", 6, rounds)


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
    Row("12mp-loop", "12-megapixel JPEG, starter: frames/s against loop", "×", large_against_loop, 4, at_least=4.0),
    Row("12mp-png-loop", "12-megapixel PNG, starter: frames/s against loop", "×", png_against_loop, 2),
    Row("1080p-loop", "1080p JPEG, MiDaS-small-sized: frames/s against loop", "×", midas_against_loop, 7, at_least=1.8),
    Row("1080p-seed", "the same against seed (one HTTP request a frame)", "×", midas_against_seed, 3),
    Row("1080p-callback", "the same against rembg-style watch", "×", midas_against_callback, 3),
    Row("1080p-trivial", "1080p JPEG, trivial network: frames/s against loop", "×", around_the_network, 3),
    Row("48mp-heic", "48-megapixel HEIC, starter: seconds a frame", "s", heic_stream, 1),
    Row("cpu-384", "processor time a frame around the network (trivial network), 384 x 384 JPEG", "ms",
        lambda n: _processor_ms("384.jpg", n), 3),
    Row("cpu-1080p", "the same, 1080p JPEG", "ms", lambda n: _processor_ms("1080p.jpg", n), 3),
    Row("384-bare", "384 x 384 JPEG, MiDaS-small-sized: frames/s against bare", "×",
        midas_against_bare, 7, at_least=0.95),
    Row("drop", "renamed in → map visible, above its work alone: median", "ms", _drops, 200, at_most=30.0),
    Row("drop-p99", "the same, 99th percentile of each hundred", "ms", _drops_p99, 200, at_most=80.0),
    Row("copy", "end of a plain copy → map visible, above its work alone: median", "ms", _copies, 60, at_most=60.0),
    Row("start", "start → first map, starter", "s", living.first_map, 9, at_most=1.2),
    Row("help", "`--help`", "s", lambda n: living.answer(["--help"], n), 9, at_most=0.25),
    Row("status", "`status`", "s", lambda n: living.answer(["status"], n), 9, at_most=0.25),
    Row("config", "`config check`", "s", lambda n: living.answer(["config", "check"], n), 9, at_most=0.25),
    Row("idle-cpu", "idle: share of a core", "%", lambda _: living.idle()[0], 1, at_most=0.1),
    Row("idle-memory", "idle: memory", "MiB", lambda _: living.idle()[1], 1, at_most=150.0),
    Row("idle-wakes", "idle: wake-ups of all threads", "1/s", lambda _: living.idle()[2], 1, at_most=1.0),
    Row("crowd", "cost a frame beside 100 000 other files, against none", "×", living.crowd, 3, at_most=1.05),
    Row("peak", "peak memory, stream of 12-megapixel JPEGs", "MiB", peak_memory, 2, at_most=600.0),
    Row("peak-png", "peak memory, stream of 12-megapixel PNGs", "MiB", png_memory, 1, at_most=600.0),
    Row("peak-heic", "peak memory, stream of 48-megapixel HEICs", "MiB", heic_memory, 1),
)
# fmt: on
