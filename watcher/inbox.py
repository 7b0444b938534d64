"""Inbox: what counts as a frame, which content a file holds, and what happens to a source afterwards."""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from watcher.durable import Replaced, bring_back, is_temporary, move_aside, out_of_reach, remove
from watcher.errors import SourceChanged, SourceGone, TooLarge
from watcher.frame import Identity, Source
from watcher.volume import Anchor, ignores_case, same_file

# Matched on the NFC name, case folded. Hidden names are handled before this list.
IGNORED = (
    *("icon\r", "thumbs.db", "desktop.ini", "@eadir", "~$*", "*~", "#*#", "network trash folder", "temporary items"),
    *("*.part", "*.partial", "*.crdownload", "*.download", "*.opdownload", "*.tmp", "*.temp", "*.filepart"),
    *("*.icloud", "*.sb-????????-??????", "*.aria2", "*.!ut", "*.textclipping", "*.webloc", "*.inetloc"),
    *("(a document being saved by *", "_unpack_*"),
)
# Folders that Finder shows as one thing; their insides are nobody's frames.
PACKAGES = (
    *(".app", ".photoslibrary", ".photolibrary", ".aplibrary", ".lrlibrary", ".lrdata", ".fcpbundle", ".imovielibrary"),
    *(".rtfd", ".pages", ".numbers", ".key", ".bundle", ".framework", ".download", ".logicx", ".band"),
)
_GONE = (errno.ENOENT, errno.ENOTDIR)
_DATALESS = 0x40000000  # SF_DATALESS, chflags(2)
_FINDER_BUSY_BEFORE_S = 631152000  # 1990: Finder dates a file that it is still copying decades back


@dataclass(frozen=True, slots=True)
class Sighting:
    """One directory entry: a ``source``, or the reason why it is ``passed`` over, or the ``trouble`` of looking."""

    rel: str
    source: Source | None = None
    copying: bool = False
    passed: str = ""
    trouble: OSError | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """The bytes of a source, all of one identity."""

    data: bytes
    sha256: str


Known = Callable[[str, int, int], bool]


class Inbox:
    """One watched folder. Holds no list of files: the folder itself is the backlog."""

    def __init__(self, folder: Path, *, recursive: bool, ignore: Sequence[str] = ()) -> None:
        self.folder = folder
        self.anchor = Anchor(folder)
        self.recursive = recursive
        self.on_dataless: Callable[[Path], bool] = lambda path: False  # whether somebody brings it in
        self._ignored = re.compile("|".join(fnmatch.translate(_comparable(pattern)) for pattern in (*IGNORED, *ignore)))
        self._folds: bool | None = None
        self._root: tuple[tuple[int, int], Path] | None = None

    @property
    def root(self) -> Path:
        """Where the folder really is; events carry this form. Followed anew when another folder is there."""
        try:
            state = os.stat(self.folder)
        except OSError:
            return Path(os.path.realpath(self.folder))
        mark = (state.st_dev, state.st_ino)
        if self._root is None or self._root[0] != mark:
            self._root = mark, Path(os.path.realpath(self.folder))
        return self._root[1]

    def prepare(self) -> None:
        """Create the folder where that is safe. Raises ``OSError``."""
        self.anchor.create()

    # -- seeing ---------------------------------------------------------------------------------------------------

    def scan(self, below: str = "", known: Known | None = None) -> Iterator[Sighting]:
        """Everything in the inbox (or in one of its folders), in no order, without holding it in memory.

        ``known(key, size, mtime_ns)`` is asked first, and what it knows is left out, for no more than that.

        Raises ``OSError`` where the inbox itself cannot be read: that is never an empty inbox.
        """
        self.anchor.check()
        root = self.root
        pending = [below]
        while pending:
            place = pending.pop()
            try:
                entries = os.scandir(root / place)
            except OSError as error:
                if not place:
                    raise
                if error.errno not in _GONE:
                    yield Sighting(place, trouble=error)
                continue
            with entries:
                for entry in entries:
                    rel = f"{place}/{entry.name}" if place else entry.name
                    if self._is_folder(entry):
                        if self.recursive and not self.passes_folder(entry.name):
                            pending.append(rel)
                    elif known is None or not self._is_known(rel, entry, known):
                        yield self._sight(root, rel, entry)

    def sight(self, path: str) -> Sighting | None:
        """One hinted path; ``None`` where it is not ours to look at, or no longer there."""
        rel = self.relative(path)
        if not rel:
            return None
        *folders, name = rel.split("/")
        if any(self.passes_folder(folder) for folder in folders) or (folders and not self.recursive):
            return None
        root = self.root
        try:
            state = os.lstat(root / rel)
        except OSError as error:
            return None if error.errno in _GONE else Sighting(rel, trouble=error)
        return self._judge(root, rel, name, state)

    def relative(self, path: str) -> str | None:
        """``path`` seen from the inbox; ``""`` for the inbox itself, ``None`` for what lies elsewhere."""
        for root in (str(self.root), str(self.folder)):
            if path == root:
                return ""
            if path.startswith(root + "/"):
                return path[len(root) + 1 :]
        return None

    def passes_folder(self, name: str) -> bool:
        """Whether a sub-folder is left alone, with all that is in it."""
        folded = _comparable(name)
        return name.startswith(".") or folded.endswith(PACKAGES) or self._matches(folded)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir(follow_symlinks=False)
        except OSError:
            return False

    def _is_known(self, rel: str, entry: os.DirEntry[str], known: Known) -> bool:
        if not rel.isascii():
            return False
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(state.st_mode) and known(self.keys(rel)[0], state.st_size, state.st_mtime_ns)

    def _sight(self, root: Path, rel: str, entry: os.DirEntry[str]) -> Sighting:
        try:
            return self._judge(root, rel, entry.name, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return Sighting(rel, passed="gone")
        except OSError as error:
            return Sighting(rel, trouble=error)

    def _judge(self, root: Path, rel: str, name: str, state: os.stat_result) -> Sighting:
        if name.startswith("."):
            return Sighting(rel, passed="hidden")
        if self._matches(_comparable(name)) or is_temporary(name):
            return Sighting(rel, passed="on the ignore list")
        if not stat.S_ISREG(state.st_mode):
            return Sighting(rel, passed="not a regular file")
        if is_dataless(state):
            code = errno.EINPROGRESS if self.on_dataless(root / rel) else errno.EDEADLK
            return Sighting(rel, trouble=OSError(code, "not downloaded from iCloud", str(root / rel)))
        birth_s = getattr(state, "st_birthtime", None)
        copying = birth_s is not None and birth_s < _FINDER_BUSY_BEFORE_S
        return Sighting(rel, Source(self.folder, rel, self._key(root, rel), identity_of(state)), copying)

    def _matches(self, folded: str) -> bool:
        return self._ignored.match(folded) is not None

    def keys(self, rel: str) -> tuple[str, str]:
        """The two keys that ``rel`` may have: by its composed spelling, and by its own."""
        if self._folds is None:
            self._folds = ignores_case(self.root)
        if rel.isascii():
            return (rel.lower(), rel.lower()) if self._folds else (rel, rel)
        both = unicodedata.normalize("NFC", rel), rel
        return (both[0].casefold(), both[1].casefold()) if self._folds else both

    def _key(self, root: Path, rel: str) -> str:
        if rel.isascii():
            return self.keys(rel)[0]
        composed = unicodedata.normalize("NFC", rel)
        twins = composed != rel and os.path.lexists(root / composed) and not same_file(root / composed, root / rel)
        # A volume that tells the two spellings apart holds two sources.
        return self.keys(rel)[1 if twins else 0]

    # -- taking ---------------------------------------------------------------------------------------------------

    def read(self, source: Source, max_bytes: int) -> Taken:
        """All bytes of exactly the content that was sighted.

        Raises ``SourceGone``, ``SourceChanged``, ``TooLarge``, and ``OSError`` where the volume is at fault.
        """
        if source.identity.size > max_bytes:
            raise TooLarge(
                f"the file has {source.identity.size / 1e6:.0f} MB, the limit is {max_bytes / 1e6:.0f} MB",
                "Raise limits.max_file_mb if it is meant to be this large.",
            )
        try:
            with open_source(source) as file:
                self._unchanged(source, os.fstat(file.fileno()))
                data = file.read(source.identity.size + 1)
                self._unchanged(source, os.fstat(file.fileno()))
        except FileNotFoundError:
            self.anchor.check()  # an inbox that is away says nothing about its files
            raise SourceGone(f"{source.rel} was taken out of the inbox") from None
        if len(data) != source.identity.size:
            raise SourceChanged(f"{source.rel} changed while it was read")
        return Taken(data, hashlib.sha256(data).hexdigest())

    def _unchanged(self, source: Source, state: os.stat_result) -> None:
        if not stat.S_ISREG(state.st_mode) or identity_of(state) != source.identity:
            raise SourceChanged(f"{source.rel} changed while it was in work", "It is done again.")

    # -- disposing ------------------------------------------------------------------------------------------------

    def dispose(self, source: Source, after: str, processed: Path) -> Path | None:
        """Move, keep or delete the source whose map is durable; returns where it went.

        A source that changed meanwhile is left alone: raises ``SourceChanged``. One that is gone is no error.
        """
        if after == "keep":
            return None
        try:
            self._unchanged(source, os.lstat(source.path))
            if after == "delete":
                self._delete(source)
                return None
            return self._move(source, processed)
        except FileNotFoundError:
            return None

    def _delete(self, source: Source) -> None:
        """Put out of reach first, then look again: what is removed is what was done."""
        hidden = out_of_reach(source.path)
        if identity_of(os.lstat(hidden)).content != source.identity.content:
            bring_back(hidden)
            raise SourceChanged(f"{source.rel} was replaced while it was deleted", "It is done again.")
        remove(hidden)

    def _move(self, source: Source, processed: Path) -> Path:
        place = (processed / source.rel).parent
        try:
            return move_aside(source.path, place, source.name, source.identity.content)
        except Replaced:
            raise SourceChanged(f"{source.rel} was replaced while it was put aside", "It is done again.") from None


def is_dataless(state: os.stat_result) -> bool:
    """Whether only the name is here, and the content in iCloud: reading a byte would download it."""
    return bool(getattr(state, "st_flags", 0) & _DATALESS)


def identity_of(state: os.stat_result) -> Identity:
    return Identity(state.st_size, state.st_mtime_ns, state.st_dev, state.st_ino)


def open_source(source: Source) -> BinaryIO:
    """Open for reading without following links and without waiting on something that is not a file."""

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))

    return open(source.path, "rb", opener=opener)


def lock_name(folder: Path) -> str:
    """The name of the lock for an inbox; locks live in the user's data folder, since volumes may not know locks."""
    return f"inbox-{hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:24]}.lock"


def _comparable(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()
