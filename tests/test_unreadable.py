"""What cannot be read is not absent: a volume that does not say what it holds is waited for, and nothing is concluded.

Each test takes the place of a disk or a network volume that answers a call with an error number just once, or for a
while, between two calls that it answers.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_picture
from rooms import files
from rooms import folder as make_folder

from watcher.course import Course, Troubles
from watcher.finisher import Finisher
from watcher.frame import Outcome, Raw, Source
from watcher.handover import Handover
from watcher.inbox import identity_of
from watcher.intake import Pace
from watcher.intake.finding import Finder
from watcher.intake.pace import gone
from watcher.journal import Journal
from watcher.quarantine import Quarantine
from watcher.settle import Rules
from watcher.shots import Shots, record_name

SHOT = "a_#.png"
SILENT = [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOTCONN]
silent = pytest.mark.parametrize("number", SILENT, ids=errno.errorcode.get)


class Refusing:
    """Calls that a volume does not answer while ``number`` is set, for paths that end with ``ending``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ending, self.number = "", 0
        for where, name in ((os, "lstat"), (os, "stat"), (os, "listdir"), (os, "scandir")):
            self._stand_before(monkeypatch, where, name)
        for name in ("open", "read_bytes", "stat"):
            self._stand_before(monkeypatch, Path, name)

    def _stand_before(self, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(where, name)

        def ask(path: Any, *args: Any, **kwargs: Any) -> Any:
            if self.number and str(path).endswith(self.ending):
                raise OSError(self.number, os.strerror(self.number), str(path))
            return real(path, *args, **kwargs)

        monkeypatch.setattr(where, name, ask)

    def begin(self, ending: str | Path, number: int) -> None:
        self.ending, self.number = str(ending), number

    def end(self) -> None:
        self.number = 0


@pytest.fixture
def volume(monkeypatch: pytest.MonkeyPatch) -> Refusing:
    return Refusing(monkeypatch)


class Bench:
    """One folder with ``range: shot``, its ranges, its journal and intake's thread, driven by the test."""

    def __init__(self, place: Path, most_bytes: int = 10**9) -> None:
        self.place = place
        self.folder = make_folder(place, folder__output__range="shot")
        self.folder.outbox.prepare()
        self.inbox, self.outbox = place / "in", place / "out"
        self.journal = Journal(place / "journal.db")
        self.journal.create()
        self.shots = Shots(place / "state", "net", most_bytes)
        self.shots.prepare()
        self.troubles, self.ended = Troubles(), list[Outcome]()
        self.course = Course(
            (self.folder,),
            self.journal.path,
            lambda _, outcome: self.ended.append(outcome),
            self.troubles,
            lambda: None,
            self.shots,
        )

    def raw(self, name: str, high: float) -> Raw:
        path = make_picture(self.inbox / name)
        source = Source(self.inbox, name, name, identity_of(path.stat()))
        frame = self.folder.attempt(self.journal, source, alone=False, patient=True)
        return Raw(frame, np.linspace(0, high, 64, dtype=np.float32).reshape(8, 8), 8, 8, {})

    def keep(self, name: str, high: float) -> Raw:
        raw = self.raw(name, high)
        assert self.shots.decide(raw, "shot", self.outbox).kept
        self.journal.hold(raw.frame, {"code": "shot"})
        return raw

    def kept(self) -> list[str]:
        return [name for name in files(self.place / "state") if name.endswith(".npz")]

    def range(self) -> list[float]:
        (file,) = (self.place / "state").glob("*/shot.json")
        found: list[float] = json.loads(file.read_text())["range"]
        return found

    def finder(self) -> Finder:
        finder = Finder(self.course, self.journal, Pace(Rules(0.5, 600.0), 30.0))
        finder.remember()
        finder.scan_what_is_due(0.0)
        return finder


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.journal.close()


def the_state_folder(bench: Bench) -> Path:
    (place,) = {path.parent for path in (bench.place / "state").glob("*/*.npz")}
    return place


# -- settling a shot ---------------------------------------------------------------------------------------------------


@silent
@pytest.mark.parametrize("what", ["source", "kept map", "list"])
def test_a_shot_does_not_settle_without_a_frame_that_may_be_there(
    bench: Bench, volume: Refusing, number: int, what: str
) -> None:
    """Whichever call is not answered, the shot waits as it is, says so, and settles with all its frames."""
    bench.keep("a_1.png", 100)
    bench.keep("a_2.png", 900)
    kept, finder = bench.kept(), bench.finder()
    asked = {
        "source": bench.inbox / "a_2.png",
        "kept map": bench.place / "state" / next(name for name in kept if "a_2" in name),
        "list": the_state_folder(bench),
    }
    volume.begin(asked[what], number)
    finder.settle_shots(1.0)
    volume.end()
    assert bench.kept() == kept
    assert len(bench.troubles.lines()) == 1
    assert len(bench.journal.in_state("held")) == 2
    finder.settle_shots(2.0)
    assert bench.troubles.lines() == []
    assert bench.range()[1] == pytest.approx(900, rel=0.05)
    assert len(bench.journal.in_state("held")) == 2


def test_a_volume_that_goes_while_a_shot_settles(bench: Bench) -> None:
    """What lay on it left no name behind on its mount point, and has not left the inbox."""
    raws = [bench.keep("a_1.png", 100), bench.keep("a_2.png", 900)]
    kept = bench.kept()

    def away() -> None:
        raise OSError(errno.ENXIO, "the volume is not mounted", str(bench.inbox))

    for raw in raws[1:]:
        raw.frame.source.path.rename(bench.place / raw.frame.source.name)
    bench.shots.anchors = {bench.inbox: away}
    finder = bench.finder()
    finder.settle_shots(1.0)
    assert bench.kept() == kept
    bench.shots.anchors = {bench.inbox: bench.folder.inbox.anchor.check}
    (bench.place / "a_2.png").rename(bench.inbox / "a_2.png")
    finder.settle_shots(2.0)
    assert bench.range()[1] == pytest.approx(900, rel=0.05)


@silent
def test_a_shot_that_settles_early_waits_as_well(tmp_path: Path, volume: Refusing, number: int) -> None:
    """Beyond `limits.shot_mb` the finisher settles it: an inbox that does not answer makes it wait there."""
    bench = Bench(tmp_path, most_bytes=1)
    raw = bench.raw("a_1.png", 100)
    volume.begin("a_1.png", number)
    with pytest.raises(OSError, match="a_1"):
        bench.shots.decide(raw, "shot", bench.outbox)
    volume.end()
    assert len(bench.kept()) == 1
    assert bench.shots.decide(raw, "shot", bench.outbox).ends is not None
    bench.journal.close()


def test_who_left_is_told_even_after_a_full_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The range cannot be written at first: a source that left the inbox is still forgotten when it can."""
    bench.keep("a_1.png", 100)
    bench.keep("a_2.png", 900).frame.source.path.unlink()
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "full")

        patch.setattr("watcher.shots.write_whole", full)
        with pytest.raises(OSError, match="full"):
            bench.shots.settle(bench.inbox, SHOT)
    assert bench.shots.settle(bench.inbox, SHOT) == ["a_2.png"]
    assert len(bench.kept()) == 1


@silent
def test_a_range_that_cannot_be_read_is_not_found_anew(bench: Bench, volume: Refusing, number: int) -> None:
    """The shot has settled; while its range cannot be read, nobody decides about a frame of it, and nothing ends."""
    raws = [bench.keep("a_1.png", 100), bench.keep("a_2.png", 900)]
    bench.shots.settle(bench.inbox, SHOT)
    before = bench.range()
    bench.shots.finished(raws[1].frame.source, bench.outbox)
    finder = bench.finder()
    volume.begin("shot.json", number)
    with pytest.raises(OSError, match=r"shot\.json"):
        bench.shots.decide(raws[0], "shot", bench.outbox)
    assert bench.shots.waits(raws[0].frame.source)
    bench.shots.finished(raws[1].frame.source, bench.outbox)
    finder.settle_shots(1.0)
    volume.end()
    finder.settle_shots(2.0)
    assert bench.range() == before
    assert bench.shots.decide(raws[0], "shot", bench.outbox).ends == tuple(before)


@silent
def test_a_locked_range_that_cannot_be_read_is_not_overlooked(bench: Bench, volume: Refusing, number: int) -> None:
    """Nor is it written over: whoever locked a range finds it locked."""
    raw = bench.keep("a_1.png", 100)
    bench.shots.settle(bench.inbox, SHOT)
    beside = bench.outbox / record_name(SHOT)
    text = json.dumps({"range": [5, 6], "locked": True})
    beside.write_text(text)
    volume.begin(beside, number)
    with pytest.raises(OSError, match=r"shot\.json"):
        bench.shots.decide(raw, "shot", bench.outbox)
    bench.shots.finished(raw.frame.source, bench.outbox)
    volume.end()
    assert beside.read_text() == text
    assert bench.shots.decide(raw, "shot", bench.outbox).ends == (5, 6)


@silent
def test_a_running_range_that_cannot_be_read_is_not_begun_anew(bench: Bench, volume: Refusing, number: int) -> None:
    """A live shot goes on where it was."""
    wide, narrow = bench.raw("a_1.png", 900), bench.raw("a_2.png", 850)
    first = bench.shots.decide(wide, "shot-live", bench.outbox).ends
    volume.begin("live.json", number)
    with pytest.raises(OSError, match=r"live\.json"):
        bench.shots.decide(narrow, "shot-live", bench.outbox)
    volume.end()
    ends = bench.shots.decide(narrow, "shot-live", bench.outbox).ends
    assert first is not None
    assert ends is not None
    assert ends[1] == pytest.approx(first[1], rel=0.001)


# -- the finisher ------------------------------------------------------------------------------------------------------


def test_one_unreadable_range_holds_nobody_up(bench: Bench, volume: Refusing) -> None:
    """A locked range of which permission is missing: its frames go back and say why, those of others are done."""
    stuck = bench.keep("a_1.png", 100)
    other = bench.keep("b_1.png", 100)
    for shot in (SHOT, "b_#.png"):
        bench.shots.settle(bench.inbox, shot)
    beside = bench.outbox / record_name(SHOT)
    beside.write_text(json.dumps({"range": [5, 6], "locked": True}))
    volume.begin(beside, errno.EACCES)
    finisher, queue = Finisher(bench.course, dict, threads=1), Handover[Raw](2)
    finisher.start(queue)
    for raw in (stuck, other):
        again = bench.folder.attempt(bench.journal, raw.frame.source, alone=False, patient=True)
        queue.give(Raw(again, raw.depth, 8, 8, {}))
    queue.close()
    assert finisher.join(10)
    volume.end()
    assert bench.ended == [Outcome.GIVEN_BACK, Outcome.DONE]
    assert "a_1.png: its range cannot be found: permission is missing" in bench.troubles.lines()[0]
    assert [name for name in files(bench.outbox) if name.endswith(".png")] == ["b_1_depth.png"]


def test_an_outbox_that_is_away_may_hold_a_locked_range(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame is not finished with another range while nobody can see whether its shot's is locked."""
    monkeypatch.setattr("watcher.finisher._RETRY_FIRST_S", 0.01)
    raw = bench.keep("a_1.png", 100)
    bench.shots.settle(bench.inbox, SHOT)
    elsewhere, asked = bench.place / "elsewhere", list[int]()
    bench.outbox.rename(elsewhere)
    (elsewhere / record_name(SHOT)).write_text(json.dumps({"range": [5, 6], "locked": True}))
    real = bench.folder.outbox.prepare

    def mounted_at_the_third() -> None:
        asked.append(1)
        if len(asked) < 3:
            raise OSError(errno.ENXIO, "the volume is not mounted", str(bench.outbox))
        if len(asked) == 3:
            elsewhere.rename(bench.outbox)
            raise OSError(errno.ENXIO, "the volume is not mounted", str(bench.outbox))
        real()

    monkeypatch.setattr(bench.folder.outbox, "prepare", mounted_at_the_third)
    again = bench.folder.attempt(bench.journal, raw.frame.source, alone=False, patient=True)
    finisher, queue = Finisher(bench.course, dict, threads=1), Handover[Raw](2)
    finisher.start(queue)
    queue.give(Raw(again, raw.depth, 8, 8, {}))
    queue.close()
    assert finisher.join(10)
    assert bench.ended == [Outcome.DONE]
    facts = bench.folder.outbox.folder / "a_1_depth.png"
    assert b"locked range" in facts.read_bytes()


# -- intake ------------------------------------------------------------------------------------------------------------


@silent
def test_a_source_that_cannot_be_looked_at_has_not_left(bench: Bench, volume: Refusing, number: int) -> None:
    """The journal keeps what it knows of it, or it would be done again; so it does while the inbox is away."""
    make_picture(bench.inbox / "a.png")
    other = bench.place / "inbox of earlier settings"
    make_picture(other / "a.png")
    for inbox in (bench.inbox, other):
        for ending in (inbox / "a.png", inbox):
            volume.begin(ending, number)
            assert not gone((bench.folder,), inbox, "a.png")
            volume.end()
        assert not gone((bench.folder,), inbox, "a.png")
        assert gone((bench.folder,), inbox, "b.png")
        inbox.rename(bench.place / "away")
        assert not gone((bench.folder,), inbox, "a.png")
        (bench.place / "away").rename(inbox)


# -- quarantine --------------------------------------------------------------------------------------------------------


@silent
def test_a_quarantine_that_is_away_is_not_empty(bench: Bench, volume: Refusing, number: int) -> None:
    """A kill came before the reason was written: it is written when the folder can be read, not given up."""
    frame = bench.raw("a_1.png", 1).frame
    bench.journal.fail(frame, {"what": "broken"})
    (bench.place / "failed").mkdir()
    place = bench.place / "failed" / "a_1.png"
    frame.source.path.rename(place)
    (row,) = bench.journal.in_state("failed")
    volume.begin(bench.place / "failed", number)
    with pytest.raises(OSError, match="failed"):
        bench.folder.explain_again(row)
    volume.end()
    bench.folder.explain_again(row)
    assert bench.folder.quarantine.explained(place)


def test_a_quarantine_whose_volume_is_not_mounted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first start too: nobody says that the reason is written, and no folder is made on the mount point."""
    frame = bench.raw("a_1.png", 1).frame
    bench.journal.fail(frame, {"what": "broken"})
    (row,) = bench.journal.in_state("failed")
    monkeypatch.setattr("watcher.volume._MOUNTS", (bench.place / "Volumes",))
    bench.folder.quarantine = Quarantine(bench.place / "Volumes" / "Card" / "failed")
    with pytest.raises(OSError, match="failed"):
        bench.folder.explain_again(row)
    assert not (bench.place / "Volumes").exists()
