"""Coverage-guided fuzzing of the decoding path: bytes that nobody made must give a picture or a clear refusal.

    pip install atheris            # Linux; not part of the locked environment
    python tests/fuzz/decode.py FOLDER -max_total_time=1200 -timeout=20 -rss_limit_mb=2560

FOLDER holds the seeds (pictures of every kind, small ones) and receives what the fuzzer finds interesting. It ends with
an error, and leaves the input in a ``crash-…`` file, when the decoder raises anything but ``FrameError``, returns a
picture that breaks its contract, takes longer than the limit, needs more memory, or kills the process.
"""

from __future__ import annotations

import io
import logging
import sys
import warnings

import atheris
import numpy as np

with atheris.instrument_imports(include=["watcher.imagefile"]):
    from watcher import imagefile
    from watcher.errors import FrameError

MOST_PIXELS = 4_000_000


def check(data: bytes) -> None:
    """One input: any outcome but a ``FrameError`` or a sound picture is a finding."""
    imagefile.wholeness(io.BytesIO(data), len(data))
    try:
        picture = imagefile.decode(data, max_pixels=MOST_PIXELS)
    except FrameError:
        return
    assert picture.pixels.shape == (picture.height_px, picture.width_px, 3)
    assert picture.pixels.dtype in (np.uint8, np.uint16, np.float32)
    assert picture.pixels.dtype != np.float32 or bool(np.isfinite(picture.pixels).all())
    assert picture.height_px * picture.width_px <= MOST_PIXELS


def main() -> None:
    warnings.simplefilter("error")
    logging.disable(logging.CRITICAL)
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
