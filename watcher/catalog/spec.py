"""What is known of a model before it is loaded: the manifest's entries, checked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from watcher.errors import ModelError

Triple = tuple[float, float, float]
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WORDS = {
    "resize": ("stretch", "keep aspect"),
    "interpolation": ("cubic",),
    "output": ("relative inverse depth",),
    "layout": ("NCHW",),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """One entry of the catalogue.

    ``bytes`` 0 and ``sha256`` "" mean: not known. ``input_px`` (height, width); ``None``: read it from the graph.
    ``multiple``, ``upper_px``: for ``resize = "keep aspect"``, sides are multiples of it and no side is longer.
    ``mean``/``std``: for R, G, B in 0..1; ``None``: inside the graph. ``rank``: ``auto`` takes the highest pulled.
    """

    name: str
    file: str
    title: str = ""
    url: str = ""
    embedded: bool = False
    bytes: int = 0
    sha256: str = ""
    licence: str = "unknown"
    commercial: bool = False
    rank: int = -1
    input: str = ""
    layout: Literal["NCHW"] = "NCHW"
    input_px: tuple[int, int] | None = None
    resize: Literal["stretch", "keep aspect"] = "stretch"
    multiple: int = 1
    upper_px: int = 0
    interpolation: Literal["cubic"] = "cubic"
    mean: Triple | None = None
    std: Triple | None = None
    output: Literal["relative inverse depth"] = "relative inverse depth"
    parameters: int = 0
    citation: str = ""


def embedded_dir() -> Path:
    """The folder with the manifest and the starter: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "data" / "models"
    return installed if installed.is_dir() else package.parent / "models"


@cache
def manifest() -> tuple[Spec, ...]:
    """All entries, in the manifest's order. Raises ``ModelError`` where it is missing or damaged."""
    path = embedded_dir() / "manifest.toml"
    entries = _read_toml(path).get("model", [])
    return tuple(from_entry(entry, str(path)) for entry in entries)


def by_name(name: str) -> Spec:
    """The entry of that name. Raises ``ModelError`` that lists the names there are."""
    for spec in manifest():
        if spec.name == name:
            return spec
    raise ModelError(
        f"there is no model {name!r} in the catalogue",
        f"There are: {', '.join(spec.name for spec in manifest())}; or give the path of an .onnx file.",
    )


def beside(path: Path) -> Spec:
    """The spec of a file of the user's own: its name, and what a ``.toml`` of the same name beside it says."""
    note = path.with_suffix(".toml")
    own = _read_toml(note) if note.is_file() else {}
    return from_entry({"name": path.stem, "file": path.name, **own}, str(note))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "Install this program again.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not TOML: {error}", "Correct that place.") from error


def from_entry(entry: Mapping[str, Any], where: str) -> Spec:
    """A checked ``Spec`` of one table. Raises ``ModelError`` naming the key, what was found and what is wanted."""
    known = {field.name: field for field in fields(Spec)}
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    for key, value in values.items():
        if key not in known:
            raise ModelError(f"{where}: unknown key {key!r}", f"Known keys: {', '.join(known)}.")
        wanted = _wanted(key, value)
        if wanted:
            raise ModelError(f"{where}: {key} is {value!r}", f"It must be {wanted}.")
    for key in ("name", "file"):
        if not values.get(key):
            raise ModelError(f"{where}: an entry without {key}", "Each entry has a name and a file.")
    if (values.get("mean") is None) != (values.get("std") is None):
        raise ModelError(f"{where}: mean and std come together", "Give both, or neither when they are in the graph.")
    return Spec(**values)


def _wanted(key: str, value: Any) -> str:
    """What the key must be, or "" where the value is right."""
    if key in _WORDS:
        return "" if value in _WORDS[key] else " or ".join(map(repr, _WORDS[key]))
    if key in ("embedded", "commercial"):
        return "" if isinstance(value, bool) else "true or false"
    if key in ("bytes", "rank", "multiple", "upper_px", "parameters"):
        lowest = {"multiple": 1, "rank": -1}.get(key, 0)
        return "" if _whole(value) and value >= lowest else f"a whole number, {lowest} or more"
    if key == "input_px":
        good = isinstance(value, tuple) and len(value) == 2 and all(_whole(side) and side > 0 for side in value)
        return "" if good else "[height, width] in pixels, for example [384, 384]"
    if key in ("mean", "std"):
        good = isinstance(value, tuple) and len(value) == 3 and all(_number(part) for part in value)
        good = good and (key == "mean" or 0 not in value)
        return "" if good else "three numbers for red, green and blue, for example [0.485, 0.456, 0.406]"
    if key == "sha256":
        return "" if value == "" or (isinstance(value, str) and _SHA256.fullmatch(value)) else "64 hexadecimal digits"
    if key == "file":
        return "" if isinstance(value, str) and "/" not in value and value not in ("", ".", "..") else "a file name"
    return "" if isinstance(value, str) else "text in quotes"


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
