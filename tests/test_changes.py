"""What happens to a file that is touched, grows, is replaced, renamed, deleted or re-created, wherever its frame is.

The rooms are the real ones, and run in the test's own thread, one step after the other; between two steps, or in the
middle of one, the test does to the file what a person or a program would do. Then everybody leaves it alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_picture
from fake_session import mean_of_channels
from rooms import files, settings

from watcher import comeback, inbox
from watcher.course import Course, Troubles
from watcher.depth import Plan
from watcher.finisher import Finisher
from watcher.folder import Folder
from watcher.frame import Frame, Outcome, Raw, Ready, Wholeness
from watcher.imagefile import encode, read_facts
from watcher.intake import Intake, Pace
from watcher.intake.finding import Finder
from watcher.journal import Journal
from watcher.loader import Loader
from watcher.settle import Rules

NAME, OTHER = "a.png", "b.png"
PLAN = Plan(16, 24)


class Way:
    """A frame's whole path, in one thread. ``at`` holds what happens when a frame comes by a gate, once."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch, after: str) -> None:
        self.place, self.now = place, 1000.0
        made = settings(place, folder__after=after)
        self.folder = Folder(0, made.folders[0], "fake")
        self.folder.inbox.prepare()
        self.outbox, self.failed, self.processed = place / "out", place / "failed", place / "processed"
        self.file = self.folder.inbox.folder / NAME
        self.contents = {
            "A": make_picture(place / "A.png", (40, 30)).read_bytes(),
            "B": make_picture(place / "B.png", (44, 33), "noise").read_bytes(),
        }
        whole = self.contents["A"]
        self.contents["part of A"] = whole[: len(whole) // 2]
        self.contents["broken"] = whole[:60] + b"\xff" * 30 + whole[90:]
        self.at: dict[str, Callable[[], None]] = {}
        self.journal = Journal(place / "journal.db")
        self.journal.create()
        course = Course((self.folder,), self.journal.path, self._ended, Troubles(), lambda: None)
        pace = Pace(Rules(0.5, 600.0), 30.0)
        self.intake = Intake(course, pace)
        self.finder = Finder(course, self.journal, pace)
        self.finder.remember()
        self.loader = Loader(course, made.limits, threads=1)
        self.finisher = Finisher(course, dict, threads=1)
        self._gates(patch)

    def _gates(self, patch: pytest.MonkeyPatch) -> None:
        real_unchanged, real_publish = inbox.Inbox._unchanged, self.folder.outbox.publish

        def unchanged(room: inbox.Inbox, *args: Any) -> None:
            real_unchanged(room, *args)
            self.pass_by("reading")  # the file is open and was what it should be; its bytes have not been read

        def publish(*args: Any) -> tuple[Path, ...]:
            self.pass_by("finishing")
            return real_publish(*args)

        patch.setattr(inbox.Inbox, "_unchanged", unchanged)
        patch.setattr(self.folder.outbox, "publish", publish)
        for module in ("", ".finding", ".looking", ".pace"):
            patch.setattr(f"watcher.intake{module}.now_s", lambda: self.now)

    def pass_by(self, gate: str) -> None:
        self.at.pop(gate, lambda: None)()

    def _ended(self, frame: Frame, outcome: Outcome) -> None:
        self.finder.ended(frame, outcome)

    # -- the path -------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Intake looks, and hands on what has settled."""
        self.finder.scan_what_is_due(self.now)
        self.intake._hand_on(self.finder, self.journal)
        self.pass_by("waiting" if not len(self.intake.work) else "queued")

    def frame(self) -> bool:
        """One frame, from the queue to the end of its path."""
        if not len(self.intake.work):
            return False
        frame = self.intake.work.take()
        assert frame is not None
        ready = self.loader._load(self.journal, 0, frame, PLAN)
        if ready is not None:
            self.pass_by("engine")
            self.finisher._finish(self.journal, 0, raw_of(ready))
        return True

    def rest(self) -> None:
        """Nobody touches anything any more."""
        for _ in range(6):
            self.now += 31.0
            self.turn()
            while self.frame():
                self.turn()
        self.finder.prune()

    # -- looking --------------------------------------------------------------------------------------------------

    def maps(self) -> dict[str, str]:
        """Of which content each map is, by the map's name without its ending."""
        names = {hashlib.sha256(data).hexdigest(): name for name, data in self.contents.items()}
        facts = {name: read_facts(self.outbox / name) or {} for name in files(self.outbox)}
        return {name.removesuffix("_depth.png"): names[told["source_sha256"]] for name, told in facts.items()}


def raw_of(ready: Ready) -> Raw:
    depth = mean_of_channels(ready.tensor)
    return Raw(ready.frame, depth, ready.height_px, ready.width_px, ready.facts, ready.aside)


# --- what is done to a file -------------------------------------------------------------------------------------------


def touch(path: Path, _: Way) -> None:
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1_000_000_000))


def grow(path: Path, way: Way) -> None:
    """Written on, in place: the rest of A where half of it is there, else all of B."""
    data = path.read_bytes()
    path.write_bytes(way.contents["A" if data == way.contents["part of A"] else "B"])


def replace(path: Path, way: Way) -> None:
    beside = way.place / "beside"
    beside.write_bytes(way.contents["B"])
    os.replace(beside, path)


def rename(path: Path, _: Way) -> None:
    path.rename(path.with_name(OTHER))


def delete(path: Path, _: Way) -> None:
    path.unlink()


def recreate(_: Path, way: Way) -> None:
    way.file.unlink(missing_ok=True)
    way.file.write_bytes(way.contents["B"])


CHANGES = {
    "touched": touch,
    "growing": grow,
    "replaced": replace,
    "renamed": rename,
    "deleted": delete,
    "re-created": recreate,
}

# --- the table --------------------------------------------------------------------------------------------------------
# For each state: what the maps are of afterwards. {} is no map. Where bytes had been read when the file went away, the
# map is made all the same: the work is done, and nobody can say that it was not wanted.

A, B = {"a": "A"}, {"a": "B"}
MOVED, BOTH = {"b": "A"}, {"a": "A", "b": "A"}
BEFORE = {"touched": A, "growing": B, "replaced": B, "renamed": MOVED, "deleted": {}, "re-created": B}
AFTER = {"touched": A, "growing": B, "replaced": B, "renamed": BOTH, "deleted": A, "re-created": B}
TABLE = {
    # Half of A is there, and what grows becomes A. What does not goes on waiting, under whatever name.
    "waiting": {**BEFORE, "touched": {}, "growing": A, "renamed": {}},
    "queued": BEFORE,
    "reading": AFTER,  # an open file can be read to its end, whatever its name is by then
    "engine": AFTER,
    "finishing": AFTER,
    "done": {**dict.fromkeys(CHANGES, A), "re-created": B},  # in processed, where nobody looks
    "kept": AFTER,  # done with `after: keep`
    "held": {"touched": {}, "growing": A, "replaced": B, "renamed": {}, "deleted": {}, "re-created": B},
    "failed": {**{name: {} for name in CHANGES}, "re-created": B},  # in quarantine, where only `retry` looks
}
# What still waits in the inbox, and what is counted as failed, where that is not nothing.
WAITING = {
    (state, how): [name] for state in ("waiting", "held") for how, name in (("touched", NAME), ("renamed", OTHER))
}
FAILED = {("failed", "touched"): 1, ("failed", "growing"): 1, ("failed", "replaced"): 1}


@pytest.fixture
def way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Way]:
    made = Way(tmp_path, monkeypatch, "keep" if request.node.callspec.params["state"] == "kept" else "move")
    yield made
    made.journal.close()


def bring_to(way: Way, state: str, change: Callable[[Path, Way], None]) -> None:
    """The file's frame is in that state, and there the file is changed."""
    first = {"waiting": "part of A", "held": "part of A", "failed": "broken"}.get(state, "A")
    way.file.write_bytes(way.contents[first])
    if state in ("waiting", "queued", "reading", "engine", "finishing"):
        way.at[state] = lambda: change(way.file, way)
        way.turn()
        way.frame()
        assert not way.at, f"the frame never came by {state}"
        return
    if state == "held":
        hold(way)
        place = way.file
    else:
        way.turn()
        assert way.frame()
        place = {"done": way.processed / NAME, "kept": way.file, "failed": way.failed / NAME}[state]
    assert place.exists()
    change(place, way)


def hold(way: Way) -> None:
    """Its structure looked whole, but the decoder found that the end is missing: the journal holds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("watcher.intake.looking.wholeness_of", lambda _: Wholeness.WHOLE)
        way.turn()
    assert way.frame()
    assert [row.rel for row in way.journal.in_state("held")] == [NAME]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("state", TABLE)
def test_table(way: Way, state: str, change: str) -> None:
    """The newest content under a name has one map, and only it; nothing is lost, doubled or left in hand."""
    bring_to(way, state, CHANGES[change])
    way.rest()
    assert way.maps() == TABLE[state][change]
    assert way.journal.in_state("attempt") == []
    waiting = WAITING.get((state, change), [])
    assert way.finder.waiting == len(waiting)
    kept = [f"{name}.png" for name in TABLE[state][change]] if state == "kept" else []
    gone = [NAME] if (state, change) in (("kept", "renamed"), ("kept", "deleted")) else []
    assert files(way.folder.inbox.folder) == sorted({*waiting, *kept} - {*gone})
    assert way.journal.counts().failed == FAILED.get((state, change), 0)


@pytest.mark.parametrize("state", ["failed"])
def test_retry_while_its_successor_is_in_work(way: Way, state: str) -> None:
    """What comes back from quarantine takes nothing from the newer content of its name that is in work by then."""
    way.file.write_bytes(way.contents["broken"])
    way.turn()
    assert way.frame()
    way.file.write_bytes(way.contents["A"])
    way.now += 31.0
    way.turn()
    (case,) = way.folder.quarantine.cases()
    assert comeback.bring_back(way.place, way.folder.quarantine, case).name == "a (2).png"
    assert [row.rel for row in way.journal.in_state("attempt")] == [NAME]
    assert way.frame()
    counts = way.journal.counts()
    assert (counts.done, counts.failed, counts.in_flight) == (1, 0, ())
    way.rest()
    assert way.maps() == A
    assert files(way.failed) == ["a (2).png", "a (2).png.error.json"]


@pytest.mark.parametrize("state", ["failed"])
def test_a_failure_that_is_taken_away(way: Way, state: str) -> None:
    """Where quarantine takes nothing, a broken picture stays in the inbox; once it is removed, it is over."""
    way.failed.write_bytes(b"a file where the folder should be")
    way.file.write_bytes(way.contents["broken"])
    way.turn()
    assert way.frame()
    way.rest()
    assert (way.journal.counts().failed, files(way.folder.inbox.folder)) == (1, [NAME])
    way.file.unlink()
    way.rest()
    assert way.journal.counts().failed == 0
    way.file.with_name("a.jpg").write_bytes(make_picture(way.place / "b.jpg").read_bytes())
    way.rest()
    assert files(way.outbox) == ["a_depth.png"]


@pytest.mark.parametrize("what", ["a file", "a folder", "another's map"])
@pytest.mark.parametrize("state", ["queued", "engine", "finishing"])
def test_a_name_that_is_taken_meanwhile(way: Way, state: str, what: str) -> None:
    """Whatever comes by the map's name while its frame is in work stays; the map has the next name, for good."""
    place = way.outbox / "a_depth.png"

    def take() -> None:
        place.parent.mkdir(exist_ok=True)
        if what == "a folder":
            place.mkdir()
        else:
            facts = {"source": "a.jpg", "source_bytes": "1"}
            map_ = encode(np.zeros((4, 4), np.uint16), "png16", facts)
            place.write_bytes(map_ if what == "another's map" else b"somebody's work")

    way.at[state] = take
    way.file.write_bytes(way.contents["A"])
    way.turn()
    assert way.frame()
    before = None if place.is_dir() else place.read_bytes()
    for content in ("A", "B"):
        way.file.write_bytes(way.contents[content])
        way.rest()
        assert sorted(path.name for path in way.outbox.iterdir()) == ["a.png_depth.png", "a_depth.png"]
        told = read_facts(way.outbox / "a.png_depth.png") or {}
        assert told["source_sha256"] == hashlib.sha256(way.contents[content]).hexdigest()
        assert before == (None if place.is_dir() else place.read_bytes())
    assert way.journal.counts().failed == 0
