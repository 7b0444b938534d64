"""What makes the program quick, held without a clock: no timed tests."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PROJECT
from watchdog.events import FileClosedEvent, FileCreatedEvent, FileOpenedEvent
from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

from bench import drawing, pages, profile, table
from bench.rows import ROWS, Found
from watcher import depth, imagefile, watch
from watcher.backlog import Handled
from watcher.depth import threads
from watcher.frame import Source
from watcher.inbox import Inbox, identity_of
from watcher.intake.foreign import Foreign, Judged
from watcher.session import Options, open_session, runtime


def test_a_file_that_leaves_the_inbox_holds_nothing_back() -> None:
    """Every frame that is put away leaves the inbox; the next one's hint must not wait half a second behind it."""
    assert InotifyMoveEventGrouper.delay <= 0.02


def test_the_system_is_asked_only_for_what_is_heeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a frame wakes no thread: openings are not even asked for, while arrivals and closings are."""
    asked: list[type] = []

    def schedule(_self: BaseObserver, *_: Any, event_filter: list[type], **__: Any) -> None:
        asked.extend(event_filter)

    monkeypatch.setattr(BaseObserver, "schedule", schedule)
    watching = watch.Watch([watch.Root(tmp_path, True)], lambda _path: None)
    watching.start()
    watching.stop()
    assert FileOpenedEvent not in asked
    assert {FileCreatedEvent, FileClosedEvent} <= set(asked)


def test_the_runtimes_threads_do_not_spin_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of the runtime that waits for a late one leaves its core to a loader or another program."""
    entries: dict[str, str] = {}
    real = runtime._settings

    def kept(ort: Any, threads: int) -> Any:
        settings = real(ort, threads)
        entries["spin"] = settings.get_session_config_entry("session.intra_op.spin_duration_us")
        return settings

    monkeypatch.setattr(runtime, "_settings", kept)
    open_session(PROJECT / "models" / "starter.onnx", Options(provider="cpu")).close()
    assert 0 < int(entries["spin"]) <= 100


@pytest.mark.parametrize("size", [(540, 960), (512, 512), (600, 900)])
def test_averaging_in_whole_blocks_first_is_the_same_average(size: tuple[int, int]) -> None:
    """Blocks that divide a picture evenly, averaged once more, give what one average gives, to about a level of 255."""
    import cv2

    coarse = np.random.default_rng(5).integers(0, 256, (54, 60, 3)).astype(np.uint8)
    pixels = np.asarray(cv2.resize(coarse, size[::-1], interpolation=cv2.INTER_LINEAR), np.uint8)
    direct = cv2.resize(pixels, (256, 256), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    made = depth.prepare(pixels, depth.Plan(256, 256))[0].transpose(1, 2, 0)
    assert float(np.abs(made - direct).mean()) < 1.5 / 255


def test_every_chunk_of_a_map_has_the_checksum_of_the_standard() -> None:
    """The fast checksum is CRC-32 as PNG wants it, in every chunk."""
    values = np.arange(64 * 48, dtype=np.uint16).reshape(48, 64)
    data = imagefile.encode(values, "png16", {"model": "starter"})
    at, names = 8, []
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        names.append(data[at + 4 : at + 8])
        body = data[at + 4 : at + 8 + length]
        assert zlib.crc32(body) == int.from_bytes(data[at + 8 + length : at + 12 + length], "big")
        at += 12 + length
    assert names == [b"IHDR", b"iTXt", b"IDAT", b"IEND"]


# -- the benchmark itself --------------------------------------------------------------------------------------------


def test_the_table_marks_what_is_short() -> None:
    """A median that misses its goal is marked short, one that meets it pass, a row without a goal not at all."""
    goals = {row.name: row for row in ROWS}
    assert Found(goals["simulated"], [0.99, 0.98, 0.5]).mark == "pass"
    assert Found(goals["drop"], [31.0]).mark == "**short**"
    assert Found(goals["1080p-seed"], [9.0]).mark == ""
    text = table.rendered([Found(goals["drop"], [10.0, 31.0, 45.0])], 12.0)
    assert re.search(r"\| `drop` \|.*\| ≤ 30 ms \| 31.0 ms \| 10.0 … 45.0 \| \*\*short\*\* \|", text)


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    """Measuring again replaces the table and nothing else of the page."""
    page = tmp_path / "performance.md"
    begin, end = pages.marks("table", table.BY)
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    for _ in range(2):
        table.put(page, "table", table.rendered([Found(ROWS[0], [1.0])], 12.0))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert text.count("`simulated`") == 1
    assert "old" not in text


def test_the_newest_runs_stand_side_by_side(tmp_path: Path) -> None:
    """A run joins the two before it on the page; the oldest goes, what is short is marked, a new row has no past."""
    page = tmp_path / "performance.md"
    page.write_text("\n".join(pages.marks("runs", table.BY)))
    goals = {row.name: row for row in ROWS}
    for latency in (41.0, 12.0, 31.0, 14.0):
        found = [Found(goals["drop"], [latency])] + [Found(goals["peak"], [346.0])] * (latency == 14.0)
        table.put(page, "runs", table.runs(page, found))
    lines = page.read_text().splitlines()
    assert "| `drop` | ≤ 30 ms | 12.0 ms | **31.0 ms** | 14.0 ms |" in lines
    assert "| `peak` | ≤ 600 MiB | – | – | 346 MiB |" in lines
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


@pytest.mark.parametrize(
    ("name", "by"),
    [
        *((name, table.BY) for name in ("table", "runs", "stages", "pixels", "frames", "folder")),
        *((name, "") for name in ("difference", "threads", "profile")),
    ],
)
def test_the_page_has_places_for_what_is_measured(name: str, by: str) -> None:
    """docs/performance.md holds the marks that the benchmark writes between."""
    text = (PROJECT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert [text.count(mark) for mark in pages.marks(name, by)] == [1, 1]


def test_a_profile_names_what_our_own_code_was_doing() -> None:
    """Each look counts for the innermost function of ours in its kind of thread; other threads are left out."""
    text = "finisher-0;run (/p/lib/threading.py);_scale (/p/watcher/depth/__init__.py);clip (/p/numpy/core.py) 3\n"
    text += "main;serve (/p/watcher/daemon/waking.py) 9\n"
    seen = profile.by_function(profile.stacks(text), ("loader", "finisher"))
    assert seen == {("finisher", "depth._scale → core.clip"): 3}
    assert profile.told(seen, frames=10)[0] == "finisher | `depth._scale → core.clip` | 0.6"


def test_the_charts_are_well_formed() -> None:
    """Both kinds of chart are XML with every name and value in it."""
    from xml.etree import ElementTree as ET

    bars = drawing.stacked("stages & more", "ms", [("a.jpg", [("read", 1.0), ("run", 40.0)])])
    growth = drawing.line("growth", ("files", "ms"), [(0.0, 1.0), (10.0, 2.0)])
    for text in (bars, growth):
        ET.fromstring(text)
    assert "41 ms" in bars
    assert ">a.jpg<" in bars
    assert growth.count("<circle") == 2


def test_files_that_are_no_pictures_never_take_a_place(tmp_path: Path) -> None:
    """A stranger is known after one look at its bytes; a picture without an ending is still a candidate."""
    foreign = Foreign()
    foreign.begin()
    sources = {}
    for name, data in (("note.txt", b"hello"), ("photo", b"\xff\xd8\xff\xe0" + bytes(60)), ("cut.jpg", b"")):
        (tmp_path / name).write_bytes(data)
        sources[name] = Source(tmp_path, name, name, identity_of((tmp_path / name).lstat()))
    assert foreign.judge(0, sources["note.txt"]) is Judged.FOREIGN
    assert foreign.judge(0, sources["photo"]) is Judged.CANDIDATE
    assert foreign.judge(0, sources["cut.jpg"]) is Judged.CANDIDATE
    assert (0, "note.txt", sources["note.txt"].identity) in foreign


def test_a_scan_opens_only_so_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound files are left for the next scan, which is told to come at once; pictures are never held up."""
    monkeypatch.setattr("watcher.intake.foreign._OPENED_MOST", 1)
    foreign = Foreign()
    foreign.begin()
    for name in ("a.txt", "b.txt", "c.jpg"):
        (tmp_path / name).write_bytes(b"hello")
    judged = [
        foreign.judge(0, Source(tmp_path, name, name, identity_of((tmp_path / name).lstat())))
        for name in ("a.txt", "b.txt", "c.jpg")
    ]
    assert judged == [Judged.FOREIGN, Judged.LATER, Judged.CANDIDATE]
    assert foreign.tired


def test_what_is_no_news_costs_one_look_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files that were judged before, a later scan makes nothing and counts them; new content is judged again."""
    inbox, foreign, handled = Inbox(tmp_path, recursive=True), Foreign(), Handled()
    for name in ("note.txt", "kept.jpg", "new.jpg"):
        (tmp_path / name).write_bytes(b"hello")
    state = (tmp_path / "kept.jpg").lstat()
    handled.add_content(0, "kept.jpg", (state.st_size, state.st_mtime_ns))

    def scanned(in_view: frozenset[tuple[int, str]] = frozenset()) -> list[str]:
        foreign.begin()
        seen = list(inbox.scan("", foreign.known(0, handled, in_view)))
        for sighting in seen:
            assert sighting.source is not None
            foreign.judge(0, sighting.source)
        return sorted(sighting.rel for sighting in seen)

    assert scanned() == ["new.jpg", "note.txt"]
    assert scanned() == ["new.jpg"]
    assert foreign.skipped == 1
    assert scanned(frozenset({(0, "note.txt")})) == ["new.jpg", "note.txt"]
    (tmp_path / "note.txt").write_bytes(b"hello again")
    assert scanned() == ["new.jpg", "note.txt"]


def test_opencv_starts_no_threads_of_its_own_in_the_path() -> None:
    """Loaders and finishers work side by side; a pool that spins between them would take the network's cores."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(2)
    try:
        threads.one_thread_each()
        assert cv2.getNumThreads() == 1
    finally:
        cv2.setNumThreads(before)
