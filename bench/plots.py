"""The pictures of docs/performance.md, measured and drawn: stages by kind of file, and how cost grows."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2

from bench import drawing, living, pictures, place, stages, streams, table
from bench.streams import midas_sized, rate, starter, trivial

PICTURES = place.PROJECT / "docs" / "pictures"
_WIDTHS = (480, 960, 1920, 2880, 4000, 5656)
_FRAMES = (10, 30, 100, 300)
_CROWDS = (0, 10_000, 100_000)  # the ends are those of the first round of the row `crowd`


def draw_all(page: Path) -> None:
    """Draw every picture and put it on the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, draw in (("stages", by_stage), ("pixels", by_pixels), ("frames", by_frames), ("folder", by_folder)):
        file = PICTURES / f"cost-by-{name}.svg"
        file.write_text(draw(), encoding="utf-8")
        table.put(page, name, f"![Cost by {name}](pictures/{file.name})")
        print(f"drawn: docs/pictures/{file.name}", flush=True)


def by_stage() -> str:
    """One bar for each kind of file, with the MiDaS-small-sized network."""
    bars = []
    for kind in pictures.DRAWN:
        picture = pictures.made(place.cache(), kind)
        if picture is not None:
            with place.place() as where:
                config = where.lay_out(midas_sized())
                found = place.child(where, "stages", config=config, picture=picture, times=5)["stages"]
            bars.append((kind, [(name, float(found[name])) for name in stages.NAMES]))
    return drawing.stacked("One frame, stage by stage, each alone (MiDaS-small-sized network)", "ms", bars)


def by_pixels() -> str:
    """Milliseconds a frame in a stream, against the size of the picture."""
    points = []
    for width in _WIDTHS:
        height = width * 3 // 4
        picture = place.cache() / f"wide-{width}.jpg"
        if not picture.exists():
            cv2.imwrite(str(picture), pictures.pixels(width, height))
        with place.place() as where:
            config = where.lay_out(starter())
            pictures.fill(where.inbox, picture, 28)
            moments = place.child(where, "path", config=config)["moments"]
        points.append((width * height / 1e6, 1000 / rate(streams.flowing(moments))))
    return drawing.line("A frame in a stream, by its size (starter)", ("megapixels", "ms"), points)


def by_frames() -> str:
    """Seconds for the whole, against the number of pictures; start and end of the process left out."""
    picture = streams.picture("384.jpg")
    points = []
    for count in _FRAMES:
        with place.place() as where:
            config = where.lay_out(trivial())
            pictures.fill(where.inbox, picture, count)
            moments = place.child(where, "path", config=config)["moments"]
            shutil.rmtree(where.inbox)
        points.append((float(count), moments[-1] - moments[0]))
    return drawing.line(
        "All of an inbox, by the number of its pictures (384 x 384, trivial)", ("pictures", "s"), points
    )


def by_folder() -> str:
    """Milliseconds of processor a frame, against the number of other files beside it."""
    points = [(float(others), living.crowd_cost(others, 0)) for others in _CROWDS]
    return drawing.line(
        "A frame, by the number of other files in its inbox", ("other files", "ms of processor"), points
    )
