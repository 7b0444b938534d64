"""How a map is written: the settings of ``output``, frozen."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from watcher.config.section import Section
from watcher.config.values import Formats, Range, Template


class Output(Section):
    """How a map is written."""

    name: Template = Field(
        default="{stem}_depth",
        description="Name of the map without its extension; fields: {stem}, {name}, {ext}, {model}, {frame}.",
        examples=["{stem}_depth"],
    )
    format: Formats = Field(
        default="png16",
        description="File format of the map, or a list of them; the number is bits a pixel, f is float.",
        examples=["png16"],
    )
    exr_type: Literal["float", "half"] = Field(
        default="float", description="Values of an EXR: 32-bit float, or 16-bit float (half the file, 11 bits)."
    )
    exr_channel: Literal["Z", "Y"] = Field(
        default="Z", description="Name of an EXR's channel: Z is depth, Y is shown as a gray picture."
    )
    size: Literal["source", "model"] = Field(
        default="source", description="Size of the map: that of the picture, or what the network returns."
    )
    near: Literal["white", "black"] = Field(default="white", description="Which end of the scale is near.")
    range: Range = Field(
        default="frame",
        description="Raw values at the ends of the scale: its frame's, some percentiles, its shot's, or a fixed pair.",
        examples=[[0.0, 1500.0]],
    )
    preview: Literal["none", "inferno", "turbo", "magma", "gray"] = Field(
        default="none", description="Colours of an additional small picture, {stem}_depth.preview.jpg, to look at."
    )
    side_by_side: bool = Field(default=False, description="Show the picture to the left of its map in the preview.")
    alpha: Literal["ignore", "mask"] = Field(
        default="ignore", description="Transparent pixels of a picture: as if they were not, or far."
    )
    sidecar: bool = Field(
        default=False, description="Write {stem}_depth.json beside the map: what is needed to undo the scaling."
    )

    refine: Literal["none", "edges"] = Field(
        default="none", description="Edges of a map of the picture's size: as enlarged, or drawn to the picture's own."
    )

    @property
    def formats(self) -> tuple[str, ...]:
        """All of them; the first is the map itself."""
        return (self.format,) if isinstance(self.format, str) else self.format
