"""The snapshot: what it says, and what it says when nobody runs."""

from __future__ import annotations

import errno
import itertools
import json
import os
from pathlib import Path

import pytest

from watcher import durable, status
from watcher.cli.looking import render
from watcher.status import Counts, Failure, Incomplete, Snapshot

FULL = Snapshot(
    running=True,
    pid=4711,
    state="degraded",
    reason="the disk is full",
    provider="cpu",
    model="starter",
    notice="n",
    counts=Counts(1, 2, 3, 4, 5),
    in_flight=("a\nb.jpg", "\udcff.jpg"),
    rate=1.5,
    stages_ms={"load": 1.0},
    last_errors=(Failure("c.jpg", "damaged", "2026-12-01T00:00:00Z"),),
    incomplete=(Incomplete("d\n.jpg", "the end of the file is missing", "2026-12-01T00:10:00Z"),),
    watch="started anew at s: an emitter's thread had ended",
    inboxes=("/in",),
    started="s",
    updated="u",
    version="0",
)


def held(place: Path, note: str = "4711 run since now") -> durable.Lock:
    lock = durable.Lock(place / status.LOCK_FILE)
    assert lock.take(note)
    return lock


def test_there_and_back(tmp_path: Path) -> None:
    """What is written is what is read, by name and value."""
    status.write(tmp_path, FULL)
    lock = held(tmp_path)
    assert status.read(tmp_path) == FULL
    lock.give_back()


def test_what_waits_for_its_end_is_named() -> None:
    """People read which picture is not complete, since when nothing comes any more, and how long it is waited for."""
    (line,) = [line for line in render(FULL).splitlines() if "missing" in line]
    assert line.strip() == r"d\n.jpg: the end of the file is missing, until 2026-12-01T00:10:00Z"
    assert FULL.as_json()["incomplete"][0]["name"] == "d\n.jpg"


def test_documented_keys() -> None:
    """Programs may rely on these names."""
    keys = {"running", "pid", "state", "reason", "provider", "model", "counts", "in_flight", "rate", "last_errors"}
    keys |= {"incomplete"}
    told = FULL.as_json()
    assert keys <= set(told)
    assert set(told["counts"]) == {"seen", "waiting", "in_flight", "done", "failed", "ignored"}
    assert json.loads(json.dumps(told)) == json.loads(json.dumps(FULL.as_json()))


@pytest.mark.parametrize("numbers", list(itertools.product((0, 1, 7), repeat=5))[::20])
def test_counts_add_up(numbers: tuple[int, int, int, int, int]) -> None:
    """Seen is the sum of all that can become of a file."""
    counts = Counts(*numbers)
    assert counts.seen == sum(numbers)


def test_nobody_runs(tmp_path: Path) -> None:
    """After a kill the file still says running; its lock knows better, and what was in flight waits."""
    status.write(tmp_path, FULL)
    found = status.read(tmp_path)
    assert (found.running, found.pid, found.state, found.reason, found.rate) == (False, None, "stopped", "", 0.0)
    assert (found.counts, found.in_flight) == (Counts(3, 0, 3, 4, 5), ())
    assert found.counts.seen == FULL.counts.seen


def test_a_deliberate_end_keeps_its_reason(tmp_path: Path) -> None:
    """Why no daemon runs is still said after it stopped."""
    status.write(tmp_path, Snapshot(state="stopped", reason="no model"))
    assert status.read(tmp_path).reason == "no model"


@pytest.mark.parametrize("note", ["4712 run", "garbage", ""])
def test_a_start_under_way(tmp_path: Path, note: str) -> None:
    """Somebody new holds the lock and has not said anything yet: the old file is not taken for his."""
    status.write(tmp_path, FULL)
    lock = held(tmp_path, note)
    found = status.read(tmp_path)
    lock.give_back()
    assert (found.running, found.state) == (True, "starting")
    assert found.pid == status.pid_of(note)
    assert found.counts == Counts()


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"counts": 1}', b'{"counts": {"odd": 1}}', b"\xff", b"null", b"{}"]
)
def test_damaged(tmp_path: Path, text: bytes) -> None:
    """A file that cannot be read is as good as none."""
    (tmp_path / status.STATUS_FILE).write_bytes(text)
    assert status.read(tmp_path) == Snapshot()


def test_keys_of_another_version(tmp_path: Path) -> None:
    """A newer program's file is read as far as it is known."""
    status.write(tmp_path, FULL)
    path = tmp_path / status.STATUS_FILE
    found = json.loads(path.read_bytes())
    found["later"] = 1
    del found["inboxes"]
    path.write_text(json.dumps(found))
    assert status.read(tmp_path).model == "starter"


def test_never_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the old file is written over in place: that is when people ask."""
    status.write(tmp_path, FULL)
    size = (tmp_path / status.STATUS_FILE).stat().st_size

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(durable, "write_whole", refuse)
    status.write(tmp_path, Snapshot(running=True, pid=4711, state="running"))
    lock = held(tmp_path)
    assert status.read(tmp_path).state == "running"
    lock.give_back()
    assert (tmp_path / status.STATUS_FILE).stat().st_size == size
    with pytest.raises(OSError, match="full"):
        status.write(tmp_path, Snapshot(reason="x" * 10_000))
    assert json.loads((tmp_path / status.STATUS_FILE).read_bytes())["state"] == "running"
    assert os.listdir(tmp_path) == [status.STATUS_FILE, status.LOCK_FILE] or len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize(
    ("note", "pid"), [("12 run since x", 12), ("12", 12), ("", None), (" ", None), ("x 12", None), ("-1", None)]
)
def test_pid_of(note: str, pid: int | None) -> None:
    """The number is the first word, or there is none."""
    assert status.pid_of(note) == pid
