"""Where the prepared graph of a model is, and whether it is what its record says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from watcher.catalog.find import Model, digest

Recipe = Literal["static", "trained"]


def prepared_path(model: Model, models_dir: Path, recipe: Recipe) -> Path:
    """Where it is, or would be; the name carries the content it was made from."""
    return models_dir / "prepared" / f"{model.path.stem}-{model.sha256[:16]}-{recipe}.onnx"


def prepared_record(path: Path) -> Path:
    return path.with_suffix(".json")


def prepared(model: Model, models_dir: Path, recipe: Recipe) -> Model | None:
    """The model with its prepared graph in place of the original; ``None`` where there is none that is whole."""
    path = prepared_path(model, models_dir, recipe)
    try:
        record = json.loads(prepared_record(path).read_text(encoding="utf-8"))
        wanted = (record["source_sha256"], record["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not path.is_file() or wanted != (model.sha256, digest(path)):
        return None
    return Model(model.spec, path, record["sha256"], model.notice)
