"""ONNX Runtime itself: imported late, silent, and asked in ways that old and new versions understand."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from watcher import cores
from watcher.errors import ConfigError, ModelError, SessionError
from watcher.session import graph, provider
from watcher.session.compiled import Compiled
from watcher.session.provider import Options, Report

_ERRORS_ONLY = 3
_SPIN_US = "20"
_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
# What the runtime calls a file that is not a network it can take, however it was asked; and what it calls one when
# no option of a provider can be meant.
_MODEL_FAULTS = {"InvalidProtobuf", "InvalidGraph", "NoSuchFile", "NotImplemented", "NoModel"}
_MODEL_FAULTS_ON_CPU = _MODEL_FAULTS | {"InvalidArgument", "Fail"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A network in memory, what it takes, and what was found out on the way; how many runs may be under way."""

    inner: Any
    surface: graph.Surface
    report: Report
    lanes: int = 1


def runtime() -> Any:
    """The ``onnxruntime`` module. Its telemetry client is on by default and only heeds what was set before import."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError(
            f"ONNX Runtime cannot be imported: {first_line(error)}",
            "Install this program again: pip install onnxruntime",
        ) from error
    return onnxruntime


def first_line(error: BaseException | str) -> str:
    """What an error says, without the runtime's prefix and its stack of C++ frames."""
    text = _PREFIX.sub("", str(error).strip()).splitlines()
    return text[0].removesuffix(".") if text else type(error).__name__


def probe(path: Path) -> graph.Graph:
    """What a model file says about itself; it is loaded on the CPU, not optimised and not run.

    Raises ``ModelError`` where it is missing or not a network.
    """
    ort = runtime()
    settings = _settings(ort, threads=1)
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return graph.read(_create(ort, path, settings, [(provider.CPU, {})]))


def load(path: Path, options: Options) -> Loaded:
    """Open a network with the provider that was asked for, or visibly with the CPU where that is allowed."""
    ort = runtime()
    chosen, note = provider.choose(options, ort.get_available_providers())
    if chosen == provider.CPU:
        return load_on(ort, path, options, (chosen, note))
    try:
        cache = provider.compiled(options.coreml, ort.__version__)
        loaded = load_on(ort, path, options, (chosen, note), cache)
        if cache is not None:
            cache.good()
        return loaded
    except SessionError as error:
        if options.provider == "coreml" and not options.allow_fallback:
            raise
        return load_on(
            ort,
            path,
            options,
            (provider.CPU, f"CoreML could not load the network ({error.what}); the CPU runs instead"),
        )


def load_on(ort: Any, path: Path, options: Options, choice: tuple[str, str], cache: Compiled | None = None) -> Loaded:
    """Open a network with the provider of ``choice`` (provider, note) alone; ``cache``: what it compiles."""
    chosen, note = choice
    threads, lanes = _shared_out(ort, chosen, options)
    settings = _settings(ort, threads)
    surface = None
    if chosen == provider.COREML:
        # CoreML leaves every node with an open shape to the CPU, so open shapes are closed before it looks.
        surface = graph.understand(probe(path), options.input_px, path.name)
        for name, length in surface.free:
            settings.add_free_dimension_override_by_name(name, length)
    folder = cache.begin() if cache is not None and chosen == provider.COREML else None
    inner = _create(ort, path, settings, provider.offers(chosen, options.coreml, ort.__version__, folder))
    surface = graph.understand(graph.read(inner), options.input_px, path.name)
    nodes, partitions = provider.assignment(inner)
    report = Report(
        requested=options.provider,
        provider=provider.obtained(inner, nodes),
        nodes=nodes,
        partitions=partitions,
        load_ms=0.0,
        warmup_ms=0.0,
        runtime=f"{ort.__name__} {ort.__version__}",
        note=note,
    )
    return Loaded(inner, surface, _check_assignment(report, chosen, options), lanes)


def _shared_out(ort: Any, chosen: str, options: Options) -> tuple[int, int]:
    """(threads of the runtime, lanes). An accelerator is kept busy by one run after the other."""
    threads = options.threads or cores.physical()
    lanes = min(options.lanes, threads)
    if chosen != provider.CPU or lanes < 2 or not hasattr(ort.InferenceSession, "run_async"):
        return options.threads, 1
    return threads + 1, lanes  # the thread that begins runs side by side works in none of them


def _check_assignment(report: Report, chosen: str, options: Options) -> Report:
    """CoreML that took no node at all is the CPU by another name."""
    if chosen != provider.COREML or report.provider == "coreml":
        return report
    what = "CoreML took no node of this network, everything runs on the CPU"
    if options.provider == "coreml" and not options.allow_fallback:
        raise ConfigError(what, "Set model.provider to auto or cpu, or model.allow_fallback to true.")
    return replace(report, note=what)


def _settings(ort: Any, threads: int) -> Any:
    settings = ort.SessionOptions()
    settings.log_severity_level = _ERRORS_ONLY
    settings.intra_op_num_threads = threads
    # Its threads would spin for a millisecond whenever one of them is late, on the very core that the late one, a
    # loader or any other program waits for. Between two operators a few microseconds are enough.
    settings.add_session_config_entry("session.intra_op.spin_duration_us", _SPIN_US)
    # Versions that do not know a key store it unread.
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return settings


def _create(ort: Any, path: Path, settings: Any, offers: list[provider.Offer]) -> Any:
    if not path.is_file():
        raise ModelError(f"there is no model file {path}", "`depth-watcher models list` shows what there is.")
    try:
        inner = ort.InferenceSession(str(path), settings, providers=offers, enable_fallback=False)
    except Exception as error:  # a dozen classes of its own, none of them exported
        faults = _MODEL_FAULTS_ON_CPU if offers[0][0] == provider.CPU else _MODEL_FAULTS
        if type(error).__name__ in faults:
            raise ModelError(
                f"{path.name} is not a network that ONNX Runtime can load: {first_line(error)}",
                "Download it again, or export it with a newer or older opset.",
            ) from error
        raise SessionError(f"ONNX Runtime could not load {path.name}: {first_line(error)}") from error
    inner.disable_fallback()
    return inner
