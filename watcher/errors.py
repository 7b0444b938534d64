"""The error tree: each error carries its exit code, its remedy and its blame.

Blame answers the one question a seam asks: what happens to the frame now?

``frame``    the picture is at fault: quarantine it, the others go on
``session``  the network or its runtime is at fault: give the frame back, end the process, launchd starts it again
``volume``   a disk, a permission or a volume is at fault: keep the frame, say so, try again later
``config``   the settings are at fault: refuse to start
``usage``    the call is at fault: say so and end
"""

from __future__ import annotations

import errno
import os
import sys
from enum import StrEnum


class Blame(StrEnum):
    FRAME = "frame"
    SESSION = "session"
    VOLUME = "volume"
    CONFIG = "config"
    USAGE = "usage"


class ExitCode:
    """The exit codes of every verb. Never 78: launchd uses it for its own failures."""

    DONE = 0
    SOME_FAILED = 1
    USAGE = 2
    NO_INPUT = 66
    UNAVAILABLE = 69
    INTERNAL = 70
    CANNOT_CREATE = 73
    TRY_LATER = 75


class WatcherError(Exception):
    """What happened (``what``), and what a person can do about it (``remedy``)."""

    exit_code: int = ExitCode.INTERNAL
    blame: Blame = Blame.SESSION

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        what = self.what if self.what.endswith((".", "?", "!")) else f"{self.what}."
        return f"{what} {self.remedy}".rstrip() if self.remedy else self.what


class UsageError(WatcherError):
    exit_code = ExitCode.USAGE
    blame = Blame.USAGE


class ConfigError(WatcherError):
    """The settings cannot be used. ``problems`` holds one printable line for each mistake."""

    exit_code = ExitCode.USAGE
    blame = Blame.CONFIG

    def __init__(self, what: str, remedy: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(what, remedy)
        self.problems = problems


class NoInput(WatcherError):
    exit_code = ExitCode.NO_INPUT
    blame = Blame.USAGE


class Unavailable(WatcherError):
    """A service, a download or a daemon is not there."""

    exit_code = ExitCode.UNAVAILABLE
    blame = Blame.USAGE


class CannotCreate(WatcherError):
    exit_code = ExitCode.CANNOT_CREATE
    blame = Blame.VOLUME


class AnotherInstance(WatcherError):
    exit_code = ExitCode.TRY_LATER
    blame = Blame.USAGE


class ModelError(WatcherError):
    """A model file is missing, wrong, or of a shape that this program cannot feed."""

    exit_code = ExitCode.USAGE
    blame = Blame.CONFIG


class SessionError(WatcherError):
    """The runtime or the network failed; no picture is to blame until it has failed alone, again and again."""


class WrongThread(SessionError):
    """The session was touched by a thread that does not own it."""


class FrameError(WatcherError):
    """This picture cannot become a depth map. ``code`` is stable and lands in the reason file."""

    exit_code = ExitCode.SOME_FAILED
    blame = Blame.FRAME
    code = "unreadable"


class NotAPicture(FrameError):
    code = "not-a-picture"


class Unsupported(FrameError):
    code = "unsupported"


class Truncated(FrameError):
    """The file ends before the picture does. It may still be growing: it waits before it counts as failed."""

    code = "truncated"


class Corrupt(FrameError):
    code = "corrupt"


class TooLarge(FrameError):
    code = "too-large"


class NoDepth(FrameError):
    """The network gave nothing usable for this picture."""

    code = "no-depth"


class JournalDamaged(WatcherError):
    """The journal is no journal any more. Nothing is done without one: a new one would do kept sources again."""

    blame = Blame.CONFIG


class SourceChanged(WatcherError):
    """The source is no longer the content that was sighted; it is left alone and done again."""

    blame = Blame.VOLUME


class SourceGone(WatcherError):
    """The source was taken away by its owner; there is nothing left to do."""

    blame = Blame.VOLUME


class NameTaken(WatcherError):
    """A file of another origin has the name that a map was to get. It stays, and the map gets another name."""

    blame = Blame.VOLUME


class VolumeTrouble(WatcherError):
    """A disk, a volume or a permission stands in the way. Never a reason to quarantine a frame."""

    exit_code = ExitCode.CANNOT_CREATE
    blame = Blame.VOLUME


_EXPLAINED: dict[int, tuple[str, str]] = {
    errno.EPERM: (
        "the system refuses access",
        "On a Mac: System Settings > Privacy & Security > Files & Folders, allow this Python; or the file is locked.",
    ),
    errno.EACCES: ("permission is missing", "Check the owner and the mode of the folder."),
    errno.EDEADLK: (
        "the file is in iCloud and has not been downloaded",
        "Finder: Keep Downloaded brings it in; or set watch.fetch_dataless: true.",
    ),
    errno.EINPROGRESS: ("the file is being fetched from iCloud", "It is done when it is here."),
    errno.EBUSY: ("the file or volume is busy", "It is tried again by itself."),
    errno.ESTALE: ("the network volume lost the file handle", "It is tried again when the volume is back."),
    errno.ENOSPC: (
        "the disk is full, or nearly so",
        "Make room: 64 MB beyond the map are kept free. Work goes on by itself.",
    ),
    errno.EDQUOT: ("the disk quota is used up", "Make room; work goes on by itself."),
    errno.EROFS: ("the volume is read-only", "Mount it writable; work goes on by itself."),
    errno.EIO: ("the disk or volume reports an input/output error", "Check the disk; it is tried again by itself."),
    errno.ENXIO: ("the volume is not there", "Connect or mount it again; work goes on by itself."),
    errno.ENODEV: ("the device is gone", "Connect it again; work goes on by itself."),
    errno.ENOTCONN: ("the network volume is not connected", "Connect it again; work goes on by itself."),
    errno.ETIMEDOUT: ("the network volume does not answer", "It is tried again by itself."),
    errno.EHOSTDOWN: ("the network volume does not answer", "It is tried again by itself."),
    errno.EMFILE: ("too many files are open", "It is tried again by itself."),
    errno.ENFILE: ("too many files are open in the whole system", "It is tried again by itself."),
    errno.ENOMEM: ("memory is short", "It is tried again by itself."),
    errno.EINTR: ("the call was interrupted", "It is tried again by itself."),
    errno.EAGAIN: ("the file is not ready", "It is tried again by itself."),
}


def explained() -> dict[int, tuple[str, str]]:
    """Every error number that has words of its own: (what happened, what to do)."""
    return dict(_EXPLAINED)


# What a system says when only this one name or place is wrong, while others of the same volume may be well.
_ONE_PLACE = frozenset(
    (
        *(errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EILSEQ, errno.EINVAL),
        *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.EEXIST),
    )
)


def may_be_one_place(error: OSError) -> bool:
    """Whether it may be that only this file cannot be written. A full or absent volume stops every file alike."""
    return error.errno in _ONE_PLACE


def explain(error: OSError) -> tuple[str, str]:
    """(what happened, what to do) for an operating system error, in words.

    Every ``OSError`` about a file is the volume's fault until proven otherwise: errno is not blame, so no errno
    ever sends a frame to quarantine.
    """
    what, remedy = _refused(error) or _EXPLAINED.get(
        error.errno or 0, (error.strerror or type(error).__name__, "It is tried again by itself.")
    )
    where = f": {error.filename}" if error.filename else ""
    return f"{what}{where}", remedy


_BY_HAND = (
    ("It is tried again by itself.", "Then run the command again."),
    ("It is tried again when the volume is back.", "Run the command again when the volume is back."),
    ("it is tried again by itself", "then run the command again"),
    ("Work goes on by itself.", "Then run the command again."),
    ("work goes on by itself", "then run the command again"),
    ("It is done when it is here.", "Run the command again when it is here."),
)


def by_hand(text: str) -> str:
    """The same advice from a command that ends: nothing goes on by itself then."""
    for lives, ends in _BY_HAND:
        text = text.replace(lives, ends)
    return text


def in_words(error: OSError) -> str:
    """The same as one text, without the name of the file: one text for whatever stands in the way of many files."""
    what, remedy = explain(error)
    return f"{what.removesuffix(f': {error.filename}')}. {remedy}"


_MAC: bool = sys.platform == "darwin"
_LOCKED = 0x00020002  # UF_IMMUTABLE, SF_IMMUTABLE


def _refused(error: OSError) -> tuple[str, str] | None:
    """EPERM on a Mac: a lock that Finder shows, or macOS guarding a folder; missing Unix permission is EACCES."""
    if error.errno != errno.EPERM:
        return None
    try:
        flags = getattr(os.lstat(error.filename or ""), "st_flags", 0)
    except (OSError, TypeError, ValueError):
        flags = 0
    if flags & _LOCKED:
        return "the file is locked", "Finder > File > Get Info: untick Locked. It is tried again by itself."
    return ("macOS refuses access", privacy_clicks(sys.executable)) if _MAC else None


def privacy_clicks(program: str) -> str:
    """What to click so that ``program`` may read what macOS guards. The list there wants the file, not a link to it."""
    return (
        "System Settings > Privacy & Security > Full Disk Access > + > Command-Shift-G, then enter "
        f"{os.path.realpath(program)} (or Files & Folders, if this Python is listed there), then "
        "`depth-watcher restart`. After an upgrade of Python it has to be done again. Or use folders in "
        "~/DepthWatcher, which is not guarded."
    )


def blame_of(error: BaseException) -> Blame:
    """Who is at fault. Unknown exceptions blame the frame that was in hand: it is quarantined, the others go on."""
    if isinstance(error, WatcherError):
        return error.blame
    if isinstance(error, OSError):
        return Blame.VOLUME
    return Blame.FRAME
