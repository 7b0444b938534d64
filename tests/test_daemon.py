"""The installed command on real folders, end to end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Home, RunCli, make_picture
from living import Life, files, maps_of
from PIL import Image
from waiting import until

from watcher import durable
from watcher.clock import wall_s


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    made = Life(home, tmp_path)
    yield made
    made.bury()


def store(place: Path, names: list[str]) -> dict[str, Path]:
    """Pictures that lie ready outside the inbox."""
    return {name: make_picture(place / name) for name in names}


def slowly(source: Path, target: Path, steps: int, go_on: Callable[[int], None]) -> None:
    """Write a file in pieces, and let a test do something between two of them."""
    data = source.read_bytes()
    size = -(-len(data) // steps)
    with target.open("wb") as file:
        for step in range(steps):
            file.write(data[step * size : (step + 1) * size])
            file.flush()
            go_on(step)


# --- arriving ---------------------------------------------------------------------------------------------------------


def test_files_of_every_kind(life: Life, tmp_path: Path, run_cli: RunCli) -> None:
    """Copied, moved, linked, in sub-folders, with any name, before the start and after: each gives its map."""
    names = ["a.jpg", "b.png", "c.webp", "d.tif", "e.bmp", "line\nbreak.png", "-rf.jpg", "🙂 '\".png"]
    names += ["\udcff.png", "é.png", "x" * 251 + ".jpg", "UPPER.JPG", "sub/deep/f.jpg", "g"]
    ready = store(tmp_path / "ready", [name for name in names if name != "g"])
    shutil.copy(ready["b.png"], tmp_path / "ready" / "g")
    early, late = names[:6], names[6:]
    for name in early:
        shutil.copy(tmp_path / "ready" / name, life.inbox / name)
    with life.running():
        life.await_done(len(early))
        for number, name in enumerate(late):
            (life.inbox / name).parent.mkdir(parents=True, exist_ok=True)
            if number % 2:
                shutil.copy(tmp_path / "ready" / name, life.inbox / name)
            else:
                os.replace(tmp_path / "ready" / name, life.inbox / name)
        told = life.await_done(len(names))
        assert told.state == "running"
        assert told.counts.seen == len(names)
        spoken = json.loads(run_cli("status", "--json", "--config", life.file).stdout)
        assert (spoken["running"], spoken["counts"]["done"]) == (True, len(names))
    assert files(life.inbox) == []
    assert files(life.processed) == sorted(names)
    made = life.maps()
    assert len(made) == len(names)
    short = [name for name in names if len(name) < 200 and name != "g"]
    assert set(maps_of(short)) < set(made)
    for name in made:
        with Image.open(life.outbox / name) as image:
            assert (image.size, image.mode) == ((64, 48), "I;16")
    assert run_cli("status", "--json", "--config", life.file).returncode == 0
    assert not life.told().running


def test_slowly_written(life: Life, tmp_path: Path) -> None:
    """A file that grows is never read too early, though it pauses for longer than it takes to settle."""
    ready = store(tmp_path / "ready", ["slow.jpg", "fence-0.png", "fence-1.png", "fence-2.png"])
    with life.running():

        def pause(step: int) -> None:
            if step < 3:
                shutil.copy(ready[f"fence-{step}.png"], life.inbox)
                life_done(step + 1)

        def life_done(count: int) -> None:
            until(lambda: life.told().counts.done >= count, 20)
            assert "slow_depth.png" not in life.maps()

        slowly(ready["slow.jpg"], life.inbox / "slow.jpg", 4, pause)
        life.await_done(4)
    assert "slow_depth.png" in life.maps()
    assert files(life.failed) == []


def test_folder_moved_in(life: Life, tmp_path: Path) -> None:
    """A whole folder that is moved in is done, and mirrored."""
    names = [f"shot/{number}.png" for number in range(5)] + ["shot/more/9.jpg"]
    store(tmp_path / "ready", names)
    with life.running():
        until(lambda: life.told().state == "running")
        os.replace(tmp_path / "ready" / "shot", life.inbox / "shot")
        life.await_done(6)
    assert life.maps() == maps_of(names)


def test_all_events_are_lost(life: Life) -> None:
    """With no event ever heard, everything is found by the rescan, also what is replaced or in a new folder."""
    with life.running(watch="deaf"):
        until(lambda: life.told().state == "running")
        make_picture(life.inbox / "a.png")
        make_picture(life.inbox / "sub" / "b.png")
        life.await_done(2, 10)
        make_picture(life.inbox / "a.png", (20, 10))
        life.await_done(3, 10)
    assert life.maps() == ["a_depth.png", "sub/b_depth.png"]
    with Image.open(life.outbox / "a_depth.png") as image:
        assert image.size == (20, 10)


def test_junk_is_ignored(life: Life, tmp_path: Path) -> None:
    """What is no picture, and does not claim to be one, is left alone and counted; what claims to be one is not."""
    for name in (".DS_Store", "._a.jpg", "Thumbs.db", "a.jpg.part"):
        (life.inbox / name).write_bytes(b"junk")
    (life.inbox / "notes.txt").write_text("to do")
    (life.inbox / "clip.mov").write_bytes(b"\0\0\0\x14ftypqt  " + bytes(100))
    (life.inbox / "lie.jpg").write_text("this is no picture")
    os.mkfifo(life.inbox / "pipe.jpg")
    (life.inbox / "link.jpg").symlink_to("/etc/hostname")
    make_picture(life.inbox / "a.png")
    before = files(life.inbox)
    with life.running():
        told = life.await_done(1)
        until(lambda: life.told().counts.failed == 1)
        told = life.told()
        assert told.counts.seen == told.counts.done + told.counts.failed + told.counts.ignored
    assert told.counts.ignored == len(before) - 2 - 2  # hidden files are not even counted
    assert files(life.inbox) == [name for name in before if name not in ("a.png", "lie.jpg")]
    assert files(life.failed) == ["lie.jpg", "lie.jpg.error.json"]
    assert life.maps() == ["a_depth.png"]


def test_what_waits_for_its_end_is_told(life: Life, tmp_path: Path, run_cli: RunCli) -> None:
    """`status` names a picture that is not complete, why it waits and until when; the rest of it makes it a map."""
    whole = make_picture(tmp_path / "whole.jpg", (640, 480), "noise").read_bytes()
    (life.inbox / "half.jpg").write_bytes(whole[: len(whole) // 2])
    with life.running():
        (one,) = until(lambda: life.told().incomplete)
        left_s = datetime.strptime(one.until, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp() - wall_s()
        assert (one.name, one.why) == ("half.jpg", "the end of the file is missing")
        assert 500 < left_s <= 600
        assert f"half.jpg: {one.why}, until {one.until}" in run_cli("status", "--config", life.file).stdout
        with (life.inbox / "half.jpg").open("ab") as file:
            file.write(whole[len(whole) // 2 :])
        assert life.await_done(1).incomplete == ()


# --- failing and coming back ------------------------------------------------------------------------------------------


def test_quarantine_and_retry(life: Life, tmp_path: Path, run_cli: RunCli) -> None:
    """A broken picture is kept with its reason, told in status, and comes back when it is asked for."""
    make_picture(life.inbox / "good.png")
    whole = make_picture(tmp_path / "whole.png").read_bytes()
    broken = whole[:60] + b"\xff" * 30 + whole[90:]
    (life.inbox / "sub").mkdir()
    (life.inbox / "sub" / "bad.png").write_bytes(broken)
    with life.running():
        life.await_done(1)
        until(lambda: life.told().counts.failed == 1)
        (error,) = life.told().last_errors
        assert error.name == "sub/bad.png"
        reason = json.loads((life.failed / "sub" / "bad.png.error.json").read_bytes())
        assert reason["what"] == error.what
        assert (life.failed / "sub" / "bad.png").read_bytes() == broken
        assert "sub/bad.png" in run_cli("retry", "--config", life.file).stdout
        # The picture was mended where it lies; then it is brought back.
        (life.failed / "sub" / "bad.png").write_bytes(whole)
        assert run_cli("retry", "bad.png", "--config", life.file).returncode == 0
        told = life.await_done(2)
        assert told.counts.failed == 0
        assert run_cli("retry", "bad.png", "--config", life.file).returncode == 66
    assert files(life.failed) == []
    assert life.maps() == ["good_depth.png", "sub/bad_depth.png"]


def test_retry_of_what_is_still_broken(life: Life, run_cli: RunCli) -> None:
    """It fails again, once, and is kept again; the counts say one."""
    (life.inbox / "bad.png").write_bytes(b"no picture")
    with life.running():
        until(lambda: files(life.failed) == ["bad.png", "bad.png.error.json"])
        stamp = (life.failed / "bad.png.error.json").stat().st_mtime_ns
        assert run_cli("retry", "--all", "--config", life.file).returncode == 0
        until(lambda: (life.failed / "bad.png.error.json").exists())
        until(lambda: (life.failed / "bad.png.error.json").stat().st_mtime_ns != stamp)
        told = until(lambda: life.told() if life.told().counts.failed == 1 else None)
        assert told is not None
    assert files(life.failed) == ["bad.png", "bad.png.error.json"]
    assert files(life.inbox) == []


def test_truncated_then_completed(life: Life, tmp_path: Path) -> None:
    """Half a file waits; when the rest comes it is done; nothing was called failed meanwhile."""
    data = make_picture(tmp_path / "whole.jpg", (200, 100), "noise").read_bytes()
    target = life.inbox / "a.jpg"
    target.write_bytes(data[: len(data) // 2])
    with life.running():
        make_picture(life.inbox / "fence.png")
        until(lambda: life.told().counts.done == 1)
        assert life.told().counts.waiting == 1
        with target.open("ab") as file:
            file.write(data[len(data) // 2 :])
        told = life.await_done(2)
        assert told.counts.failed == 0
    assert life.maps() == ["a_depth.png", "fence_depth.png"]


def test_truncated_for_good(life: Life, tmp_path: Path) -> None:
    """What stays truncated is a failure in the end, when the patience of the settings is over."""
    life.settle(watch={"settle_s": 0.1, "rescan_s": 0.5, "patience_s": 0.5})
    data = make_picture(tmp_path / "whole.jpg", (200, 100), "noise").read_bytes()
    (life.inbox / "a.jpg").write_bytes(data[: len(data) // 2])
    with life.running():
        until(lambda: files(life.failed) == ["a.jpg", "a.jpg.error.json"])
    assert json.loads((life.failed / "a.jpg.error.json").read_bytes())["code"] == "truncated"


# --- one source, one map ----------------------------------------------------------------------------------------------


def pixels(path: Path) -> bytes:
    with Image.open(path) as image:
        return image.tobytes()


def test_replaced_while_in_work(life: Life, tmp_path: Path) -> None:
    """New content under the name of a frame that is in the network is done again; the map is the newer one's."""
    old = make_picture(tmp_path / "old.png", (40, 30))
    new = make_picture(tmp_path / "new.png", (50, 20), "noise")
    gate = tmp_path / "gate"
    gate.touch()
    shutil.copy(old, life.inbox / "warm.png")
    with life.running(gate=str(gate)):
        life.await_done(1)
        gate.unlink()
        shutil.copy(old, life.inbox / "a.png")
        until(lambda: "a.png" in life.told().in_flight)
        os.replace(new, life.inbox / "a.png")
        gate.touch()
        life.await_done(3)
    with Image.open(life.outbox / "a_depth.png") as image:
        assert image.size == (50, 20)
    assert files(life.inbox) == []
    assert life.maps() == ["a_depth.png", "warm_depth.png"]


def test_taken_away_while_in_work(life: Life, tmp_path: Path) -> None:
    """A source that its owner takes away is nobody's failure."""
    gate = tmp_path / "gate"
    gate.touch()
    with life.running(gate=str(gate)):
        until(lambda: life.told().state == "running")
        gate.unlink()
        path = make_picture(life.inbox / "a.png")
        until(lambda: "a.png" in life.told().in_flight)
        path.unlink()
        gate.touch()
        told = until(lambda: life.told() if not life.told().counts.in_flight else None)
        assert told is not None
        assert told.counts.failed == 0
        assert told.state == "running"


@pytest.mark.parametrize("after", ["move", "keep", "delete"])
def test_after(life: Life, after: str) -> None:
    """The source is moved, kept or deleted, and done once, also over a restart; new content is done again."""
    life.settle({"after": after})
    path = make_picture(life.inbox / "sub" / "a.png", (40, 30))
    data = path.read_bytes()
    for _ in range(2):
        with life.running():
            life.await_done(1)
            make_picture(life.inbox / "fence.png")
            life.await_done(2)
            (life.inbox / "fence.png").unlink(missing_ok=True)
        assert life.told().counts.done in (2, 3)
        stamp = (life.outbox / "sub" / "a_depth.png").stat().st_mtime_ns
    assert files(life.inbox) == (["sub/a.png"] if after == "keep" else [])
    if after == "move":
        assert (life.processed / "sub" / "a.png").read_bytes() == data
    else:
        assert not life.processed.exists()
    make_picture(life.inbox / "sub" / "a.png", (30, 20), "noise")
    with life.running():
        until(lambda: (life.outbox / "sub" / "a_depth.png").stat().st_mtime_ns != stamp)
        life.await_done(1)
    with Image.open(life.outbox / "sub" / "a_depth.png") as image:
        assert image.size == (30, 20)
    assert "sub/a_depth.png" in life.maps()
    assert len(life.maps()) <= 2


def test_same_stem(life: Life) -> None:
    """Two pictures that differ in their extension give two maps, and a stranger's file is never replaced."""
    life.outbox.mkdir()
    (life.outbox / "b_depth.png").write_bytes(b"somebody's own")
    for name in ("a.jpg", "a.png", "a.tif", "b.jpg"):
        make_picture(life.inbox / name)
    with life.running():
        life.await_done(4)
    made = life.maps()
    assert len(made) == 5
    assert {"a_depth.png", "b_depth.png", "b.jpg_depth.png"} < set(made)
    assert (life.outbox / "b_depth.png").read_bytes() == b"somebody's own"


def test_a_file_in_the_way(life: Life) -> None:
    """A file where a mirrored folder should be holds back its own frames only; put right, they are done."""
    life.outbox.mkdir()
    (life.outbox / "sub").write_bytes(b"in the way")
    for number in range(4):
        make_picture(life.inbox / "sub" / f"{number}.png")
    with life.running():
        until(lambda: life.told().counts.in_flight or life.told().counts.waiting or life.told().counts.failed)
        make_picture(life.inbox / "a.png")
        until(lambda: "a_depth.png" in files(life.outbox), 20)
        until(lambda: life.told().state == "degraded" or life.told().counts.failed)
    assert (life.outbox / "sub").read_bytes() == b"in the way"
    assert len(files(life.inbox)) + len([n for n in files(life.failed) if n.endswith("png")]) == 4


def test_an_outbox_in_the_bin(life: Life) -> None:
    """Somebody throws the outbox away while the daemon runs: it is made again for the next map."""
    make_picture(life.inbox / "a.png")
    with life.running():
        life.await_done(1)
        shutil.rmtree(life.outbox)
        make_picture(life.inbox / "b.png")
        life.await_done(2)
    assert life.maps() == ["b_depth.png"]


def test_an_inbox_that_is_replaced(life: Life) -> None:
    """An inbox that is renamed away and made anew is watched again."""
    with life.running():
        until(lambda: life.told().state == "running")
        life.inbox.rename(life.place / "old")
        life.inbox.mkdir(exist_ok=True)
        make_picture(life.inbox / "a.png")
        life.await_done(1)
    assert life.maps() == ["a_depth.png"]


# --- ending and starting again ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_stop_in_the_midst(life: Life, number: int) -> None:
    """It ends by itself with 0, loses nothing, and the next start does the rest."""
    names = [f"{count:02}.png" for count in range(24)]
    for name in names:
        make_picture(life.inbox / name, (1000, 700), "noise")
    life.start()
    until(lambda: files(life.outbox))
    assert life.stop(number) == 0
    done = life.maps()
    assert 0 < len(done) < len(names)
    assert len(done) + len(files(life.inbox)) == len(names)
    assert not [name for name in done if name.startswith(".")]
    told = life.told()
    assert (told.state, told.counts.in_flight) == ("stopped", 0)
    with life.running():
        told = life.await_done(len(names))
    assert told.counts.done == len(names)
    assert life.maps() == maps_of(names)
    assert files(life.processed) == names


def test_stopped_while_the_network_runs(life: Life, tmp_path: Path) -> None:
    """A run that takes long does not keep the process from ending in time; its frame is done next time."""
    gate = tmp_path / "gate"
    gate.touch()
    life.fake = {"FAKE_GATE": str(gate)}
    life.start()
    until(lambda: life.told().state == "running")
    gate.unlink()
    make_picture(life.inbox / "a.png")
    until(lambda: "a.png" in life.told().in_flight)
    assert life.stop() == 0
    gate.touch()
    with life.running():
        life.await_done(1)
    assert life.maps() == ["a_depth.png"]


def kill_in_the_midst(life: Life, gate: Path, names: list[str]) -> None:
    gate.touch()
    life.fake = {"FAKE_GATE": str(gate)}
    life.start()
    until(lambda: life.told().state == "running")
    gate.unlink()
    for name in names:
        make_picture(life.inbox / name)
    until(lambda: life.told().counts.in_flight >= 2)
    life.stop(signal.SIGKILL)
    gate.touch()


def test_kill_9_in_the_midst(life: Life, tmp_path: Path) -> None:
    """After kill -9 with frames in hand each gets its one map, and nothing hidden is left."""
    names = [f"{count}.png" for count in range(6)]
    life.outbox.mkdir()
    (life.outbox / durable.temporary_name("half.png").replace(f"-{os.getpid()}-", "-4194300-")).write_bytes(b"half")
    kill_in_the_midst(life, tmp_path / "gate", names)
    assert not life.told().running
    with life.running():
        told = life.await_done(6)
        assert told.counts.done == 6
    assert life.maps() == maps_of(names)
    assert files(life.processed) == names
    assert [name for name in files(life.state) if "tmp-" in name] == []


@pytest.mark.parametrize("change", ["replaced", "removed", "renamed"])
def test_kill_9_and_then_a_change(life: Life, tmp_path: Path, change: str) -> None:
    """A frame that was in hand at a kill, and is another or gone at the next start, holds up nobody."""
    names = [f"{count}.png" for count in range(6)]
    kill_in_the_midst(life, tmp_path / "gate", names)
    for name in names:
        if change == "replaced":
            make_picture(life.inbox / name, (30, 20), "noise")
        elif change == "removed":
            (life.inbox / name).unlink()
        else:
            os.replace(life.inbox / name, life.inbox / f"new-{name}")
    make_picture(life.inbox / "other.png")
    left = files(life.inbox)
    with life.running():
        life.await_done(len(left), 15)
    assert life.maps() == maps_of(left)


def test_two_instances(life: Life, run_cli: RunCli) -> None:
    """The second one refuses with 75 and names the first, be it a daemon or a single run."""
    with life.running() as first:
        until(lambda: life.told().running)
        assert first.process is not None
        for verb in ("run", "once"):
            second = run_cli(verb, "--config", life.file)
            assert second.returncode == 75
            assert str(first.process.pid) in second.stderr
    assert run_cli("once", "--config", life.file).returncode == 0


def test_once(life: Life, run_cli: RunCli) -> None:
    """A single run does all that is there, says so, and tells by its exit code whether something failed."""
    make_picture(life.inbox / "a.png")
    done = run_cli("once", "--config", life.file)
    assert (done.returncode, life.maps()) == (0, ["a_depth.png"])
    (life.inbox / "bad.png").write_bytes(b"no picture")
    make_picture(life.inbox / "b.png")
    done = run_cli("once", "--config", life.file)
    assert done.returncode == 1
    assert "bad.png" in done.stderr
    assert life.maps() == ["a_depth.png", "b_depth.png"]
    assert run_cli("once", "--config", life.file).returncode == 0


def test_a_flood_while_it_works(life: Life, tmp_path: Path) -> None:
    """Many files that arrive from several hands at once are each done once."""
    names = [f"{hand}-{count:02}.png" for hand in range(3) for count in range(20)]
    ready = store(tmp_path / "ready", names)
    with life.running(session="mean"):
        until(lambda: life.told().state == "running")

        def drop(hand: int) -> None:
            for name in names:
                if name.startswith(f"{hand}-"):
                    (shutil.copy if hand else shutil.move)(str(ready[name]), str(life.inbox / name))

        hands = [threading.Thread(target=drop, args=(hand,)) for hand in range(3)]
        for hand in hands:
            hand.start()
        for hand in hands:
            hand.join()
        told = life.await_done(len(names))
        assert told.counts.seen == told.counts.done == len(names)
    assert life.maps() == maps_of(names)
    assert files(life.processed) == names


def test_a_damaged_journal(life: Life, run_cli: RunCli) -> None:
    """A journal that is no database is told in words, not as a trace, and nothing is done without it."""
    life.state.mkdir()
    (life.state / "journal.db").write_bytes(b"this is no database, whatever its name says" * 100)
    make_picture(life.inbox / "a.png")
    done: subprocess.CompletedProcess[str] = run_cli("once", "--config", life.file)
    assert done.returncode not in (0, 1)
    assert done.stderr.startswith("error: ")
    assert "journal" in done.stderr
    assert "Traceback" not in done.stderr
    assert files(life.inbox) == ["a.png"]
