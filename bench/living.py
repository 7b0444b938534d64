"""A daemon that lives: how soon it answers, how soon it starts, what it costs while nothing happens."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from pathlib import Path

from bench import pictures, place, streams

IDLE_S = 30.0
IDLE_AFTER = 10  # pictures of 12 megapixels
CROWD = 100_000
CROWD_AHEAD = 20  # pictures that wait at any time
CROWD_WINDOW_S = 36.0  # long enough for one look through the whole inbox


@functools.cache
def after_drop(times: int, *, whole_copy: bool) -> tuple[list[float], list[float]]:
    """(each latency above the work alone, in ms; the 99th percentile of each half) of an idle daemon, 1080p JPEG.

    The clock begins when the file has its name (drop) or when the copy has been closed.
    """
    picture = streams.picture("1080p.jpg")
    with place.place() as where:
        before = _alone_ms(where, picture)
        where.lay_out(streams.starter())
        took = []
        with place.daemon(where):
            for number in range(times + 3):
                took.append(_one_drop(where, picture, number, whole_copy=whole_copy))
                time.sleep(0.15)  # idle again: this is about the first picture of a day
        alone = (before + _alone_ms(where, picture)) / 2
    above = [value - alone for value in took[3:]]
    halves = above[: len(above) // 2], above[len(above) // 2 :]
    return above, [sorted(half)[int(0.99 * (len(half) - 1))] for half in halves if half]


def _alone_ms(where: place.Place, picture: Path) -> float:
    """Decode, run and encode of the same picture, measured alone."""
    config = where.lay_out(streams.starter())
    stages = place.child(where, "stages", config=config, picture=picture, times=20)["stages"]
    shutil.rmtree(where.outbox)
    return float(sum(stages[name] for name in ("decode", "run", "encode")))


def _one_drop(where: place.Place, picture: Path, number: int, *, whole_copy: bool) -> float:
    target = where.inbox / f"drop-{number:04}.jpg"
    made = where.outbox / f"drop-{number:04}_depth.png"
    if whole_copy:
        shutil.copyfile(picture, target)
        began = time.perf_counter()
    else:
        beside = where.root / "beside.jpg"
        shutil.copyfile(picture, beside)
        began = time.perf_counter()
        os.rename(beside, target)
    place.until(made.exists, 20, f"no map of {target.name}", 0.0005)
    return (time.perf_counter() - began) * 1000


def first_map(times: int) -> list[float]:
    """Seconds from the start of the process to the first map, of a picture that waits in the inbox."""
    picture = streams.picture("1080p.jpg")
    took = []
    for _ in range(times + 1):  # the first warms the disk's cache
        with place.place() as where:
            where.lay_out(streams.starter())
            pictures.fill(where.inbox, picture, 1)
            began = time.perf_counter()
            process = subprocess.Popen(
                [*place.command(), "run", "--config", str(where.config)], env=where.env(), stderr=subprocess.DEVNULL
            )
            made = where.outbox / "shot-00000_depth.png"
            place.until(made.exists, 60, "no first map", 0.001)
            took.append(time.perf_counter() - began)
            process.terminate()
            process.wait(20)
    return took[1:]


def answer(arguments: list[str], times: int) -> list[float]:
    """Seconds that a verb takes which only looks."""
    with place.place() as where:
        config = [] if arguments == ["--help"] else ["--config", str(where.lay_out(streams.starter()))]
        took = []
        for _ in range(times + 1):
            began = time.perf_counter()
            subprocess.run([*place.command(), *arguments, *config], env=where.env(), check=True, capture_output=True)
            took.append(time.perf_counter() - began)
    return took[1:]


@functools.cache
def idle(rounds: int) -> tuple[list[float], list[float], list[float]]:
    """(percent of a core, resident MiB, wake-ups a second), each round of a daemon that has worked and now rests."""
    found = [_idle() for _ in range(rounds)]
    return [cpu for cpu, _, _ in found], [mib for _, mib, _ in found], [wakes for _, _, wakes in found]


def _idle() -> tuple[float, float, float]:
    picture = streams.picture("12mp.jpg")
    with place.place() as where:
        where.lay_out(streams.starter())
        with place.daemon(where) as process:
            for number in range(IDLE_AFTER):
                _one_drop(where, picture, number, whole_copy=False)
            time.sleep(2.0)
            before, began = _used(process.pid), time.perf_counter()
            time.sleep(IDLE_S)
            after, passed_s = _used(process.pid), time.perf_counter() - began
    cpu_s, wakes = after["cpu_s"] - before["cpu_s"], after["wakes"] - before["wakes"]
    return 100 * cpu_s / passed_s, after["mib"], wakes / passed_s


def _used(pid: int) -> dict[str, float]:
    """From proc(5): the scheduler's own nanoseconds, times that a thread went to sleep, resident memory."""
    used = {"cpu_s": 0.0, "wakes": 0.0, "mib": 0.0}
    for task in Path(f"/proc/{pid}/task").iterdir():
        used["cpu_s"] += int((task / "schedstat").read_text().split()[0]) / 1e9
        used["wakes"] += _number(task / "status", "voluntary_ctxt_switches")
    used["mib"] = _number(Path(f"/proc/{pid}/status"), "VmRSS") / 1024
    return used


def _number(file: Path, name: str) -> float:
    line = next(line for line in file.read_text().splitlines() if line.startswith(name + ":"))
    return float(line.split()[1])


def crowd(rounds: int) -> list[float]:
    """Processor time a frame beside a hundred thousand other files, against the same in an empty folder."""
    return [crowd_cost(CROWD, number) / crowd_cost(0, number) for number in range(rounds)]


@functools.cache
def crowd_cost(others: int, _round: int) -> float:
    """Milliseconds of processor a frame in a stream that never ends, the looks through the inbox included."""
    picture = streams.picture("384.jpg")
    with place.place() as where:
        where.lay_out(streams.starter())
        for number in range(others):
            (where.inbox / f"note-{number:06}.txt").touch()
        with place.daemon(where) as process:
            place.until(lambda: _quiet(process.pid), 120, "the daemon never came to rest", 0.5)
            before, began = _used(process.pid)["cpu_s"], time.perf_counter()
            dropped = 0
            while time.perf_counter() - began < CROWD_WINDOW_S:
                done = len(os.listdir(where.outbox)) if where.outbox.exists() else 0
                for _ in range(max(0, done + CROWD_AHEAD - dropped)):
                    beside = where.root / "beside.jpg"
                    shutil.copy(picture, beside)
                    os.rename(beside, where.inbox / f"drop-{dropped:05}.jpg")
                    dropped += 1
                time.sleep(0.1)
            place.until(lambda: len(os.listdir(where.outbox)) >= dropped, 60, "not all maps were made")
            return (_used(process.pid)["cpu_s"] - before) * 1000 / dropped


def _quiet(pid: int) -> bool:
    before = _used(pid)["cpu_s"]
    time.sleep(1.0)
    return _used(pid)["cpu_s"] - before < 0.02
