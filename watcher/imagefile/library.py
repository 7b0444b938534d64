"""How Pillow is opened here: its own size limit is off, because ``Limits.check`` runs on the header before."""

from __future__ import annotations

import io

from PIL import Image

Image.MAX_IMAGE_PIXELS = None  # else it warns at 89 and refuses at 179 megapixels, whatever the settings say


def open_image(data: bytes, name: str) -> Image.Image:
    """An image whose pixels are not decoded yet, by the one plug-in ``name``. The caller closes it."""
    return Image.open(io.BytesIO(data), formats=[name])
