"""What was tried, how it ended, and which map belongs to which source."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from watcher.errors import VolumeTrouble
from watcher.frame import Frame, Identity, Source
from watcher.journal import Journal, Patience, Place, Row
from watcher.outbox import Outbox

INBOX, OUTBOX = Path("/in"), Path("/out")
ODD = "sub/line\nbreak \udcff 🙂.jpg"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "journal.db")
    made.create()
    yield made
    made.close()


def src(rel: str = "a.jpg", content: int = 1, inbox: Path = INBOX) -> Source:
    return Source(inbox, rel, unicodedata.normalize("NFC", rel), Identity(content, content, 1, 1))


def attempt(
    journal: Journal,
    source: Source,
    *,
    bases: Iterable[str] | None = None,
    taken: Callable[[str], bool] = lambda _: False,
    alone: bool = False,
    outbox: Path = OUTBOX,
) -> Frame:
    names = bases if bases is not None else Outbox(outbox, "{stem}_depth", "m").bases(source.rel)
    row_id, base, number = journal.attempt(source, outbox, names, taken, alone=alone)
    return Frame(row_id, source, 0, base, number, alone)


def row(journal: Journal, source: Source) -> Row:
    found = journal.find(source.inbox, source.key)
    assert found is not None
    return found


def state(journal: Journal, source: Source) -> tuple[str, int, int] | None:
    found = journal.find(source.inbox, source.key)
    return None if found is None else (found.state, found.attempts, found.interruptions)


# --- transitions ------------------------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[Journal, Frame], None]] = {
    "done": lambda journal, frame: journal.done(frame, ["/out/a_depth.png"]),
    "fail": lambda journal, frame: journal.fail(frame, {"code": "corrupt"}),
    "filed": lambda journal, frame: journal.filed(frame, "/failed/a.jpg"),
    "hold": lambda journal, frame: journal.hold(frame, {"code": "truncated"}),
    "give_back": lambda journal, frame: journal.give_back(frame),
    "interrupted": lambda journal, frame: journal.interrupted(frame),
    "suspect": lambda journal, frame: journal.suspect(frame),
    "forget": lambda journal, frame: journal.forget(INBOX, frame.source.key, row(journal, frame.source).state),
    "forget failed": lambda journal, frame: journal.forget(INBOX, frame.source.key, "failed"),
    "let go": lambda journal, frame: journal.let_go(INBOX, frame.source.key, "/failed/a.jpg"),
    "let go another": lambda journal, frame: journal.let_go(INBOX, frame.source.key, "/failed/a (2).jpg"),
    "attempt": lambda journal, frame: void(attempt(journal, frame.source)),
    "new content": lambda journal, frame: void(attempt(journal, src(frame.source.rel, 2))),
}


def void(_: object) -> None:
    return None


@pytest.mark.parametrize(
    ("steps", "after"),
    [
        ("", ("attempt", 1, 0)),
        ("done", ("done", 0, 0)),
        ("give_back", None),
        ("hold", ("held", 0, 0)),
        ("suspect", ("held", 1, 0)),
        ("interrupted", ("attempt", 0, 1)),
        ("fail", ("failed", 1, 0)),
        ("forget", None),
        ("suspect attempt", ("attempt", 2, 0)),
        ("suspect attempt suspect attempt", ("attempt", 3, 0)),
        ("suspect attempt give_back", ("held", 1, 0)),
        ("interrupted suspect attempt", ("attempt", 1, 1)),
        ("interrupted suspect attempt give_back", ("held", 0, 1)),
        ("interrupted suspect attempt done", ("done", 0, 0)),
        ("hold attempt", ("attempt", 1, 0)),
        ("hold attempt fail", ("failed", 1, 0)),
        ("suspect attempt done attempt", ("attempt", 1, 0)),
        ("suspect new content", ("attempt", 1, 0)),
        ("interrupted suspect new content", ("attempt", 1, 0)),
        ("fail filed forget", None),
        ("fail filed forget attempt", ("attempt", 1, 0)),
        ("fail let_go", None),
        ("fail filed let_go", None),
        ("fail filed let_go_another", ("failed", 1, 0)),
        ("done new_content fail filed let_go", ("done", 0, 0)),
        # what is in work or held under that name by now is another content
        ("fail filed new_content let_go", ("attempt", 1, 0)),
        ("fail filed new_content forget_failed", ("attempt", 1, 0)),
        ("fail filed new_content hold let_go", ("held", 0, 0)),
        ("fail attempt", ("attempt", 2, 0)),
        ("done new content give_back", ("done", 0, 0)),
        ("done new content forget", ("done", 0, 0)),
        ("done new content fail forget", ("done", 0, 0)),
        ("done forget", ("done", 0, 0)),
        # what comes too late changes nothing
        ("done give_back", ("done", 0, 0)),
        ("done hold", ("done", 0, 0)),
        ("done suspect", ("done", 0, 0)),
        ("done interrupted", ("done", 0, 0)),
        ("fail done", ("failed", 1, 0)),
        ("give_back done", None),
        ("hold suspect", ("held", 0, 0)),
    ],
)
def test_transitions(journal: Journal, steps: str, after: tuple[str, int, int] | None) -> None:
    """Every way that a frame can take, with what is counted: a give-back is as if nothing had been tried."""
    frame = attempt(journal, src())
    for step in steps.replace("new content", "new_content").split():
        STEPS[step.replace("_", " ") if step != "give_back" else step](journal, frame)
    assert state(journal, src()) == after


@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("attempt", "new content", "forget")])
def test_a_number_that_is_given_again(journal: Journal, step: str) -> None:
    """A frame whose row has gone changes nothing for the source that has got its number since."""
    lost, other = attempt(journal, src("a.jpg")), src("b.jpg")
    journal._db.execute("DELETE FROM frames")
    assert attempt(journal, other).id == lost.id
    STEPS[step](journal, lost)
    assert state(journal, other) == ("attempt", 1, 0)


def test_what_a_row_says(journal: Journal) -> None:
    """Names of every kind come back as they went in, and the reason with them."""
    source = src(ODD)
    frame = attempt(journal, source, alone=True)
    journal.fail(frame, {"code": "corrupt", "what": "x"})
    journal.filed(frame, f"/failed/{ODD}")
    found = row(journal, source)
    assert (found.inbox, found.rel, found.key, found.base) == (INBOX, ODD, ODD, "sub/line\nbreak \udcff 🙂_depth")
    assert (found.alone, found.filed, found.reason) == (True, True, {"code": "corrupt", "what": "x"})
    assert found.same_content(Identity(1, 1, 9, 9))
    assert not found.same_content(Identity(1, 2))
    assert found.attempt_at <= (found.ended_at or 0)


def test_an_earlier_failure_leaves_no_trace(journal: Journal) -> None:
    """A new attempt forgets the reason and the filing of the old one."""
    frame = attempt(journal, src())
    journal.fail(frame, {"code": "corrupt"})
    journal.filed(frame, "/failed/a.jpg")
    attempt(journal, src("a.jpg", 2))
    found = row(journal, src())
    assert (found.state, found.reason, found.filed, found.ended_at) == ("attempt", None, False, None)


def test_a_disowned_map_is_no_known_content(journal: Journal) -> None:
    """After new content was given up, the old map keeps its owner, but no content passes for done."""
    journal.done(attempt(journal, src("a.jpg", 1)), ["m"])
    journal.give_back(attempt(journal, src("a.jpg", 2)))
    for content in (0, 1, 2):
        assert not row(journal, src()).same_content(Identity(content, content))
    assert attempt(journal, src("a.png", 1)).base == "a.png_depth"
    assert attempt(journal, src("a.jpg", 3)).base == "a_depth"


# --- names of maps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rels", "bases"),
    [
        (["a.jpg", "a.png", "a.tif"], ["a_depth", "a.png_depth", "a.tif_depth"]),
        (["a.jpg", "A.JPG"], ["a_depth", "A.JPG_depth"]),
        (["a.jpg", "sub/a.jpg"], ["a_depth", "sub/a_depth"]),
        (["a.jpg", "Sub/a.jpg", "sub/a.jpg"], ["a_depth", "Sub/a_depth", "sub/a.jpg_depth"]),
        (["STRASSE.jpg", "straße.jpg"], ["STRASSE_depth", "straße.jpg_depth"]),
    ],
)
def test_clash_rule(journal: Journal, rels: list[str], bases: list[str]) -> None:
    """Two sources never share a map, also where the outbox knows no case; each keeps its own when it is done again."""
    for content in (1, 2):
        assert [attempt(journal, src(rel, content)).base for rel in rels] == bases
        for rel in rels:
            journal.done(Frame(row(journal, src(rel)).id, src(rel), 0, ""), ["m"])


def test_two_spellings_clash(journal: Journal) -> None:
    """Sources that differ only in spelling get two maps, also where the outbox takes the spellings for one."""
    one, other = "é.jpg", unicodedata.normalize("NFD", "é.jpg")
    first = attempt(journal, src(one))
    second = attempt(journal, Source(INBOX, other, other, Identity(2, 2)))
    nfc = {unicodedata.normalize("NFC", frame.base) for frame in (first, second)}
    assert len(nfc) == 2


def test_files_of_unknown_origin_stay(journal: Journal) -> None:
    """A name that is taken in the outbox by something else is not claimed; one's own map is replaced."""
    there = {"a_depth", "a.jpg_depth"}
    frame = attempt(journal, src(), taken=there.__contains__)
    assert frame.base == "a.jpg_depth (2)"
    journal.done(frame, ["m"])
    there.add(frame.base)
    assert attempt(journal, src("a.jpg", 2), taken=there.__contains__).base == frame.base


def test_a_silent_outbox_holds_nobody(journal: Journal) -> None:
    """While the outbox is asked about a name, which may take for ever, other threads write into the journal."""
    other = Journal(journal.path)
    other._db.execute("PRAGMA busy_timeout=0")
    doing = attempt(journal, src("other.jpg"))

    def ask(_: str) -> bool:
        other.done(doing, ["/out/other_depth.png"])
        return False

    attempt(journal, src(), taken=ask)
    assert row(journal, src("other.jpg")).state == "done"
    other.close()


def test_a_name_claimed_meanwhile(journal: Journal) -> None:
    """A name that another source claims while the outbox is asked about it stays the other's."""
    other = Journal(journal.path)

    def ask(base: str) -> bool:
        if base == "a_depth":
            attempt(other, src("a.png"))
        return False

    assert attempt(journal, src(), taken=ask).base == "a.jpg_depth"
    other.close()


def test_a_name_survives_a_full_disk(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing the attempt down has to be repeated, the map's name stays the first choice."""
    refusals = iter([sqlite3.OperationalError("database or disk is full")])
    real = journal._writing

    @contextmanager
    def full_once() -> Iterator[None]:
        with real():
            yield
            for refusal in refusals:
                raise refusal

    monkeypatch.setattr(journal, "_writing", full_once)
    journal.patience = Patience(lambda _: False, lambda *_: None)
    assert attempt(journal, src()).base == "a_depth"


def test_own_name_first(journal: Journal) -> None:
    """A source whose map got the longer name keeps it, even when the shorter one is free again: one source, one map."""
    first = attempt(journal, src("a.jpg"))
    second = attempt(journal, src("a.png"))
    assert (first.base, second.base) == ("a_depth", "a.png_depth")
    journal.done(second, ["m"])
    journal.give_back(first)
    assert attempt(journal, src("a.png", 2)).base == "a.png_depth"


def test_another_name(journal: Journal) -> None:
    """A frame in work gets the first name that is nobody's, and that of no other source; it claims that one only."""
    frame = attempt(journal, src("a.jpg"))
    attempt(journal, src("b.jpg"), bases=["a.jpg_depth"])
    names = Outbox(OUTBOX, "{stem}_depth", "m").bases("a.jpg")
    assert journal.rename(frame, OUTBOX, names, {"a.jpg_depth (2)"}.__contains__) == "a.jpg_depth (3)"
    assert journal.claimed(frame) == ("a.jpg_depth (3)", False)
    assert attempt(journal, src("a.png")).base == "a_depth"
    journal.done(frame, ["m"])
    assert journal.claimed(attempt(journal, src("a.jpg", 2))) == ("a.jpg_depth (3)", True)


def test_a_name_that_is_claimed_while_another_is_looked_for(journal: Journal) -> None:
    """It stays with whoever was first."""
    other, frame = Journal(journal.path), attempt(journal, src("a.jpg"))

    def ask(base: str) -> bool:
        if base == "a.jpg_depth":
            attempt(other, src("b.jpg"), bases=[base])
        return False

    names = Outbox(OUTBOX, "{stem}_depth", "m").bases("a.jpg")
    assert journal.rename(frame, OUTBOX, names, ask) == "a.jpg_depth (2)"
    other.close()


def test_a_source_renamed_in_case(journal: Journal) -> None:
    """On a volume that knows no case, A.JPG that became a.jpg is the same source and keeps its map."""
    one = Source(INBOX, "A.JPG", "a.jpg", Identity(1, 1))
    journal.done(attempt(journal, one), ["m"])
    assert attempt(journal, Source(INBOX, "a.jpg", "a.jpg", Identity(2, 2))).base == "A_depth"


def test_another_template(journal: Journal) -> None:
    """With new settings the map gets its new name, and the old one is nobody's."""
    journal.done(attempt(journal, src()), ["m"])
    frame = attempt(journal, src("a.jpg", 2), bases=["a-z", "x"])
    assert journal.claimed(frame) == ("a-z", False)  # no map of it has that name yet
    assert attempt(journal, src("a.png", 1)).base == "a_depth"


def test_outboxes_are_apart(journal: Journal) -> None:
    """The same name in two outboxes is no clash; two inboxes of one outbox are."""
    other = src("a.jpg", inbox=Path("/in2"))
    assert attempt(journal, src()).base == "a_depth"
    assert attempt(journal, other, outbox=Path("/out2")).base == "a_depth"
    third = src("a.jpg", inbox=Path("/in3"))
    assert attempt(journal, third).base == "a.jpg_depth"


# --- counting and history ---------------------------------------------------------------------------------------------


def test_counts(journal: Journal) -> None:
    """Done counts maps ever made, once each; failed and in flight what is so now."""
    for number in range(3):
        frame = attempt(journal, src("a.jpg", number))
        journal.done(frame, ["m"])
        journal.done(frame, ["m"])
    failed = attempt(journal, src("b.jpg"))
    journal.fail(failed, {"code": "x"})
    attempt(journal, src("d.jpg"))
    attempt(journal, src("c.jpg"))
    counts = journal.counts()
    assert (counts.done, counts.failed, counts.in_flight) == (3, 1, ("d.jpg", "c.jpg"))
    journal.forget(INBOX, "b.jpg", "failed")
    assert journal.counts().failed == 0


def test_last_failures(journal: Journal) -> None:
    """The newest come first, and not without end."""
    for number in range(12):
        journal.fail(attempt(journal, src(f"{number:02}.jpg")), {"code": "x"})
    found = [one.rel for one in journal.last_failures(3)]
    assert found == ["11.jpg", "10.jpg", "09.jpg"]
    assert len(journal.last_failures()) == 10


def test_prune(journal: Journal) -> None:
    """The oldest history goes; what is still in the inbox, or not finished, stays known."""
    for number in range(20):
        journal.done(attempt(journal, src(f"{number:02}.jpg")), ["m"])
    journal.fail(attempt(journal, src("failed.jpg")), {"code": "x"})
    attempt(journal, src("open.jpg"))
    kept = {"00.jpg", "03.jpg"}
    dropped = journal.prune(lambda _, rel: rel not in kept, rows=10)
    assert dropped == 8
    left = [one.rel for one in journal.in_state("done")]
    assert left == ["00.jpg", "03.jpg", *(f"{number}.jpg" for number in range(10, 20))]
    assert state(journal, src("failed.jpg")) == ("failed", 1, 0)
    assert state(journal, src("open.jpg")) == ("attempt", 1, 0)
    assert journal.counts().done == 20


def test_kept_sources_do_not_stop_the_pruning(journal: Journal) -> None:
    """An old folder full of kept sources does not make the history of the others grow for ever."""
    for number in range(30):
        journal.done(attempt(journal, src(f"{number:02}.jpg")), ["m"])
    for _ in range(10):
        journal.prune(lambda _, rel: rel >= "10.jpg", rows=15, batch=5)
    left = [one.rel for one in journal.in_state("done")]
    assert len(left) == 10 + 15
    assert left[:10] == [f"{number:02}.jpg" for number in range(10)]


# --- durability -------------------------------------------------------------------------------------------------------


def test_kill_between_two_writes(tmp_path: Path) -> None:
    """What was written down is there after kill -9, and what was half written down is not."""
    code = """
import os, sys
from pathlib import Path
from watcher.frame import Identity, Source
from watcher.journal import Journal
journal = Journal(Path(sys.argv[1]))
journal.create()
for name in ("a", "b"):
    journal.attempt(Source(Path("/in"), name, name, Identity(1, 1)), Path("/out"), [name], lambda _: False)
with journal._writing():
    journal._db.execute("DELETE FROM frames")
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "journal.db")], check=False)
    journal = Journal(tmp_path / "journal.db")
    journal.create()
    assert [one.rel for one in journal.in_state("attempt")] == ["a", "b"]
    journal.close()


def test_synced_before_acting(journal: Journal) -> None:
    """An attempt survives a power cut: the strongest mode that SQLite has, in a log that is not lost by a crash."""
    modes = {name: journal._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
    assert modes == {"journal_mode": "wal", "synchronous": 2}


def test_many_threads(tmp_path: Path) -> None:
    """Threads that write at once wait for each other; no claim is given twice, nothing is lost."""
    path = tmp_path / "journal.db"
    first = Journal(path)
    first.create()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        own = Journal(path)
        try:
            for step in range(15):
                frame = attempt(own, src(f"{number}-{step}.jpg"), bases=(f"m{i}" for i in itertools.count()))
                own.done(frame, ["m"])
        except BaseException as error:
            failures.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert first.counts().done == 60
    assert len({one.base for one in first.in_state("done")}) == 60
    first.close()


def test_create_again(tmp_path: Path) -> None:
    """The tables are laid out once; a second start keeps everything."""
    for _ in range(2):
        journal = Journal(tmp_path / "journal.db")
        journal.create()
        journal.done(attempt(journal, src()), ["m"])
        journal.close()
    journal = Journal(tmp_path / "journal.db")
    assert journal.counts().done == 2
    journal.close()


# --- a disk in trouble ------------------------------------------------------------------------------------------------


class Failing:
    """A connection whose disk is full for a while."""

    def __init__(self, real: sqlite3.Connection, times: int) -> None:
        self._real, self.times = real, times

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def execute(self, *args: object) -> sqlite3.Cursor:
        if self.times:
            self.times -= 1
            raise sqlite3.OperationalError("database or disk is full")
        return self._real.execute(*args)  # type: ignore[arg-type]


def test_waits_for_its_disk(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is waited for, ever more patiently, told once it is there and once it is over."""
    told: list[tuple[str, bool]] = []
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return False

    journal.patience = Patience(wait, lambda place, trouble: told.append((place, trouble is not None)))
    monkeypatch.setattr(journal, "_db", Failing(journal._db, 6))
    attempt(journal, src())
    assert waited == [1, 2, 4, 8, 15, 15]
    assert told[0] == (str(journal.path), True)
    assert told[-1] == (str(journal.path), False)
    assert state(journal, src()) == ("attempt", 1, 0)


@pytest.mark.parametrize("stop", [True, None])
def test_says_so_where_nobody_waits(journal: Journal, monkeypatch: pytest.MonkeyPatch, stop: bool | None) -> None:
    """At a stop, and where nobody has patience, the trouble is an error that a person can read."""
    if stop is not None:
        journal.patience = Patience(lambda _: True, lambda *_: None)
    monkeypatch.setattr(journal, "_db", Failing(journal._db, 99))
    with pytest.raises(VolumeTrouble, match="full"):
        journal.find(INBOX, "a.jpg")


def test_a_suspect_stays_one(journal: Journal) -> None:
    """Given back at a stop, it is still a suspect: at the next start it runs alone again."""
    journal.suspect(attempt(journal, src()))
    journal.give_back(attempt(journal, src(), alone=True))
    assert row(journal, src()).reason == {"code": "suspect"}
    journal.give_back(attempt(journal, src(), alone=False))
    assert row(journal, src()).reason is None


def test_tidy(journal: Journal, tmp_path: Path) -> None:
    """What has left inbox or quarantine is forgotten, and frees its map's name; an absent folder says nothing."""
    failed = tmp_path / "failed"
    failed.mkdir()
    held = {name: attempt(journal, src(name)) for name in ("gone.jpg", "here.jpg", "shot.jpg")}
    for name, frame in held.items():
        journal.hold(frame, {"code": "shot" if name == "shot.jpg" else "truncated"})
    for name, place in {"emptied.png": failed, "kept.png": failed, "away.png": tmp_path / "unmounted"}.items():
        frame = attempt(journal, src(name))
        journal.fail(frame, {"code": "corrupt"})
        journal.filed(frame, str(place / name))
    (failed / "kept.png").touch()
    again = attempt(journal, src("again.jpg"))
    journal.done(again, ["again_depth.png"])
    journal.hold(attempt(journal, src("again.jpg", 2)), {"code": "truncated"})
    assert journal.tidy(lambda _inbox, rel: rel != "here.jpg") == 3
    assert state(journal, src("gone.jpg")) is None
    assert state(journal, src("emptied.png")) is None
    assert state(journal, src("again.jpg")) == ("done", 0, 0)  # only the ownership of its map is left
    assert {name for name in ("here.jpg", "shot.jpg", "kept.png", "away.png") if state(journal, src(name))} == {
        *("here.jpg", "shot.jpg", "kept.png", "away.png")
    }
    assert journal.counts().failed == 2
    assert attempt(journal, src("gone.png")).base == "gone_depth"
    assert attempt(journal, src("again.png")).base == "again.png_depth"


# --- the line ---------------------------------------------------------------------------------------------------------


def place(rel: str, arrival: int, inbox: Path = INBOX) -> Place:
    return Place(inbox, unicodedata.normalize("NFC", rel), rel, arrival)


def line(journal: Journal, most: int = 99) -> list[str]:
    return [one.rel for one in journal.first_in_line([INBOX], most)]


def test_line(journal: Journal) -> None:
    """First come, first served, by name inside one arrival; whoever stands in line keeps the place."""
    assert journal.line_up([place("b", 2), place("z", 1), place(ODD, 2)]) == 3
    assert journal.line_up([place("z", 9), place("a", 3)]) == 1
    assert line(journal) == ["z", "b", ODD, "a"]
    assert line(journal, 2) == ["z", "b"]
    journal.leave_line([place("b", 2)])
    assert line(journal) == ["z", ODD, "a"]


@pytest.mark.parametrize(
    ("step", "stays"),
    [("done", False), ("fail", False), ("hold", False), ("forget", False), ("give_back", True), ("suspect", True)],
)
def test_leaving_the_line(journal: Journal, step: str, stays: bool) -> None:
    """A source that has had its turn leaves the line; one whose turn was cut short keeps its place."""
    journal.line_up([place("a.jpg", 1), place("b.jpg", 1)])
    frame = attempt(journal, src("a.jpg"))
    STEPS[step](journal, frame)
    assert line(journal) == (["a.jpg", "b.jpg"] if stays else ["b.jpg"])


def test_lines_of_other_inboxes(journal: Journal) -> None:
    """Only those are called who wait at an inbox that is there; an inbox that left the settings is forgotten."""
    journal.line_up([place("a", 1), place("b", 7, Path("/other"))])
    assert line(journal) == ["a"]
    assert journal.last_arrival([INBOX, Path("/other")]) == 7
    assert journal.last_arrival([INBOX]) == 1
    assert journal.first_in_line([Path("/other")], 9) == []


def test_kept_sources_come_in_pages(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an inbox keeps is told whole, and never held in memory as a whole."""
    monkeypatch.setattr("watcher.journal._PAGE", 3)
    for number in range(10):
        journal.done(attempt(journal, src(f"{number}.jpg", number)), [])
    attempt(journal, src("open.jpg"))
    pages: list[int] = []
    real = journal._kept_after

    def page(inbox: Path, last: int) -> list[tuple[int, bytes, int, int]]:
        found = real(inbox, last)
        pages.append(len(found))
        return found

    monkeypatch.setattr(journal, "_kept_after", page)
    assert list(journal.kept(INBOX)) == [(f"{number}.jpg", (number, number)) for number in range(10)]
    assert max(pages) == 3
