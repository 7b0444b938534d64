"""Outbox: the name of a map, and its publishing, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import string
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from watcher.durable import NAME_BYTES, add_whole, make_folder, numbered, temporary_name, write_new, write_whole
from watcher.errors import NameTaken
from watcher.volume import Anchor, free_bytes, is_there

FIELDS = ("stem", "name", "ext", "model", "frame")
# What must still fit behind a base: ".preview.jpg", " (999)" and the like.
_RESERVED_BYTES = 32
_SPARE_BYTES = 64 << 20  # left free on the volume, so that a journal and a log can still be written


@dataclass(frozen=True, slots=True)
class Output:
    """One file to publish: ``ending`` is what follows the base (``.png``, ``.preview.jpg``)."""

    ending: str
    data: bytes


class Outbox:
    def __init__(self, folder: Path, template: str, model: str) -> None:
        self.folder = folder
        self.anchor = Anchor(folder)
        self._template = template
        self._model = model

    def prepare(self) -> None:
        """Create the folder where that is safe. Raises ``OSError``."""
        self.anchor.create()

    def bases(self, rel: str) -> Iterator[str]:
        """The names that the map of ``rel`` may have, best first, without extension; sub-folders are mirrored.

        ``a_depth``, then ``a.jpg_depth`` (two pictures that share a stem), then ``a.jpg_depth (2)`` …
        """
        folder, _, name = rel.rpartition("/")
        lead = f"{folder}/" if folder else ""
        yield lead + shorten(fill(self._template, name, self._model))
        whole = shorten(fill(self._template, name, self._model, whole_name=True))
        for candidate in numbered(whole + "."):  # the dot keeps the number at the end of the base
            yield lead + candidate.removesuffix(".")

    def there(self, base: str, endings: Iterable[str]) -> tuple[str, ...]:
        """With which of these endings a file of that name is there. Raises ``OSError`` where that cannot be told."""
        return tuple(ending for ending in endings if is_there(self.folder / (base + ending)))

    def publish(
        self, base: str, outputs: tuple[Output, ...], replaced: Collection[str] | None = None
    ) -> tuple[Path, ...]:
        """Make the files appear, each whole; the first, the map itself, comes last, so that it stands for all.

        ``replaced``: the endings of files that may be replaced; ``None``: all. Raises ``NameTaken`` where another one
        has come by then: it stays. Raises ``OSError``; nothing half is left then, and publishing again is harmless.
        """
        self.anchor.create()
        target = self.folder / base
        make_folder(target.parent)
        needed = sum(len(output.data) for output in outputs)
        if free_bytes(target.parent) < needed + _SPARE_BYTES:
            raise OSError(errno.ENOSPC, "the disk is nearly full", str(target.parent))
        paths, added = [], []
        try:
            for output in reversed(outputs):
                path = target.with_name(target.name + output.ending)
                paths.append(path)
                if replaced is None or output.ending in replaced:
                    write_whole(path, output.data)
                else:
                    _add(path, output.data)
                    added.append(path)
        except NameTaken:
            for path in added:  # what belongs to no map of ours does not stay behind
                with contextlib.suppress(OSError):
                    path.unlink()
            raise
        return tuple(reversed(paths))

    def usable(self) -> bool:
        """Whether files can be written into the outbox itself; if so, only one map's own place is in trouble."""
        probe = self.folder / temporary_name("probe")
        try:
            self.anchor.check()
            write_new(probe, b"probe", durable=False)
        except OSError:
            return False
        finally:
            with contextlib.suppress(OSError):
                probe.unlink()
        return True


def _add(path: Path, data: bytes) -> None:
    try:
        add_whole(path, data)
    except FileExistsError as error:
        if not is_there(path):
            raise
        raise NameTaken(f"{path} has come meanwhile, and is not ours to replace") from error


def fill(template: str, name: str, model: str, *, whole_name: bool = False) -> str:
    """The base that ``template`` gives for a file called ``name``."""
    stem, _, extension = name.rstrip().rpartition(".")
    if not stem:
        stem, extension = name, ""
    if whole_name:
        stem = name
    digits = len(stem) - len(stem.rstrip(string.digits))
    values: Mapping[str, str] = {
        "stem": stem,
        "name": name,
        "ext": extension,
        "model": model,
        "frame": stem[len(stem) - digits :] if digits else "",
    }
    return template.format_map(values)


def shorten(base: str) -> str:
    """``base``, cut so that extension and temporary marks still fit; a hash keeps two cut names apart."""
    room = NAME_BYTES - _RESERVED_BYTES
    raw = os.fsencode(base)
    if len(raw) <= room:
        return base
    mark = f"~{zlib.crc32(raw):08x}"
    while len(os.fsencode(base)) > room - len(mark):
        base = base[:-1]
    return base + mark
