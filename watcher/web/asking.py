"""Asking: what a request wants, as values that are checked before they go anywhere."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Request
from werkzeug.exceptions import RequestEntityTooLarge

from watcher.web.door import Refused

TYPES = {
    "image/png": "png16",
    "image/jpeg": "jpg",
    "application/x-npy": "npy",
    "image/x-exr": "exr",
    "image/tiff": "tiff16",
}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_NAME_MOST = 200
_RESERVES = 4


class Scale:
    """Keeps the pictures that are held in memory below a sum."""

    def __init__(self, most_bytes: int) -> None:
        self._free = _RESERVES * most_bytes
        self._lock = threading.Lock()

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        with self._lock:
            if size > self._free:
                raise Refused(429, "busy", "too many large pictures at once", "Send it again.", after_s=2)
            self._free -= size
        try:
            yield
        finally:
            with self._lock:
                self._free += size


def media_type(request: Request) -> str:
    """The media type of the answer. Raises ``Refused`` 406 where none that is accepted can be made."""
    if not request.headers.get("Accept"):
        return "image/png"
    found = request.accept_mimetypes.best_match(list(TYPES))
    if found is None:
        raise Refused(406, "not-acceptable", "no map can be given in these types", f"Accept {', '.join(TYPES)}.")
    return str(found)


def wishes(request: Request) -> dict[str, Any]:
    """``name``, ``near``, ``size`` and ``range`` of the query. Raises ``Refused`` 400 for anything else."""
    query = request.args
    unknown = set(query) - {"name", "near", "size", "range"}
    if unknown:
        raise Refused(
            400, "unknown-parameter", f"unknown: {', '.join(sorted(unknown))}", "Use name, near, size, range."
        )
    found: dict[str, Any] = {"name": _CONTROLS.sub("_", query.get("name", ""))[:_NAME_MOST]}
    for key, allowed in (("near", ("white", "black")), ("size", ("source", "model"))):
        if key in query and query[key] not in allowed:
            raise Refused(400, "bad-parameter", f"{key} is {query[key]!r}", f"It is one of {', '.join(allowed)}.")
        found[key] = query.get(key)
    found["range"] = _range(query["range"]) if "range" in query else None
    return found


def _range(text: str) -> str | list[float]:
    if text == "frame":
        return text
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise Refused(400, "bad-parameter", f"range is {text!r}", "It is frame, or two numbers: range=0,1500.")
    return [low, high]


def picture(request: Request) -> bytes:
    """The bytes that were sent: the body, or the part ``file`` of a form. Raises ``Refused``."""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Refused(415, "encoded", "the body is compressed", "Send the picture as it is.")
    try:
        if request.mimetype != "multipart/form-data":
            return request.get_data(cache=False)
        part = request.files.get("file")
        if part is None:
            raise Refused(422, "no-file", "the form has no part called file", "Use curl -F file=@photo.jpg.")
        return part.stream.read()
    except RequestEntityTooLarge:
        raise Refused(413, "too-large", "the picture is too large", "Raise api.max_mb.") from None
