"""The running range of a live shot moves once for each frame, however often that frame is given back."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_picture
from rooms import files
from rooms import folder as make_folder

from watcher.course import Course, Troubles
from watcher.finisher import Finisher
from watcher.frame import Frame, Identity, Outcome, Raw, Source
from watcher.handover import Handover
from watcher.inbox import identity_of
from watcher.journal import Journal
from watcher.shots import Decision, Shots

Ends = tuple[float, float]


def a_raw(name: str, high: float, *, mtime_ns: int = 1) -> Raw:
    """A ramp from 0 to ``high``."""
    source = Source(Path("/in"), name, name, Identity(100, mtime_ns))
    values = np.linspace(0.0, high, 48 * 64, dtype=np.float32).reshape(48, 64)
    return Raw(Frame(1, source, 0, name), values, 48, 64)


class Store:
    """The ranges of one live shot on a disk of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.begin_anew()

    def begin_anew(self) -> None:
        """Another life of the program."""
        self.shots = Shots(self.place, "net", 10**9)
        self.shots.prepare()

    def decide(self, raw: Raw) -> Ends:
        made = self.shots.decide(raw, "shot-live", Path("/out"))
        assert made.mode == "shot-live"
        assert made.ends is not None
        return made.ends

    @property
    def file(self) -> Path:
        (found,) = self.place.glob("*/live.json")
        return found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


@pytest.fixture
def other(tmp_path: Path) -> Store:
    """Where every frame comes once."""
    return Store(tmp_path / "other")


WALL, NEARER, AFTER = a_raw("a_1.png", 100), a_raw("a_2.png", 140), a_raw("a_3.png", 104)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_frame_that_comes_again_moves_nothing(store: Store, other: Store, *, restarts: bool) -> None:
    """Given back and decided about again, in this life or in the next, it has the range that it had; so have others."""
    assert store.decide(WALL) == other.decide(WALL)
    once = other.decide(NEARER)
    for _ in range(20):
        assert store.decide(NEARER) == once
        if restarts:
            store.begin_anew()
    assert store.decide(AFTER) == other.decide(AFTER)


def test_two_frames_in_hand(store: Store, other: Store) -> None:
    """The earlier one comes again when the later one has moved the range on: it has its own, and nothing moves back."""
    for raw in (WALL, NEARER):
        assert store.decide(raw) == other.decide(raw)
    assert list(store.decide(WALL)) == pytest.approx([0.5, 99.5])
    assert store.decide(NEARER) == other.decide(NEARER)
    assert store.decide(AFTER) == other.decide(AFTER)


def test_a_frame_that_is_held_up_for_long(store: Store, other: Store) -> None:
    """Hundreds of others are done between its tries; it still has the range that it had, and is never a cut."""
    held_up = a_raw("a_9.png", 103)
    before = [store.decide(WALL), store.decide(held_up)]
    assert before == [other.decide(WALL), other.decide(held_up)]
    for number in range(270):
        raw = a_raw(f"a_1{number:03}.png", 100)
        assert store.decide(raw) == other.decide(raw)
        store.shots.finished_live(raw.frame.source)
    assert store.decide(held_up) == before[1]
    assert store.decide(AFTER) == other.decide(AFTER)
    assert len(json.loads(store.file.read_text())["given"]) < 5


def test_what_is_remembered_is_bounded(store: Store) -> None:
    """A folder in the outbox that takes no map: frames without end are decided about, and none is ever done."""
    sizes = []
    for number in range(300):
        store.decide(a_raw(f"a_{number:04}.png", 100))
        sizes.append(store.file.stat().st_size)
    assert sizes[-1] == sizes[-20]


def test_a_source_that_is_done_and_dropped_again_counts_again(store: Store, other: Store) -> None:
    """So does new content under the name of a frame that was given back."""
    for each in (store, other):
        each.decide(WALL)
        each.decide(NEARER)
    store.shots.finished_live(NEARER.frame.source)
    again, new = store.decide(NEARER), other.decide(a_raw("a_2.png", 140, mtime_ns=2))
    assert again == new
    assert again[1] > 108
    assert store.decide(NEARER) == again
    store.begin_anew()
    assert store.decide(NEARER) == again


@pytest.mark.parametrize("given", [None, 7, [["a_2.png"]], [["a_2.png", 1, 1, "low", None]]])
def test_a_file_of_an_earlier_version_goes_on(store: Store, other: Store, given: Any) -> None:
    """One that knows no single frames, or that says something else there, still holds the range of its shot."""
    for each in (store, other):
        each.decide(WALL)
    told = json.loads(store.file.read_text())
    del told["given"]
    store.file.write_text(json.dumps(told if given is None else {**told, "given": given}))
    store.begin_anew()
    assert store.decide(NEARER) == other.decide(NEARER)


def test_a_map_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame is given back again and again, and the range stays as it was."""
    folder = make_folder(tmp_path, folder__output__range="shot-live", folder__output__sidecar=True)
    journal, ended = Journal(tmp_path / "journal.db"), list[Outcome]()
    journal.create()
    shots = Shots(tmp_path / "state", "net", 10**9)
    course = Course((folder,), journal.path, lambda _, outcome: ended.append(outcome), Troubles(), lambda: None, shots)
    ranges = []

    def work(name: str, high: float) -> Outcome:
        path = tmp_path / "in" / "take" / name
        source = Source(tmp_path / "in", f"take/{name}", f"take/{name}", identity_of(path.stat()))
        frame = folder.attempt(journal, source, alone=False, patient=True)
        finisher, queue = Finisher(course, dict, threads=1), Handover[Raw](2)
        finisher.start(queue)
        queue.give(Raw(frame, a_raw(name, high).depth, 48, 64))
        queue.close()
        assert finisher.join(10)
        (file,) = (tmp_path / "state").glob("*/live.json")
        told = json.loads(file.read_text())
        ranges.append((told["low"], told["high"], told["signature"][-1]))
        return ended[-1]

    for number in (1, 2, 3):
        make_picture(tmp_path / "in" / "take" / f"a_{number}.png")
    assert work("a_1.png", 100) is Outcome.DONE

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "a locked file", str(tmp_path / "out" / "take" / "a_2_depth.png"))

    with monkeypatch.context() as patch:
        patch.setattr(folder.outbox, "publish", refuse)
        for _ in range(5):
            assert work("a_2.png", 140) is Outcome.GIVEN_BACK
    assert ranges[1:] == [ranges[1]] * 5
    assert work("a_2.png", 140) is Outcome.DONE
    facts = json.loads((tmp_path / "out" / "take" / "a_2_depth.json").read_text())
    assert (facts["range_min"], facts["range_max"]) == ranges[1][:2]
    assert ranges[-1] == ranges[1]
    assert work("a_3.png", 104) is Outcome.DONE
    assert len(json.loads(next((tmp_path / "state").glob("*/live.json")).read_text())["given"]) == 1
    assert "take/a_3_depth.png" in files(tmp_path / "out")
    journal.close()


def test_a_map_without_depth_moves_nothing(store: Store, other: Store) -> None:
    """An even wall in the midst of a shot is no cut, and comes again as it was."""
    flat = Raw(a_raw("a_5.png", 1).frame, np.full((48, 64), 5, np.float32), 48, 64)
    assert store.shots.decide(flat, "shot-live", Path("/out")) == Decision(note="it has no depth")
    assert store.decide(WALL) == other.decide(WALL)
    for _ in range(3):
        assert store.decide(flat) == other.decide(flat)
    assert store.decide(AFTER) == other.decide(AFTER)
