"""Threads: what each takes of the processor for a frame, and which rate that leaves at best beside the network.

``python -m bench.threads`` prints it and writes it into docs/performance.md. Linux only: the system says there, to the
nanosecond, how long each thread ran.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

from bench import pages, pictures, place, rows
from watcher import cores

PICTURES = {"384 x 384": "384.jpg", "1080p": "1080p.jpg"}
FRAMES, NETWORK_FRAMES = 240, 50
KINDS = ("loader", "engine", "finisher", "intake")


def by_thread() -> dict[str, float]:
    """Seconds that each thread of this process has run, by the name of its kind (``loader-0`` is a loader)."""
    names = {str(thread.native_id): thread.name for thread in threading.enumerate()}
    found: dict[str, float] = {}
    for task in Path("/proc/self/task").iterdir():
        kind = re.sub(r"-\d+$", "", names.get(task.name, "others"))
        kind = kind if kind in KINDS else "others"
        found[kind] = found.get(kind, 0.0) + int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


def around(kind: str) -> dict[str, float]:
    """Milliseconds of processor a frame of each kind of thread, with a network that costs nothing."""
    with place.place() as where:
        config = where.lay_out(rows.trivial())
        pictures.fill(where.inbox, rows.picture(kind), FRAMES)
        first, last = place.child(where, "path", config=config, looks=[rows.WARM + 1, FRAMES])["threads_s"]
    return {kind: 1000 * (last[kind] - first.get(kind, 0.0)) / (FRAMES - rows.WARM - 1) for kind in last}


def alone(threads: int) -> tuple[float, float]:
    """(wall, processor) milliseconds of one run of the MiDaS-small-sized network in a loop; ``threads`` 0: all."""
    with place.place() as where:
        found = place.child(where, "bare", model=rows.midas_sized(), frames=NETWORK_FRAMES, threads=threads)
    wall_s, cpu_s = found["moments"], found["cpu_at_s"]
    return 1000 / rows.rate(wall_s), 1000 * rows.rate_of_use(cpu_s)


def line(name: str, kind: str) -> str:
    """The most that is left beside the network is reckoned from its cost in one thread: nothing there waits."""
    bare_ms, together_ms = alone(0)
    _, cpu_ms = alone(1)
    threads = around(kind)
    ours = rows.ours(kind, NETWORK_FRAMES, rows.midas_sized())
    beside_ms = sum(threads.values())
    best = bare_ms / ((cpu_ms + beside_ms) / cores.usable())
    parts = " | ".join(f"{threads.get(kind, 0.0):.1f}" for kind in (*KINDS, "others"))
    costs = f"{cpu_ms:.0f} | {together_ms:.0f} | {parts} | {beside_ms:.1f}"
    return f"{name} | {costs} | {best:.2f} | {ours * bare_ms / 1000:.2f}"


def main() -> None:
    head = "picture | network, in one thread | in all threads | loaders | engine | finishers | intake | others | "
    head += "all beside the network | "
    head += "at best, against bare | measured, against bare"
    text = pages.rows(head, [line(name, kind) for name, kind in PICTURES.items()])
    text += f"\n\nMilliseconds of processor a frame; {cores.usable()} cores."
    print(text)
    pages.put(pages.DOCS / "performance.md", "threads", text)


if __name__ == "__main__":
    main()
