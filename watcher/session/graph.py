"""What a graph says about itself: names, sizes and layout of what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from watcher.errors import ModelError

Dim = int | str | None  # fixed, named, or unnamed and free

_FLOATS = {"tensor(float)": "float32", "tensor(float16)": "float16"}


@dataclass(frozen=True, slots=True)
class Value:
    """One input or output. ``shape`` holds an int where a length is fixed, else its name or ``None``."""

    name: str
    shape: tuple[Dim, ...]
    kind: str  # the runtime's word, for example tensor(float)


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph's surface, read without running it."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a session takes: (1, 3, ``height_px``, ``width_px``).

    ``fixed`` False: these are the smallest sizes of either side, and each run may bring another.
    """

    height_px: int
    width_px: int
    fixed: bool = True


@dataclass(frozen=True, slots=True)
class Surface:
    """The one input and the one output that are used."""

    input: str
    output: str
    shape: Shape
    dtype: str  # float32 or float16, as the graph wants it
    free: tuple[tuple[str, int], ...]  # named lengths, and what they must be for the shape to be fixed


def read(inner: Any) -> Graph:
    """The graph of an ``onnxruntime.InferenceSession``."""
    return Graph(
        inputs=tuple(Value(v.name, tuple(v.shape), v.type) for v in inner.get_inputs()),
        outputs=tuple(Value(v.name, tuple(v.shape), v.type) for v in inner.get_outputs()),
        metadata=dict(inner.get_modelmeta().custom_metadata_map),
    )


def understand(graph: Graph, hint_px: tuple[int, int] | None, model: str) -> Surface:
    """Find the picture's way in and the map's way out.

    ``hint_px`` (height, width) is what the catalogue knows; it is needed only where the graph leaves its size open.
    Raises ``ModelError`` that says what is missing or does not fit.
    """
    entry = _the_input(graph, model)
    batch, channels, height, width = entry.shape
    if isinstance(batch, int) and batch != 1:
        raise ModelError(f"{model} takes {batch} pictures at once", "Export it with a batch of 1.")
    if isinstance(channels, int) and channels != 3:
        raise ModelError(
            f"{model} takes (1, {channels}, {height}, {width}), this program feeds (1, 3, height, width)",
            "Export it with RGB channels before the sides (NCHW).",
        )
    fixed = isinstance(height, int) and isinstance(width, int)
    height_px, width_px = _size(height, width, hint_px, model)
    wanted = ((batch, 1), (channels, 3), (height, height_px), (width, width_px))
    return Surface(
        input=entry.name,
        output=_the_output(graph.outputs, (height_px, width_px), model),
        shape=Shape(height_px, width_px, fixed),
        dtype=_FLOATS[entry.kind],
        free=tuple((name, length) for name, length in wanted if isinstance(name, str)),
    )


def _the_input(graph: Graph, model: str) -> Value:
    if len(graph.inputs) != 1:
        names = ", ".join(value.name for value in graph.inputs) or "none"
        raise ModelError(
            f"{model} has {len(graph.inputs)} inputs ({names}), this program feeds exactly one picture",
            "Export the depth network with one image input.",
        )
    entry = graph.inputs[0]
    if entry.kind not in _FLOATS:
        raise ModelError(
            f"{model} takes {entry.kind}, this program feeds float32 or float16 pictures",
            "Export it with a float input; quantised weights are fine.",
        )
    if len(entry.shape) != 4:
        raise ModelError(
            f"the input {entry.name!r} of {model} has {len(entry.shape)} axes {list(entry.shape)}, "
            "this program feeds (1, 3, height, width)",
            "Export it with the axes batch, channel, height, width.",
        )
    return entry


def _size(height: Dim, width: Dim, hint_px: tuple[int, int] | None, model: str) -> tuple[int, int]:
    if isinstance(height, int) and isinstance(width, int):
        if height < 1 or width < 1:
            raise ModelError(f"{model} says that its input is {height} x {width} pixels", "Export it again.")
        return height, width
    if hint_px is None:
        raise ModelError(
            f"{model} leaves the size of its input open, and nothing says which size it was trained for",
            "Put a file of the same name with the ending .toml beside it that says, for example: input_px = [384, 384]",
        )
    return (
        height if isinstance(height, int) else hint_px[0],
        width if isinstance(width, int) else hint_px[1],
    )


def _the_output(outputs: Sequence[Value], size_px: tuple[int, int], model: str) -> str:
    """The output that can be one map; of several the one as large as the picture, else the first."""
    able = [value for value in outputs if value.kind in _FLOATS and _may_be_a_map(value.shape)]
    if able:
        return next((value.name for value in able if value.shape[-2:] == size_px), able[0].name)
    found = "; ".join(f"{value.name} {list(value.shape)} {value.kind}" for value in outputs) or "none"
    raise ModelError(
        f"no output of {model} is a depth map ({found})",
        "It must give (1, height, width), (1, 1, height, width) or (height, width) in float.",
    )


def _may_be_a_map(shape: tuple[Dim, ...]) -> bool:
    leading = shape[:-2]
    if not 2 <= len(shape) <= 4 or any(isinstance(length, int) and length != 1 for length in leading):
        return False
    return all(not isinstance(length, int) or length > 0 for length in shape[-2:])
