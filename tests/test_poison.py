"""Pictures that crash, hang or confuse the decoder or the network: the guilty one is found, the others are done."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, make_picture
from living import Life, files, maps_of
from PIL import Image, PngImagePlugin
from waiting import until

from watcher import imagefile
from watcher.journal import Journal, Row

GOOD = [f"{number}.png" for number in range(4)]
POISON = "2-poison.png"  # in the middle, so that others are in hand beside it


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    made = Life(home, tmp_path)
    limits = {"run_timeout_s": 0.6, "max_attempts": 3}
    made.settle(limits=limits, watch={"settle_s": 0.1, "rescan_s": 0.5})
    for name in GOOD:
        make_picture(made.inbox / name, kind="gray")
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", "poison")
    Image.new("RGB", (32, 24), (255, 0, 0)).save(made.inbox / POISON, pnginfo=note)
    yield made
    made.bury()


def reason(life: Life) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((life.failed / f"{POISON}.error.json").read_bytes())
    return found


def row(life: Life, name: str) -> Row | None:
    journal = Journal(life.state / "journal.db")
    try:
        return journal.find(life.inbox, name)
    finally:
        journal.close()


def lives(life: Life, most: int = 8) -> list[int]:
    """Start again and again, as launchd would, until a life ends with 0 or 1; returns how each ended."""
    codes: list[int] = []
    while len(codes) < most:
        done = life.once()
        codes.append(done.returncode)
        if done.returncode in (0, 1):
            return codes
    raise AssertionError(f"it never came to rest: {codes}\n{done.stderr}")


def assert_only_the_guilty(life: Life) -> None:
    assert files(life.failed) == [POISON, f"{POISON}.error.json"]
    assert life.maps() == maps_of(GOOD)
    assert files(life.processed) == GOOD
    assert files(life.inbox) == []
    assert [name for name in files(life.state) if "tmp-" in name] == []


SEGV = ("segv", -signal.SIGSEGV, "crash", "Segmentation fault")
ABORT = ("abort", -signal.SIGABRT, "crash", "Aborted")
HANG = ("hang", 70, "hang", "took longer than 0.6 s")


@pytest.mark.parametrize(
    ("stage", "how", "code", "why", "says"),
    [
        ("DECODER", *SEGV),
        ("SESSION", *HANG),
        pytest.param("SESSION", *SEGV, marks=pytest.mark.slow),
        pytest.param("DECODER", *ABORT, marks=pytest.mark.slow),
        pytest.param("SESSION", *ABORT, marks=pytest.mark.slow),
        pytest.param("DECODER", *HANG, marks=pytest.mark.slow),
    ],
)
def test_crash_and_hang(life: Life, stage: str, how: str, code: int, why: str, says: str) -> None:
    """Three attempts in all, then quarantine with the signal or the limit; nobody beside it is punished."""
    life.fake = {f"FAKE_{stage}": how}
    codes = lives(life)
    assert codes == [code, code, code, 0]
    found = reason(life)
    assert (found["code"], found["attempts"]) == (why, 3)
    assert says in found["what"]
    assert_only_the_guilty(life)


@pytest.mark.parametrize(("how", "code"), [("segv", -signal.SIGSEGV), ("hang", 70), ("shape", 70)])
def test_side_by_side(life: Life, how: str, code: int) -> None:
    """Where two runs are under way at once, the one that crashes, hangs or fails is found just as well."""
    life.fake = {"FAKE_SESSION": how, "FAKE_LANES": "2"}
    codes = lives(life)
    assert codes[-1] == 0
    assert set(codes[:-1]) == {code}
    assert reason(life)["attempts"] == 3
    assert_only_the_guilty(life)


@pytest.mark.parametrize("how", ["shape", *(pytest.param(how, marks=pytest.mark.slow) for how in ("raise", "empty"))])
def test_a_network_that_fails(life: Life, how: str) -> None:
    """A failure of the network ends the process with 70, so that a fresh one starts; after three it is the frame's."""
    life.fake = {"FAKE_SESSION": how}
    codes = lives(life)
    if how == "empty":
        assert codes[-1] in (0, 1)
    else:
        assert codes == [70, 70, 70, 0]
        assert reason(life)["attempts"] == 3
        assert "network" in reason(life)["what"]
    assert_only_the_guilty(life)


@pytest.mark.parametrize(
    ("stage", "how", "code"),
    [
        ("DECODER", "unexpected", "unexpected"),
        ("DECODER", "memory", "too-large"),
        ("SESSION", "nan", "no-depth"),
    ],
)
def test_a_picture_that_fails(life: Life, stage: str, how: str, code: str) -> None:
    """What only this picture causes costs no process: one attempt, quarantine, the others go on."""
    life.fake = {f"FAKE_{stage}": how}
    assert lives(life) == [1]
    found = reason(life)
    assert (found["code"], found["attempts"]) == (code, 1)
    assert_only_the_guilty(life)


def test_some_values_are_not_finite(life: Life) -> None:
    """A map with a few holes is a map; that it had them is told."""
    life.fake = {"FAKE_SESSION": "some nan"}
    assert lives(life) == [0]
    facts = imagefile.read_facts(life.outbox / "2-poison_depth.png")
    assert facts is not None
    assert int(facts["nonfinite"]) > 0


@pytest.mark.parametrize("how", [pytest.param("kill", marks=pytest.mark.slow), "exit"])
def test_a_killer_without_a_trace(life: Life, how: str) -> None:
    """What ends the process without a word is given more tries, alone, and is given up in the end."""
    life.settle(limits={"max_attempts": 1, "run_timeout_s": 5}, watch={"settle_s": 0.1})
    life.fake = {"FAKE_DECODER": how}
    codes = lives(life)
    assert len(codes) == 4
    assert reason(life)["code"] == "killed"
    assert_only_the_guilty(life)


def test_suspects_are_alone(life: Life) -> None:
    """After a crash those that were in hand run one at a time; the guilty one's next crash counts against it only."""
    life.fake = {"FAKE_DECODER": "segv"}
    assert life.once().returncode == -signal.SIGSEGV
    assert life.once().returncode == -signal.SIGSEGV
    found = row(life, POISON)
    assert found is not None
    assert found.alone
    assert found.attempts == 2
    for name in GOOD:
        other = row(life, name)
        assert other is None or (other.state, other.attempts) in (("done", 0), ("held", 1)), name


def test_poison_that_was_healed(life: Life) -> None:
    """New content under the name of a suspect starts from nothing."""
    life.fake = {"FAKE_DECODER": "segv"}
    assert life.once().returncode == -signal.SIGSEGV
    make_picture(life.inbox / POISON, (20, 30))
    assert lives(life) == [0]
    assert life.maps() == maps_of([*GOOD, POISON])


def test_a_daemon_among_crashes(life: Life) -> None:
    """The daemon under a keeper that starts it again: the same, and status says what failed and why."""
    life.fake = {"FAKE_DECODER": "segv"}
    for _ in range(3):
        assert life.start().wait(20) == -signal.SIGSEGV
        assert not life.told().running
    with life.running():
        until(lambda: life.told().counts.failed == 1)
        told = life.await_done(len(GOOD))
        (error,) = told.last_errors
        assert error.name == POISON
        assert "crashed 3 times" in error.what
    assert_only_the_guilty(life)


@pytest.mark.parametrize(("how", "code"), [("hang", 70), ("segv", -signal.SIGSEGV), ("raise", 70)])
def test_a_model_that_never_loads(life: Life, how: str, code: int) -> None:
    """Loading has its own, longer limit; however often it fails, no picture is blamed for it."""
    life.settle(limits={"load_timeout_s": 1, "run_timeout_s": 0.5, "max_attempts": 1})
    life.fake = {"FAKE_LOADING": how}
    for _ in range(5):  # more than any count of attempts or interruptions that would give a frame up
        assert life.once().returncode == code
    assert files(life.failed) == []
    assert sorted(files(life.inbox)) == sorted([*GOOD, POISON])
    life.fake = {}
    assert lives(life) == [0]
    assert life.maps() == maps_of([*GOOD, POISON])
