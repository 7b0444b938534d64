"""What is measured happens in here, in a process of its own: ``python -m bench.child MODE TASK`` prints JSON."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import stages, threads

if TYPE_CHECKING:
    from watcher.frame import Frame, Outcome

MIB = 1 << 20


def path_of_frames(task: dict[str, Any]) -> dict[str, Any]:
    """The program itself on all of an inbox; ``run_ms`` puts the simulated accelerator in the session's place.

    ``looks``: after which maps it is asked how long each kind of thread has run.
    """
    from bench.accelerator import SimulatedNetwork
    from watcher import config, daemon

    seen = _Seen(frozenset(task.get("looks", ())))
    settings = config.load(Path(task["config"]))
    life = daemon.Daemon(settings, once=True, heard=seen.heard)
    if task.get("run_ms"):
        SimulatedNetwork.run_ms = float(task["run_ms"])
        life.network = SimulatedNetwork(settings)
    return seen.after(life.run())


def watching(task: dict[str, Any]) -> dict[str, Any]:
    """A daemon that watches; once it runs, ``count`` copies of ``picture`` are written into its inbox."""
    from watcher import config, daemon
    from watcher.status import Snapshot

    settings = config.load(Path(task["config"]))
    inbox, picture, count = settings.folders[0].inbox, Path(task["picture"]), int(task["count"])
    seen = _Seen(ends_after=count)

    def write() -> None:
        data = picture.read_bytes()
        for number in range(count):
            (inbox / f"shot-{number:05}{picture.suffix}").write_bytes(data)

    writer = threading.Thread(target=write)

    def told(snapshot: Snapshot) -> None:
        if snapshot.state == "running" and writer.ident is None:
            writer.start()

    code = daemon.Daemon(settings, tell=told, heard=seen.heard).run()
    writer.join()
    return seen.after(code)


class _Seen:
    """When each map was there, and how long the threads had run by then."""

    def __init__(self, looks: frozenset[int] = frozenset(), ends_after: int = 0) -> None:
        self._looks, self._ends_after = looks, ends_after
        self._moments: list[float] = []
        self._cpu_s: list[float] = []  # of all threads together, at the same moments
        self._threads_s: list[dict[str, float]] = []

    def heard(self, _frame: Frame, outcome: Outcome) -> None:
        if outcome.value == "done":
            self._moments.append(time.perf_counter())
            self._cpu_s.append(time.process_time())
            if len(self._moments) in self._looks:
                self._threads_s.append(threads.by_thread())
            if len(self._moments) == self._ends_after:
                os.kill(os.getpid(), signal.SIGTERM)

    def after(self, code: int) -> dict[str, Any]:
        if code or not self._moments:
            raise RuntimeError(f"the daemon ended with {code} after {len(self._moments)} maps")
        return {"moments": self._moments, "cpu_at_s": self._cpu_s, "threads_s": self._threads_s}


def loop(task: dict[str, Any]) -> dict[str, Any]:
    from bench import baselines

    files = sorted(Path(task["inbox"]).iterdir())
    return {"moments": baselines.loop(Path(task["model"]), files, Path(task["outbox"]), float(task.get("pause_s", 0)))}


def seed(task: dict[str, Any]) -> dict[str, Any]:
    from bench import baselines

    return {"moments": baselines.seed(Path(task["model"]), sorted(Path(task["inbox"]).iterdir()))}


def callback_watch(task: dict[str, Any]) -> dict[str, Any]:
    from bench import baselines

    folder, picture = Path(task["folder"]), Path(task["picture"])
    return {"moments": baselines.callback_watch(Path(task["model"]), picture, int(task["count"]), folder)}


def bare(task: dict[str, Any]) -> dict[str, Any]:
    from bench import baselines

    return {"moments": baselines.bare(Path(task["model"]), int(task["frames"]), int(task["lanes"]))}


def staged(task: dict[str, Any]) -> dict[str, Any]:
    return {"stages": stages.measure(Path(task["config"]), Path(task["picture"]), int(task["times"]))}


_MODES = {
    "path": path_of_frames,
    "watching": watching,
    "loop": loop,
    "seed": seed,
    "callback": callback_watch,
    "bare": bare,
    "stages": staged,
}


def main() -> None:
    mode, task = sys.argv[1], json.loads(sys.argv[2])
    found = _MODES[mode](task)
    used = resource.getrusage(resource.RUSAGE_SELF)
    found |= {"peak_mib": _peak_bytes() / MIB, "cpu_s": used.ru_utime + used.ru_stime}
    print(json.dumps(found))


def _peak_bytes() -> int:
    """The most memory this process held. On Linux ``ru_maxrss`` still knows the parent before ``exec``."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


if __name__ == "__main__":
    main()
