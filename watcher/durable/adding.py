"""Write a file whole or not at all, under a name that nothing has."""

from __future__ import annotations

from pathlib import Path

from watcher.durable.moving import rename_new
from watcher.durable.writing import put_whole


def add_whole(target: Path, data: bytes | memoryview) -> None:
    """As ``write_whole``, but whatever is there by then stays. Raises ``FileExistsError``, and ``OSError``."""
    put_whole(target, data, rename_new)
