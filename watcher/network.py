"""Network: what of catalogue, session and arithmetic belongs together for the one model that the settings name."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np

from watcher import catalog, config, depth, prepare
from watcher import session as sessions
from watcher.errors import ModelError
from watcher.frame import Float32
from watcher.session import Report, Session, Shape
from watcher.shots import Shots

log = logging.getLogger(__name__)


class Network:
    """Raises ``ModelError`` where the model's file is missing or damaged."""

    def __init__(self, settings: config.Settings) -> None:
        self._settings = settings
        self._models_dir = config.models_dir(settings)
        self._model = catalog.find(settings.model.name, self._models_dir)
        self._graph = "original"
        self._opened: Path | None = None
        if settings.model.graph == "trained":
            self._model, self._graph = self._trained(), "trained"

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def licence(self) -> str:
        """Under what the model may be used."""
        return self._model.spec.licence

    @property
    def notice(self) -> str:
        """What a person should be told about the model, or ""."""
        return self._model.notice

    @property
    def accelerated(self) -> bool:
        """Whether the network is meant to run beside the processor and not on it. Known before anything is loaded."""
        return sys.platform == "darwin" and self._settings.model.provider != "cpu"

    def open(self) -> Session:
        """Called by the thread that will own the session."""
        return self._open(anew=False)

    def open_anew(self) -> Session:
        """``open``, with every provider tried and timed again: what is remembered of them does not count."""
        return self._open(anew=True)

    def _open(self, *, anew: bool) -> Session:
        wishes = self._settings.model
        model = self._model
        if wishes.graph == "auto" and wishes.provider != "cpu" and sessions.has_coreml():
            static = catalog.prepared(model, self._models_dir, "static")
            if static is not None:
                model, self._graph = static, "static"
        self._opened = model.path
        cache = self._trials_dir / "compiled" if wishes.coreml.cache else None
        coreml = sessions.CoreMLOptions(wishes.coreml.compute_units, wishes.coreml.model_format, cache, model.sha256)
        return sessions.open_session(
            model.path,
            sessions.Options(
                provider=wishes.provider,
                allow_fallback=wishes.allow_fallback,
                threads=wishes.threads,
                lanes=sessions.LANES,
                coreml=coreml,
                input_px=self._model.spec.input_px,
                trials_dir=self._trials_dir,
                anew=anew,
                transformer=self._model.spec.multiple > 1,
            ),
        )

    def forecast(self) -> tuple[str, bool]:
        """(what CoreML is expected to take of the graph, whether a prepared one is there)."""
        return prepare.expected(self._model, self._models_dir)

    def _trained(self) -> catalog.Model:
        found = catalog.prepared(self._model, self._models_dir, "trained")
        if found is None:
            raise ModelError(
                f"{self._model.name} has not been prepared with its trained resizes",
                f"`depth-watcher models prepare {self._model.name} --as trained` does it; or set model.graph to auto.",
            )
        return found

    @property
    def _trials_dir(self) -> Path:
        return config.state_dir(self._settings) / "coreml"

    def condemn(self, report: Report, tensor: Float32) -> bool:
        """What runs gave ``tensor`` a map that cannot be right; whether another provider can take its place.

        The CPU is asked first, once: a map without content that it gives as well is the network's own, and nobody's
        fault. Where no fallback is allowed the map is taken as it is, rather than no map ever again.
        """
        wishes = self._settings.model
        if report.provider != "coreml" or not report.trial_key or not wishes.allow_fallback:
            return False
        judge = sessions.Options(provider="cpu", threads=wishes.threads, input_px=self._model.spec.input_px)
        with sessions.open_session(self._opened or self._model.path, judge) as session:
            answer = session.run(tensor)
        if not np.isfinite(answer).all() or float(np.ptp(answer)) == 0:
            return False
        sessions.condemn(self._trials_dir, report)
        return True

    def ends_on_purpose(self) -> None:
        """A stop while the network is still loading is no crash of CoreML."""
        sessions.forgive(self._trials_dir)

    def plan(self, shape: Shape) -> depth.Plan:
        """How pictures fill a session of this shape."""
        spec = self._model.spec
        return depth.Plan(
            height_px=shape.height_px,
            width_px=shape.width_px,
            fixed=shape.fixed or spec.resize == "stretch",
            multiple=spec.multiple,
            upper_px=spec.upper_px,
            mean=spec.mean,
            std=spec.std,
            resample=self._settings.model.resample,
        )

    def about(self, report: Report | None) -> dict[str, Any]:
        """What every map says about its making."""
        return {
            "model": self._model.name,
            "model_sha256": self._model.sha256,
            "graph": self._graph,
            "provider": report.provider if report else "",
            "runtime": report.runtime if report else "",
            "resample": self._settings.model.resample,
        }

    def shots(self) -> Shots:
        """The raw maps and ranges of shots that this network, with this arithmetic, has made."""
        wishes = self._settings.model
        maker = f"{self._model.name} {self._model.sha256} {wishes.graph} {wishes.resample}"
        kept = Shots(config.state_dir(self._settings) / "shots", maker, self._settings.limits.shot_mb * 1_000_000)
        kept.prepare()
        return kept

    def announce(self, report: Report) -> None:
        """Say once, in the log, what really runs."""
        nodes = ", ".join(f"{count} nodes on {name}" for name, count in report.nodes.items()) or "assignment unknown"
        pieces = f" in {report.partitions} partitions" if report.partitions else ""
        log.info(
            "model %s on %s (%s%s; %s; loaded in %.0f ms)",
            *(self.name, report.provider, nodes, pieces, report.runtime, report.load_ms),
        )
        if report.note:
            log.warning("%s", report.note)
        if report.decision:
            log.info("%s", report.decision)
        if self.notice:
            log.warning("%s", self.notice)
