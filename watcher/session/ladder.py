"""The ladder: CoreML as fast as it goes, CoreML more carefully, the CPU. Which rung holds is tried, not believed.

Each rung is loaded and run once under the crash guard, held against the CPU on a golden picture, and with ``auto``
timed. The choice is remembered for this model, runtime, system and these options; `models bench` asks anew.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from watcher import volume
from watcher.clock import now_s
from watcher.errors import ConfigError, SessionError
from watcher.frame import Float32
from watcher.session import dialect, leaks, provider, runtime, trial
from watcher.session.compiled import Compiled, system_build
from watcher.session.guard import CONDEMNED, MOST_STRIKES, Guard
from watcher.session.provider import COREML, CPU, CoreMLOptions, Options, Report
from watcher.session.runtime import Loaded
from watcher.session.trial import Memory, Trial, Verdict

log = logging.getLogger(__name__)

_CPU = "cpu"
MOST_PARTITIONS = 3  # of a transformer; beyond, the borders are said to cost more than CoreML brings
_COMPILE_TIMES = 3  # of the model's size, as is reported of CoreML
_COMPILE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Rung:
    name: str
    coreml: CoreMLOptions


@dataclass(frozen=True, slots=True)
class Reference:
    """The CPU's answer to the golden picture; ``ms`` 0 where it was not timed."""

    loaded: Loaded
    made: Float32
    ms: float


def load(path: Path, options: Options, trials_dir: Path) -> Loaded:
    """Open the network on the best rung that holds; ``Report.trials`` says how each did.

    Raises what ``runtime.load`` raises, and ``ConfigError`` where no rung of CoreML holds and nothing else is allowed.
    """
    ort = runtime.runtime()
    chosen, note = provider.choose(options, ort.get_available_providers())
    if chosen == CPU and not options.anew:
        return runtime.load_on(ort, path, options, (CPU, note))
    leaks.sweep(trials_dir)
    return _Climb(ort, path, options, trials_dir).load(rungs(options, ort.__version__) if chosen == COREML else ())


def rungs(options: Options, version: str) -> tuple[Rung, ...]:
    """From fast to careful. Units that the user chose are the only rung; an old runtime takes no choice.

    A transformer begins with the GPU: the Neural Engine computes in half precision, where attention may go wrong.
    """
    coreml = options.coreml
    if not dialect.takes_options(version):
        return (Rung("coreml", coreml),)
    wished = coreml.compute_units
    if wished == "ALL":
        tries: tuple[str, ...] = ("CPUAndGPU",) if options.transformer else ("ALL", "CPUAndGPU")
    else:
        tries = (wished,)
    return tuple(
        Rung(f"coreml {coreml.model_format} {units}", replace(coreml, compute_units=units))  # type: ignore[arg-type]
        for units in tries
    )


def forgive(trials_dir: Path) -> None:
    """The process ends on purpose: what it was just trying is not to blame."""
    Guard(trials_dir).forgive()


def condemn(trials_dir: Path, report: Report) -> None:
    """What runs has given a frame a map that cannot be right: the next ``load`` takes another rung."""
    if report.trial_key:
        Guard(trials_dir).condemn(report.trial_key)


class _Climb:
    def __init__(self, ort: Any, path: Path, options: Options, trials_dir: Path) -> None:
        self._ort = ort
        self._path = path
        self._options = options
        self._guard = Guard(trials_dir)
        self._memory = Memory(trials_dir / "verdicts.json")
        self._trials_dir = trials_dir
        self._passing = False  # a rung was left out for what may be over tomorrow: the verdict is not kept
        coreml = options.coreml
        kind = f"{ort.__name__} {ort.__version__}"
        model = coreml.model_key[:16] or f"{zlib.crc32(path.read_bytes()) if path.is_file() else 0:08x}"
        wishes = f"{options.provider} {coreml.compute_units} {coreml.model_format} {options.threads} {options.input_px}"
        self._key = " | ".join((model, kind, system_build(), wishes))

    def load(self, ladder: Sequence[Rung]) -> Loaded:
        for what in self._guard.collect():
            log.warning("the process died while this was tried: %s", what)
        if self._options.anew:
            self._guard.forget()
        else:
            remembered = self._remembered(ladder)
            if remembered is not None:
                return remembered
        return self._climb(ladder)

    def _remembered(self, ladder: Sequence[Rung]) -> Loaded | None:
        verdict = self._memory.recall(self._key)
        if verdict is None:
            return None
        if verdict.rung == _CPU and ladder and self._options.provider == "coreml" and not self._options.allow_fallback:
            return None  # found while the CPU was allowed: all is tried again, and refused where nothing holds
        if verdict.rung == _CPU:
            return self._told(runtime.load_on(self._ort, self._path, self._options, (CPU, "")), verdict)
        rung = next((rung for rung in ladder if rung.name == verdict.rung), None)
        if rung is not None:
            loaded, again = self._attempt(rung, None)
            if loaded is not None:
                return self._told(loaded, verdict)
            log.warning("what was chosen before does not hold any more: %s", again)
        with contextlib.suppress(OSError):
            self._memory.forget(self._key)
        return None

    def _climb(self, ladder: Sequence[Rung]) -> Loaded:
        begun_s = now_s()
        reference = self._reference()
        trials = [Trial(_CPU, reference.ms, 1.0)] if reference.ms else []
        best, best_rung, best_ms = reference.loaded, _CPU, reference.ms or float("inf")
        for rung in ladder:
            loaded, tried = self._attempt(rung, reference)
            trials.append(tried)
            log.log(logging.WARNING if tried.fault else logging.INFO, "tried %s", tried)
            if loaded is None or (self._measures and tried.ms >= best_ms):
                continue
            best, best_rung, best_ms = loaded, rung.name, tried.ms
            if not self._measures:
                break
        verdict = Verdict(best_rung, tuple(trials), round(now_s() - begun_s, 3))
        if ladder and best_rung == _CPU and self._options.provider == "coreml" and not self._options.allow_fallback:
            raise ConfigError(
                f"CoreML does not hold for this network: {_faults(verdict)}",
                "Set model.provider to auto or cpu, or model.allow_fallback to true.",
            )
        if ladder and not self._passing:
            with contextlib.suppress(OSError):  # it is measured again next time
                self._memory.keep(self._key, verdict)
        return self._told(best, verdict)

    @property
    def _measures(self) -> bool:
        return self._options.provider == "auto" or self._options.anew

    def _reference(self) -> Reference:
        loaded = runtime.load_on(self._ort, self._path, self._options, (CPU, ""))
        feed = _feed(loaded)
        made = trial.run(loaded.inner, loaded.surface.output, feed)
        ms = trial.median_ms(loaded.inner, loaded.surface.output, feed) if self._measures else 0.0
        return Reference(loaded, made, ms)

    def _attempt(self, rung: Rung, reference: Reference | None) -> tuple[Loaded | None, Trial]:
        """One rung; a stale compiled model is thrown away and made again once before the rung counts as broken."""
        what = f"{self._key} | {rung.name}"
        if self._guard.strikes(what) >= CONDEMNED:
            return None, Trial(rung.name, fault="it gave a picture a map that is constant or not finite")
        if self._guard.strikes(what) >= MOST_STRIKES:
            return None, Trial(rung.name, fault=f"the process died {MOST_STRIKES} times while it was tried")
        cache = provider.compiled(rung.coreml, self._ort.__version__)
        if cramped := self._cramped(cache):
            self._passing = True
            return None, Trial(rung.name, fault=cramped)
        with self._guard.trying(what), leaks.noted(self._trials_dir):
            loaded, tried = self._once(rung, reference, cache)
            if tried.fault and cache is not None and cache.used:
                log.warning("tried %s; the compiled model is made anew", tried)
                cache.wipe()
                loaded, tried = self._once(rung, reference, cache)
        return loaded, tried

    def _cramped(self, cache: Compiled | None) -> str:
        """Why there is no room to compile, in words; a compile that runs out of disk leaves a broken cache."""
        place = tempfile.gettempdir() if cache is None else cache.nearest()
        try:
            free, wanted = volume.free_bytes(Path(place)), _COMPILE_TIMES * self._path.stat().st_size + _COMPILE_BYTES
        except OSError:
            return ""
        if free >= wanted or (cache is not None and cache.finished()):
            return ""
        return f"compiling it may need {wanted / 1e6:.0f} MB of disk, {free / 1e6:.0f} MB are free"

    def _once(self, rung: Rung, reference: Reference | None, cache: Compiled | None) -> tuple[Loaded | None, Trial]:
        options = replace(self._options, coreml=rung.coreml, allow_fallback=True)
        try:
            loaded = runtime.load_on(self._ort, self._path, options, (COREML, ""), cache)
        except SessionError as error:
            return None, Trial(rung.name, fault=f"CoreML could not load the network ({error.what})")
        if loaded.report.provider != "coreml":
            return None, Trial(rung.name, fault=loaded.report.note)
        if self._options.transformer and loaded.report.partitions > MOST_PARTITIONS:
            return None, Trial(rung.name, fault=f"CoreML cuts it into {loaded.report.partitions} pieces")
        feed = _feed(loaded)
        try:
            tried = self._judge(rung, loaded, feed, reference)
        except Exception as error:  # the runtime has a dozen classes of its own
            return None, Trial(rung.name, fault=f"CoreML could not run the network ({runtime.first_line(error)})")
        if tried.fault:
            return None, tried
        if cache is not None:
            cache.good()
        return loaded, tried

    def _judge(self, rung: Rung, loaded: Loaded, feed: dict[str, Any], reference: Reference | None) -> Trial:
        made = trial.run(loaded.inner, loaded.surface.output, feed)
        if reference is None:
            return Trial(rung.name, fault=trial.unusable(made))
        tried = trial.judge(rung.name, made, reference.made)
        if tried.fault or not self._measures:
            return tried
        return replace(tried, ms=trial.median_ms(loaded.inner, loaded.surface.output, feed))

    def _told(self, loaded: Loaded, verdict: Verdict) -> Loaded:
        faults = _faults(verdict)
        note = loaded.report.note
        if faults:
            ending = "; the CPU runs instead" if verdict.rung == _CPU else f"; {verdict.rung} runs instead"
            note = faults + ending
        took = f" in {verdict.decided_s:.1f} s" if verdict.decided_s else ""
        decision = f"{verdict.rung} was chosen{took}: " + "; ".join(str(one) for one in verdict.trials if not one.fault)
        report = replace(
            loaded.report,
            note=note,
            trials=verdict.trials,
            decision=decision if verdict.trials else "",
            decided_s=verdict.decided_s,
            trial_key="" if verdict.rung == _CPU else f"{self._key} | {verdict.rung}",
        )
        return replace(loaded, report=report)


def _faults(verdict: Verdict) -> str:
    return "; ".join(f"{one.rung}: {one.fault}" for one in verdict.trials if one.fault)


def _feed(loaded: Loaded) -> dict[str, Any]:
    shape = loaded.surface.shape
    return {loaded.surface.input: trial.golden(shape.height_px, shape.width_px).astype(loaded.surface.dtype)}
