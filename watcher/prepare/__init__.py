"""Prepare: a model's graph rewritten so that CoreML takes it in one piece. The original stays where it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from watcher import __version__, catalog, durable
from watcher.catalog import Model, Recipe
from watcher.errors import CannotCreate, ModelError, explain
from watcher.session import Options as SessionOptions
from watcher.session import golden, open_session, probe

if TYPE_CHECKING:
    from pathlib import Path

    from watcher.prepare.forecast import Forecast

__all__ = ["Prepared", "expected", "prepare"]

MOST_DIFFERENCE = 1e-3


@dataclass(frozen=True, slots=True)
class Prepared:
    """``difference`` (mean and largest, as a share of the original map's range) on the golden picture."""

    path: Path
    recipe: Recipe
    before: Forecast
    after: Forecast
    mean_difference: float
    largest_difference: float


def prepare(model: Model, models_dir: Path, recipe: Recipe = "static") -> Prepared:
    """Write the prepared graph of a verified model beside the original, with a record of what it came from.

    ``static`` must agree with the original to a thousandth of its range. Raises ``ModelError`` (the graph cannot be
    rewritten, or the result differs), ``CannotCreate`` (disk).
    """
    from watcher.prepare import graph
    from watcher.prepare.forecast import forecast

    original = _read(model.path)
    made = graph.static(original, _size(model))
    if recipe == "trained":
        made = graph.trained(made, model.name)
    target = catalog.prepared_path(model, models_dir, recipe)
    before, after = forecast(original), forecast(made)
    try:
        durable.make_folder(target.parent)
        trial = target.with_name(durable.temporary_name(target.name))
        try:
            durable.write_new(trial, made.SerializeToString())
            mean, largest = _differ(model, trial)
            if recipe == "static" and not largest <= MOST_DIFFERENCE:
                raise ModelError(
                    f"the prepared graph of {model.name} differs from the original by {largest:.2%} of the range",
                    "The original is used. Please report this network.",
                )
            trial.replace(target)
        finally:
            trial.unlink(missing_ok=True)
        done = Prepared(target, recipe, before, after, mean, largest)
        durable.write_whole(catalog.prepared_record(target), _record(model, done))
    except OSError as error:
        what, remedy = explain(error)
        raise CannotCreate(f"the prepared graph of {model.name} cannot be kept: {what}", remedy) from error
    return done


def expected(model: Model, models_dir: Path) -> tuple[str, bool]:
    """(the forecast for the graph that CoreML would get, whether that is a prepared one). Raises ``ModelError``."""
    if catalog.prepared(model, models_dir, "static") is not None:
        record = catalog.prepared_record(catalog.prepared_path(model, models_dir, "static"))
        return str(json.loads(record.read_text(encoding="utf-8"))["forecast_after"]), True
    from watcher.prepare.forecast import forecast

    return str(forecast(_read(model.path))), False


def _read(path: Path) -> Any:
    import onnx

    try:
        return onnx.load(path)
    except Exception as error:  # protobuf's own classes
        raise ModelError(f"{path.name} is not a network", "Download it again.") from error


def _size(model: Model) -> tuple[int, int]:
    """(height, width) of the input: what the graph fixes, else what the catalogue knows."""
    with open_session(model.path, SessionOptions(provider="cpu", input_px=model.spec.input_px)) as session:
        return session.shape.height_px, session.shape.width_px


def _differ(model: Model, made: Path) -> tuple[float, float]:
    """(mean, largest) absolute difference on the golden picture, as a share of the original's range."""
    size_px = _size(model)
    picture = golden(*size_px)
    maps = []
    for path in (model.path, made):
        with open_session(path, SessionOptions(provider="cpu", input_px=size_px)) as session:
            maps.append(session.run(picture).astype(np.float64))
    reach = float(np.ptp(maps[0])) or 1.0
    apart = np.abs(maps[0] - maps[1]) / reach
    return float(apart.mean()), float(apart.max())


def _record(model: Model, done: Prepared) -> bytes:
    record = {
        "model": model.name,
        "source_sha256": model.sha256,
        "sha256": catalog.digest(done.path),
        "recipe": done.recipe,
        "mean_difference": done.mean_difference,
        "largest_difference": done.largest_difference,
        "forecast_before": str(done.before),
        "forecast_after": str(done.after),
        "inputs": [list(value.shape) for value in probe(done.path).inputs],
        "version": __version__,
    }
    return json.dumps(record, indent=1).encode()
