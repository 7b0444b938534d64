"""What is measured happens in here, in a process of its own: ``python -m bench.child MODE TASK`` prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from bench import stages, threads

MIB = 1 << 20


def path_of_frames(task: dict[str, Any]) -> dict[str, Any]:
    """The program itself on all of an inbox; ``run_ms`` puts the simulated accelerator in the session's place.

    ``looks``: after which maps it is asked how long each kind of thread has run.
    """
    from bench.accelerator import SimulatedNetwork
    from watcher import config, daemon
    from watcher.frame import Frame, Outcome

    moments: list[float] = []
    cpu_s: list[float] = []  # of all threads together, at the same moments
    looks, threads_s = frozenset(task.get("looks", ())), list[dict[str, float]]()

    def heard(_frame: Frame, outcome: Outcome) -> None:
        if outcome is Outcome.DONE:
            moments.append(time.perf_counter())
            cpu_s.append(time.process_time())
            if len(moments) in looks:
                threads_s.append(threads.by_thread())

    settings = config.load(Path(task["config"]))
    life = daemon.Daemon(settings, once=True, heard=heard)
    if task.get("run_ms"):
        SimulatedNetwork.run_ms = float(task["run_ms"])
        life.network = SimulatedNetwork(settings)
    code = life.run()
    if code or not moments:
        raise RuntimeError(f"the daemon ended with {code} after {len(moments)} maps")
    return {"moments": moments, "cpu_at_s": cpu_s, "threads_s": threads_s}


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

    cpu_s: list[float] = []
    threads = int(task.get("threads", 0))
    moments = baselines.bare(
        Path(task["model"]), int(task["frames"]), lambda: cpu_s.append(time.process_time()), threads
    )
    return {"moments": moments, "cpu_at_s": cpu_s}


def staged(task: dict[str, Any]) -> dict[str, Any]:
    return {"stages": stages.measure(Path(task["config"]), Path(task["picture"]), int(task["times"]))}


_MODES = {
    "path": path_of_frames,
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
