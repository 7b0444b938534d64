"""Joins pictures and their depth maps into one picture: ``contact_sheet.py INBOX OUTBOX TARGET``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from watcher import imagefile

MAX_PIXELS = 50_000_000
WIDTH_PX = 1200


def _bytes_of(pixels: imagefile.Array) -> imagefile.Array:
    """uint16 to uint8; uint8 as it is."""
    return (pixels >> 8).astype(np.uint8) if pixels.dtype == np.uint16 else pixels


def pairs(inbox: Path, outbox: Path) -> list[tuple[imagefile.Array, imagefile.Array]]:
    """(picture (H, W, 3) uint8, map (H, W) uint16) for each picture of the inbox that has its map in the outbox."""
    found = []
    for source in sorted(path for path in inbox.iterdir() if imagefile.claims_picture(path.name)):
        depth_map = outbox / f"{source.stem}_depth.png"
        if depth_map.exists():
            picture = imagefile.decode(source.read_bytes(), max_pixels=MAX_PIXELS).pixels
            depth = imagefile.decode(depth_map.read_bytes(), max_pixels=MAX_PIXELS).pixels
            found.append((_bytes_of(picture), depth[..., 0]))
    return found


def main() -> int:
    inbox, outbox, target = (Path(argument) for argument in sys.argv[1:4])
    joined = pairs(inbox, outbox)
    if not joined:
        print(f"error: no picture of {inbox} has a map in {outbox}. Run make demo.", file=sys.stderr)
        return 66
    target.write_bytes(imagefile.contact_sheet(joined, WIDTH_PX))
    print(f"{len(joined)} maps in       {outbox}")
    print(f"to look at:     {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
