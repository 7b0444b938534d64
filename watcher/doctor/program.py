"""The program itself: system, Python, runtime, model, and one real inference."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata

import numpy as np

from watcher import __version__, config, depth
from watcher.clock import now_s
from watcher.doctor.finding import Finding, State
from watcher.errors import WatcherError
from watcher.network import Network
from watcher.session import Report

_OLDEST = (3, 11)
_RUNTIMES = ("onnxruntime", "onnxruntime-silicon", "onnxruntime-gpu")
_OLDEST_RUNTIME = (1, 31)


def system() -> Iterator[Finding]:
    """The program and its Python. ``os.uname`` asks the system; ``platform`` would start a process."""
    machine = os.uname()
    version = ".".join(map(str, sys.version_info[:3]))
    state: State = "ok" if sys.version_info[:2] >= _OLDEST else "problem"
    found = f"depth-watcher {__version__}, Python {version} ({sys.executable}), {machine.sysname} {machine.release}"
    yield Finding(
        "python", "program", state, found, "Python 3.11 or newer is needed.", "" if state == "ok" else "Install it."
    )


def runtime() -> Iterator[Finding]:
    """Which runtime packages are installed, by their metadata; importing one is left to the inference."""
    why = "It runs the network. The packages share one import name: only one of them may be installed."
    found = {name: version for name in _RUNTIMES if (version := _version(name))}
    text = ", ".join(f"{name} {version}" for name, version in found.items()) or "none"
    if len(found) != 1:
        remedy = "pip uninstall " + " ".join(_RUNTIMES) + "; then: pip install onnxruntime"
        yield Finding("runtime", "runtime", "problem", text, why, remedy)
    elif "onnxruntime" not in found:
        remedy = (
            "It still works, on Python 3.11, but no option reaches CoreML: the old model format, numbers in half "
            "precision, fewer operators, and nobody can say what runs where. To swap: make install; or: pip uninstall "
            "onnxruntime-silicon onnxruntime; then: pip install onnxruntime 'numpy>=2'"
        )
        yield Finding("runtime", "runtime", "warning", text, why, remedy)
    else:
        old = tuple(int(part) for part in found["onnxruntime"].split(".")[:2]) < _OLDEST_RUNTIME
        remedy = "Older ones hold up all threads while a model is loaded: pip install -U onnxruntime" if old else ""
        yield Finding("runtime", "runtime", "warning" if old else "ok", text, why, remedy)
    silent = os.environ.get("ORT_DISABLE_TELEMETRY") == "1"
    yield Finding(
        "telemetry",
        "telemetry",
        "ok" if silent else "warning",
        "off" if silent else "ORT_DISABLE_TELEMETRY was set to something else",
        "The runtime's wheels carry a telemetry client that is on by default.",
        "" if silent else "Unset it; the program sets it to 1 by itself.",
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def network(settings: config.Settings) -> Iterator[Finding]:
    """The model's file, and one run of it."""
    why = "Without a model there are no maps."
    try:
        chosen = Network(settings)
    except WatcherError as error:
        yield Finding("model", "model", "problem", error.what, why, error.remedy)
        return
    state: State = "warning" if chosen.notice else "ok"
    yield Finding("model", "model", state, f"{chosen.name}: {chosen.licence}", why, chosen.notice)
    yield _graph(chosen)
    yield from _inference(chosen)


def _graph(chosen: Network) -> Finding:
    """What CoreML would take, told from the graph: a forecast, so never a problem."""
    why = "CoreML pays for every border: it should take the network in one piece."
    try:
        forecast, prepared = chosen.forecast()
    except WatcherError as error:
        return Finding("graph", "graph", "warning", error.what, why, error.remedy)
    found = f"{'prepared' if prepared else 'as published'}; CoreML should take {forecast}"
    if prepared or not chosen.accelerated or " in 1 partition" in forecast:
        return Finding("graph", "graph", "ok", found, why)
    return Finding("graph", "graph", "warning", found, why, f"depth-watcher models prepare {chosen.name}")


def _inference(chosen: Network) -> Iterator[Finding]:
    why = "One picture through the real session, as the daemon would do it."
    try:
        with chosen.open() as session:
            session.warm_up()
            tensor = depth.prepare(_scene(), chosen.plan(session.shape))
            began_s = now_s()
            raw = session.run(tensor)
            took_ms = (now_s() - began_s) * 1000
            report = session.report
    except WatcherError as error:
        yield Finding("inference", "inference", "problem", error.what, why, error.remedy)
        return
    yield _self_test(report)
    nodes = ", ".join(f"{count} nodes on {name}" for name, count in report.nodes.items()) or report.provider
    found = f"{took_ms:.1f} ms on {report.provider} ({nodes}; {report.runtime})"
    if not np.isfinite(raw).all() or float(np.ptp(raw)) == 0:
        remedy = "Set model.provider to cpu, and verify the model: depth-watcher models verify"
        yield Finding("inference", "inference", "problem", f"{found}: the map is not usable", why, remedy)
    elif report.note:
        remedy = "See model.provider; `depth-watcher models bench` tries every provider anew."
        yield Finding("inference", "inference", "warning", f"{found}. {report.note}", why, remedy)
    else:
        found += f". {report.decision}" if report.decision else ""
        yield Finding("inference", "inference", "ok", found, why)


def _self_test(report: Report) -> Finding:
    """What each rung of CoreML did with the golden picture, held against the CPU."""
    why = "CoreML may give other numbers than the network was made for, without a word."
    facts = {
        "runtime": report.runtime,
        "provider": report.provider,
        "nodes": report.nodes,
        "partitions": report.partitions,
        "decided_s": report.decided_s,
        "trials": [asdict(trial) for trial in report.trials],
    }
    tried = [trial for trial in report.trials if trial.rung != "cpu"]
    if not tried:
        return Finding("self-test", "self-test", "ok", "the CPU runs, and is the measure itself", why, facts=facts)
    found = f"{'; '.join(str(trial) for trial in tried)}; decided in {report.decided_s:.1f} s"
    state: State = "ok" if any(not trial.fault for trial in tried) else "warning"
    remedy = "`depth-watcher models bench` tries anew; an update of macOS or of the runtime may heal it."
    return Finding("self-test", "self-test", state, found, why, "" if state == "ok" else remedy, facts)


def _scene() -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """(240, 320, 3) uint8: a floor that comes nearer, a wall, and a ball before it."""
    rows, columns = np.mgrid[0:240, 0:320]
    floor = np.clip((rows - 120) * 2, 0, 255)
    ball = (rows - 130) ** 2 + (columns - 160) ** 2 < 60**2
    gray = np.where(ball, 200 - (columns - 100) // 2, np.where(rows > 120, floor, 120 + columns // 8))
    return np.repeat(gray[..., None], 3, axis=2).astype(np.uint8)
