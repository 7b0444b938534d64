"""Kill the program before and after every step that it takes on disk, start it again, and look at what is there.

``python points.py PLACE KIND [NUMBER|all]`` first runs the program once to count the points, and then once for each
chosen one, with ``os._exit`` at that point, followed by a normal start. It finds the points by itself: audit events
of the interpreter, the calls that raise none, and every statement that goes to SQLite. One line of JSON for each.

``KIND``: what happens to sources (``move``, ``keep``, ``delete``), or ``across``: ``processed`` and ``failed`` lie on
other volumes.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import misbehaving
from conftest import make_picture
from PIL import Image

# Loaded once, before any child, for speed.
import watcher.cli.working
import watcher.config.eating
import watcher.config.reading
import watcher.config.settings
import watcher.daemon
import watcher.recovery
from watcher import cli, durable
from watcher.durable import moving
from watcher.journal import Journal

# Each picture has a size of its own, so that its map is known by it.
GOOD = {"good.png": (40, 30), "twin.jpg": (42, 30), "twin.png": (44, 30), "sub/deep.png": (46, 30)}
BAD = "bad.png"
KILLED = 9
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS = frozenset(
    ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.utime", "os.chmod")
)


# --- in the child -----------------------------------------------------------------------------------------------------


class Points:
    """Counts steps, and ends the process at the chosen one."""

    def __init__(self, place: Path, kill_at: int | None) -> None:
        self._place, self._kill_at = str(place), kill_at
        self._lock = threading.Lock()
        self._local = threading.local()
        self.labels: list[str] = []

    def point(self, label: str) -> None:
        with self._lock:
            self.labels.append(label)
            if len(self.labels) == self._kill_at:
                os._exit(KILLED)

    def listen(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(path, (str, bytes, os.PathLike)) and isinstance(flags, int) and flags & _WRITING:
                self._at(event, path)
        elif event in _EVENTS:
            self._at(event, args[0])

    def _at(self, event: str, path: Any) -> None:
        name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else f"descriptor {path}"
        if name.startswith((self._place, "descriptor")):
            self.point(f"before {event} {os.path.basename(name)}")

    def around(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self.point(f"before {label}")
            result = call(*args, **options)
            self.point(f"after {label}")
            return result

        return counted

    def install(self) -> None:
        for name in ("fsync", "write", "replace", "unlink", "rename", "truncate", "mkdir"):
            setattr(os, name, self.around(f"os.{name}", getattr(os, name)))
        moving._exclusive = self.around("exclusive rename", moving._exclusive)
        points = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
                points.point(f"before {sql[:30]}")
                done = super().execute(sql, *args)
                points.point(f"after {sql[:30]}")
                return done

        connect = sqlite3.connect
        sqlite3.connect = lambda *args, **options: connect(*args, factory=Connection, **options)  # type: ignore[assignment]
        sys.addaudithook(self.listen)


def across(source: bytes, target: bytes) -> int:
    """As between two volumes."""
    apart = (b"/processed/", b"/failed/", b"/in/")
    where = [next((name for name in apart if name in path), b"") for path in (source, target)]
    return errno.EXDEV if where[0] != where[1] else _real_exclusive(source, target)


_real_exclusive = moving._exclusive


def live(place: Path, kind: str, kill_at: int | None, counted: bool) -> None:
    """One life of the program, in this process; does not return."""
    code = 70
    try:
        with (place / "log").open("ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        misbehaving.install()
        if kind == "across":
            moving._exclusive = across
            watcher.recovery.same_volume = lambda *_: False  # type: ignore[attr-defined]
        points = Points(place, kill_at)
        if counted:
            points.install()
        sys.argv = ["depth-watcher", "once", "--config", str(place / "settings.yaml")]
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 70
        if counted:
            (place / "labels").write_text("\n".join(points.labels))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


# --- in the parent ----------------------------------------------------------------------------------------------------


def run(place: Path, kind: str, kill_at: int | None = None, *, counted: bool = False) -> int:
    """Nothing is open in this process, so it may fork; the child is the program."""
    child = os.fork()
    if child == 0:
        live(place, kind, kill_at, counted)
    _, state = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(state)


def lay_out(place: Path, kind: str, store: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(store, place / "in")
    folders = {name: str(place / name) for name in ("processed", "failed")}
    settings = {
        "folders": [
            {
                "inbox": str(place / "in"),
                "outbox": str(place / "out"),
                "after": "move" if kind == "across" else kind,
                "output": {"sidecar": True},
                **folders,
            }
        ],
        "watch": {"settle_s": 0, "patience_s": 0},
        "model": {"name": "starter"},
        "log": {"file": str(place / "program.log")},
        "state_dir": str(place / "state"),
    }
    (place / "settings.yaml").write_text(json.dumps(settings))


def files(place: Path) -> dict[str, Path]:
    return {str(path.relative_to(place)): path for path in place.rglob("*") if not path.is_dir()}


def maps(place: Path) -> list[tuple[int, int]]:
    """The sizes of all visible maps; reading one that is half raises."""
    sizes = []
    for name, path in files(place / "out").items():
        if not path.name.startswith(".") and name.endswith(".png"):
            with Image.open(path) as image:
                image.load()
                sizes.append(image.size)
    return sorted(sizes)


def wrong_after_kill(place: Path) -> Iterator[str]:
    """Whatever moment it was: no half map is to be seen, and each source is there or its map is."""
    try:
        made = maps(place)
    except Exception as error:
        yield f"a half map: {error!r}"
        return
    if len(made) != len(set(made)):
        yield f"a source with two maps: {made}"
    kept = {**files(place / "in"), **files(place / "processed")}
    for name, size in GOOD.items():
        if name not in kept and size not in made:
            yield f"{name} is lost"
    if BAD not in kept and BAD not in files(place / "failed"):
        yield f"{BAD} is lost"


def wrong_at_last(place: Path, kind: str) -> Iterator[str]:
    """After a normal start: everything is done once, filed once, counted once, and nothing hidden is left."""
    made = maps(place)
    if made != sorted(GOOD.values()):
        yield f"maps of {made}"
    sidecars = [name for name in files(place / "out") if name.endswith(".json")]
    if len(sidecars) != len(GOOD):
        yield f"sidecars {sidecars}"
    where = {"move": "processed", "across": "processed", "keep": "in"}.get(kind)
    sources = {folder: sorted(files(place / folder)) for folder in ("in", "processed", "failed")}
    expected: dict[str, list[str]] = {"in": [], "processed": [], "failed": sorted([BAD, f"{BAD}.error.json"])}
    if where:
        expected[where] = sorted(GOOD)
    if sources != expected:
        yield f"sources {sources}"
    hidden = [str(path) for path in files(place).values() if durable.is_temporary(path.name)]
    if hidden:
        yield f"left behind {hidden}"
    yield from wrong_in_journal(place)


def wrong_in_journal(place: Path) -> Iterator[str]:
    journal = Journal(place / "state" / "journal.db")
    counts = journal.counts()
    history = sorted(row.rel for row in journal.in_state("done"))
    failures = [(row.rel, row.filed) for row in journal.last_failures()]
    journal.close()
    if (counts.done, counts.failed, counts.in_flight) != (len(GOOD), 1, ()):
        yield f"counts {counts}"
    if history != sorted(GOOD) or failures != [(BAD, True)]:
        yield f"history {history}, {failures}"


def one_point(place: Path, kind: str, store: Path, number: int) -> dict[str, Any]:
    lay_out(place, kind, store)
    code = run(place, kind, number, counted=True)
    problems = list(wrong_after_kill(place))
    again = run(place, kind)
    if again not in (0, 1):
        problems.append(f"the next start ended with {again}")
    problems += wrong_at_last(place, kind)
    before = sorted((name, path.stat().st_mtime_ns) for name, path in files(place / "out").items())
    if run(place, kind) != 0:
        problems.append("a start with nothing to do did not end with 0")
    if before != sorted((name, path.stat().st_mtime_ns) for name, path in files(place / "out").items()):
        problems.append("something was done again")
    return {"point": number, "killed": code == KILLED, "problems": problems}


def main(place: Path, kind: str, how_many: str) -> None:
    store = place / "store"
    for name, size in GOOD.items():
        make_picture(store / name, size)
    (store / BAD).write_text("this is no picture")
    work = place / "work"
    lay_out(work, kind, store)
    if run(work, kind, counted=True) != 1:
        raise SystemExit(f"the run that counts failed:\n{(work / 'log').read_text()}")
    labels = (work / "labels").read_text().splitlines()
    print(json.dumps({"points": len(labels), "labels": labels}), flush=True)
    most = len(labels) if how_many == "all" else min(int(how_many), len(labels))
    for step in range(most):
        number = 1 + step * len(labels) // most
        found = one_point(work, kind, store, number)
        found["label"] = labels[number - 1]
        if found["problems"]:
            found["log"] = (work / "log").read_text()
            kept = place / f"problem-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(work, kept, symlinks=True)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "all")
