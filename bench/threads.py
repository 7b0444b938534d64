"""Threads: what each takes of the processor for a frame, beside a real network, and how that adds up to a rate.

``python -m bench.threads`` prints it and writes it into docs/performance.md. Linux only: the system says there, to the
nanosecond, how long each thread ran. Everything in a line is measured in turn: the baselines, ours, the baselines.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from statistics import mean, median

from bench import pages, pictures, place, streams
from watcher import cores

PICTURES = {"384 x 384": "384.jpg", "1080p": "1080p.jpg"}
FRAMES, BASELINE_FRAMES, ROUNDS = 72, 24, 3
KINDS = ("loader", "engine", "finisher", "intake", "main")


def by_thread() -> dict[str, float]:
    """Seconds that each kind of thread of this process has run (``loader-0`` is a loader).

    Threads that Python does not know are the runtime's: OpenCV has none here.
    """
    names = {str(thread.native_id): thread.name for thread in threading.enumerate()}
    found: dict[str, float] = {}
    for task in Path("/proc/self/task").iterdir():
        kind = re.sub(r"-\d+$", "", names.get(task.name, "network"))
        kind = kind if kind in (*KINDS, "network") else "main"
        found[kind] = found.get(kind, 0.0) + int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


def ours(kind: str) -> dict[str, float]:
    """Milliseconds of processor a frame of each kind of thread, and under ``frame`` what passed for it."""
    last = FRAMES - streams.ON_THE_PATH
    with place.place() as where:
        config = where.lay_out(streams.midas_sized())
        pictures.fill(where.inbox, streams.picture(kind), FRAMES)
        found = place.child(where, "path", config=config, looks=[streams.WARM + 1, last])
    before, after = found["threads_s"]
    costs = {name: 1000 * (after[name] - before.get(name, 0.0)) / (last - streams.WARM - 1) for name in after}
    return {**costs, "frame": 1000 / streams.rate(found["moments"][:last])}


def baselines(kind: str) -> dict[str, float]:
    """Milliseconds a frame of the two that ours is compared with."""
    model = streams.midas_sized()
    return {
        "bare": 1000 / streams.bare(model, BASELINE_FRAMES),
        "loop": 1000 / streams.loop(kind, BASELINE_FRAMES, model),
    }


def measured(kind: str) -> dict[str, float]:
    """The medians of some rounds."""
    rounds, before = [], baselines(kind)
    for _ in range(ROUNDS):
        found, after = ours(kind), baselines(kind)
        rounds.append({**found, **{name: mean((before[name], after[name])) for name in after}})
        before = after
    return {name: median(one.get(name, 0.0) for one in rounds) for name in rounds[-1]}


def line(name: str, found: dict[str, float]) -> str:
    beside = [found.get(kind, 0.0) for kind in KINDS]
    whole, given = found["network"] + sum(beside), found["frame"] * cores.usable()
    costs = f"{found['network']:.1f} | {' | '.join(f'{ms:.1f}' for ms in beside)} | {whole:.1f} | {given:.1f}"
    times = f"{found['frame']:.1f} | {found['bare']:.1f} | {found['loop']:.1f}"
    return f"{name} | {costs} | {times} | {found['bare'] / found['frame']:.2f} | {found['loop'] / found['frame']:.2f}"


def main() -> None:
    head = "picture | network | loaders | engine | finishers | intake | main | together | what the cores give | "
    head += "ms a frame | bare | loop | against bare | against loop"
    text = pages.rows(head, [line(name, measured(kind)) for name, kind in PICTURES.items()])
    text += (
        f"\n\nMilliseconds a frame, of the processor up to `what the cores give`, then as they pass; {cores.usable()} "
    )
    text += f"cores, the medians of {ROUNDS} rounds, MiDaS-small-sized network."
    print(text)
    pages.put(pages.DOCS / "performance.md", "threads", text)


if __name__ == "__main__":
    main()
