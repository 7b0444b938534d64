"""Streams of one kind of picture, through the path of a frame and through what it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean

from bench import networks, pictures, place

WARM = 3  # maps that are left out at the beginning of every stream
# Maps that are left out at the end of ours: no more frames than this are on the path at once, so that up to there every
# stage has work. Work that was done for later frames before the first map is then made up for by work for these.
ON_THE_PATH = 12


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


def rate(moments: list[float]) -> float:
    """Maps a second once everything is warm."""
    return (len(moments) - 1 - WARM) / (moments[-1] - moments[WARM])


def flowing(moments: list[float]) -> list[float]:
    """The maps of one of our streams that were made while every stage had work."""
    return moments[:-ON_THE_PATH]


def ours(kind: str, frames: int, model: Path, run_ms: float = 0.0) -> float:
    """Maps a second of the program on an inbox of ``frames`` pictures."""
    with place.place() as where:
        config = where.lay_out(model)
        pictures.fill(where.inbox, picture(kind), frames)
        return rate(flowing(place.child(where, "path", config=config, run_ms=run_ms)["moments"]))


def ours_watching(kind: str, frames: int, model: Path) -> float:
    """The same of a daemon that watches, with pictures that are written into its inbox one after the other."""
    with place.place() as where:
        task = {"config": where.lay_out(model), "picture": picture(kind), "count": frames}
        return rate(flowing(place.child(where, "watching", **task)["moments"]))


def loop(kind: str, frames: int, model: Path, mode: str = "loop") -> float:
    with place.place() as where:
        pictures.fill(where.inbox, picture(kind), frames)
        found = place.child(where, mode, inbox=where.inbox, outbox=where.outbox, model=model)
        return rate(found["moments"])


def callback(kind: str, frames: int, model: Path) -> float:
    with place.place() as where:
        task = {"model": model, "picture": picture(kind), "count": frames, "folder": where.root / "watch"}
        return rate(place.child(where, "callback", **task)["moments"])


def bare(model: Path, frames: int, lanes: int = 1) -> float:
    with place.place() as where:
        return rate(place.child(where, "bare", model=model, frames=frames, lanes=lanes)["moments"])


def processor_ms(kind: str, frames: int) -> float:
    """Milliseconds of processor a frame with the trivial network, of all threads together, while all stages work."""
    with place.place() as where:
        config = where.lay_out(trivial())
        pictures.fill(where.inbox, picture(kind), frames)
        cpu_s = flowing(place.child(where, "path", config=config)["cpu_at_s"])
        return 1000 / rate(cpu_s)


def between(ours: Callable[[], float], baseline: Callable[[], float], rounds: int) -> list[float]:
    """One ratio a round, the baseline before and after, so that a machine that slows down slows both."""
    ratios, before = [], baseline()
    for _ in range(rounds):
        measured, after = ours(), baseline()
        ratios.append(measured / mean((before, after)))
        before = after
    return ratios
