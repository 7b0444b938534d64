"""One range for a shot: what stands still keeps its value, nothing is lost by a kill, late frames are told."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import Home
from living import Life, files
from PIL import Image, PngImagePlugin
from waiting import until

from watcher import depth
from watcher.frame import Aside, Frame, Identity, Raw, Source
from watcher.inbox import identity_of
from watcher.shots import Shots, record_name, shot_of

Array = np.ndarray[Any, Any]
PATCH = (slice(4, 12), slice(4, 12))


def scene(number: int, frames: int = 6) -> Array:
    """(48, 64) uint8: a dark wall, a patch that never changes, and a bright thing that comes nearer."""
    found = np.full((48, 64), 40, np.uint8)
    found[PATCH] = 100
    found[20:44, 20:60] = 110 + 140 * number // max(1, frames - 1)
    return found


def drop(place: Path, name: str, picture: Array) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    path = place / name
    cv2.imwrite(str(path), np.repeat(picture[..., None], 3, axis=2))
    return path


def patch_of(path: Path) -> float:
    found = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert found is not None
    return float(found[6:10, 6:10].mean()) / 65535


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    made = Life(home, tmp_path)
    made.fake = {}
    yield made
    made.bury()


# -- pure ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rel", "shot"),
    [
        ("take_0001.exr", "take_#.exr"),
        ("take_0002.EXR", "take_#.exr"),
        ("a/b/take.0999.png", "a/b/take.#.png"),
        ("a/12.png", "a/#.png"),
        ("a/tree.png", "a/"),
        ("tree.png", None),
        ("v2_tree.png", None),
        ("a/.hidden", "a/"),
    ],
)
def test_what_belongs_together(rel: str, shot: str | None) -> None:
    """A numbered sequence of one folder, else its sub-folder; a single picture in the inbox itself is no shot."""
    assert shot_of(rel) == shot


def test_the_range_of_a_shot_is_robust() -> None:
    """All frames count, one wild pixel of one of them does not."""
    frames = [np.linspace(100 + n, 900 + n, 4096, dtype=np.float32).reshape(64, 64) for n in range(50)]
    frames[7][0, 0] = 1e9
    points = [depth.quantiles(frame) for frame in frames]
    found = depth.of_shot([each for each in points if each is not None])
    assert found is not None
    assert found[0] == pytest.approx(100, abs=15)
    assert found[1] == pytest.approx(949, abs=15)
    assert depth.of_shot([]) is None
    assert depth.quantiles(np.full((2, 2), np.nan, np.float32)) is None


def test_the_running_range_follows_slowly_and_sees_a_cut() -> None:
    """A thing that comes in widens the range over some frames; another scene begins anew at once."""
    calm = np.tile(np.linspace(0, 100, 64, dtype=np.float32), (64, 1))
    running = depth.first(calm)
    assert running is not None
    wider = calm.copy()
    wider[:6, :6] = 200
    after = running.after(wider)
    assert running.high < after.high < 200
    assert depth.first(calm * 0 + 5) is None
    other = np.ascontiguousarray(calm[:, ::-1]) * 10
    anew = after.after(other)
    assert anew == depth.first(other)


# -- the store -------------------------------------------------------------------------------------------------------


def a_raw(inbox: Path, name: str, values: Array, **more: Any) -> Raw:
    path = drop(inbox, name, scene(0))
    source = Source(inbox, name, name, identity_of(path.stat()))
    height_px, width_px = values.shape
    return Raw(Frame(1, source, 0, name), values, height_px, width_px, {"source": name}, **more)


def a_map(low: float = 0.0, high: float = 100.0) -> Array:
    return np.linspace(low, high, 48 * 64, dtype=np.float32).reshape(48, 64)


def shots(place: Path, maker: str = "net", most_bytes: int = 10**9) -> Shots:
    made = Shots(place / "state", maker, most_bytes)
    made.prepare()
    return made


def test_a_kept_map_comes_back_to_the_bit(tmp_path: Path) -> None:
    """Depth, sizes, facts and what travels beside it survive a new life; another content or network gets nothing."""
    raw = a_raw(tmp_path / "in", "a_1.png", a_map(), aside=Aside(alpha=np.full((3, 4), 7, np.uint8)))
    assert shots(tmp_path).decide(raw, "shot", tmp_path / "out").kept
    source = raw.frame.source
    assert shots(tmp_path).waits(source)
    found = shots(tmp_path).kept(source)
    assert found is not None
    assert np.array_equal(found.depth, raw.depth)
    assert (found.height_px, found.width_px, found.facts) == (48, 64, {"source": "a_1.png"})
    assert found.aside is not None
    assert found.aside.picture is None
    assert found.aside.alpha is not None
    assert found.aside.alpha.tolist() == [[7] * 4] * 3
    assert shots(tmp_path, maker="other").kept(source) is None
    assert shots(tmp_path).kept(Source(source.inbox, source.rel, source.key, Identity(1, 1))) is None


def test_a_damaged_kept_map_is_none(tmp_path: Path) -> None:
    """Whatever a disk did to it: the picture is read again, nothing is believed, nothing ends."""
    raw = a_raw(tmp_path / "in", "a_1.png", a_map())
    kept = shots(tmp_path)
    kept.decide(raw, "shot", tmp_path / "out")
    (path,) = (tmp_path / "state").glob("*/*.npz")
    whole = path.read_bytes()
    for broken in (b"", whole[:100], whole[: len(whole) // 2], whole[:200] + b"\xff" * 64 + whole[264:]):
        path.write_bytes(broken)
        assert kept.kept(raw.frame.source) is None or broken[:200] == whole[:200]
    path.write_bytes(whole[:100])
    kept.settle(raw.frame.source.inbox, "a_#.png")
    assert not kept.has_settled(raw.frame.source.inbox, "a_#.png")
    assert not path.exists()


def test_a_late_frame_gets_the_stored_range(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is clipped to it, and that is said; a frame of the shot itself is not called late."""
    kept, inbox, out = shots(tmp_path), tmp_path / "in", tmp_path / "out"
    first = a_raw(inbox, "a_1.png", a_map())
    assert kept.decide(first, "shot", out).kept
    assert kept.settle(inbox, "a_#.png") == []
    again = kept.decide(first, "shot", out)
    with caplog.at_level(logging.WARNING):
        late = kept.decide(a_raw(inbox, "a_2.png", a_map(0, 900)), "shot", out)
    assert again.ends == late.ends
    assert (again.note, late.note) == ("", "late: clipped to the range of its shot")
    assert "settled" in caplog.text


def test_a_second_pass_is_measured_anew_unless_locked(tmp_path: Path) -> None:
    """New contents under the old names begin the shot again; `locked: true` beside the maps keeps its range."""
    kept, inbox, out = shots(tmp_path), tmp_path / "in", tmp_path / "out"
    out.mkdir()
    first = a_raw(inbox, "a_1.png", a_map())
    kept.decide(first, "shot", out)
    kept.settle(inbox, "a_#.png")
    kept.finished(first.frame.source, out)
    beside = out / record_name("a_#.png")
    told = json.loads(beside.read_text())
    assert (told["locked"], told["frames"]) == (False, 1)
    (inbox / "a_1.png").write_bytes(b"new")
    source = Source(inbox, "a_1.png", "a_1.png", identity_of((inbox / "a_1.png").stat()))
    new = Raw(Frame(1, source, 0, "a"), a_map(500, 900), 48, 64)
    told["locked"] = True
    beside.write_text(json.dumps(told))
    locked = kept.decide(new, "shot", out)
    assert locked.ends == tuple(told["range"])
    assert locked.note == "locked range"
    told["locked"] = False
    beside.write_text(json.dumps(told))
    assert kept.decide(new, "shot", out).kept


def test_the_kept_maps_are_bounded(tmp_path: Path) -> None:
    """Beyond `limits.shot_mb` a shot settles with what is there; nothing grows without end."""
    kept, inbox, out = shots(tmp_path, most_bytes=60_000), tmp_path / "in", tmp_path / "out"
    decisions = [kept.decide(a_raw(inbox, f"a_{n}.png", a_map()), "shot", out) for n in range(8)]
    assert decisions[0].kept
    early = next(n for n, decision in enumerate(decisions) if not decision.kept)
    assert decisions[early].note == "settled early: limits.shot_mb"
    assert all(decision.ends is not None for decision in decisions[early:])
    assert sum(path.stat().st_size for path in (tmp_path / "state").rglob("*.npz")) < 90_000


def test_a_source_that_left_does_not_count(tmp_path: Path) -> None:
    """What was taken out of the inbox meanwhile has no part in the range, and its raw map goes."""
    kept, inbox, out = shots(tmp_path), tmp_path / "in", tmp_path / "out"
    kept.decide(a_raw(inbox, "a_1.png", a_map()), "shot", out)
    kept.decide(a_raw(inbox, "a_2.png", a_map(0, 9000)), "shot", out)
    (inbox / "a_2.png").unlink()
    assert kept.settle(inbox, "a_#.png") == ["a_2.png"]
    ends = kept.decide(a_raw(inbox, "a_3.png", a_map()), "shot", out).ends
    assert ends is not None
    assert ends[1] <= 100


# -- the program -----------------------------------------------------------------------------------------------------


def test_once_gives_a_shot_one_range(life: Life) -> None:
    """The end of the work is the end of the shot: the patch has one value in all maps, and the sources are put away."""
    life.settle({"output": {"range": "shot"}}, watch={"settle_s": 0.1, "rescan_s": 0.5, "shot_settle_s": 3600})
    for number in range(6):
        drop(life.inbox / "take", f"a_{number:04}.png", scene(number))
    drop(life.inbox, "alone.png", scene(0))
    ended = life.once()
    assert ended.returncode == 0, ended.stderr
    maps = [life.outbox / "take" / f"a_{number:04}_depth.png" for number in range(6)]
    values = [patch_of(path) for path in maps]
    assert max(values) - min(values) < 1 / 1000
    assert 0.1 < values[0] < 0.9
    told = json.loads((life.outbox / "take" / "a_#.png.shot.json").read_text())
    assert (told["frames"], told["locked"]) == (6, False)
    assert files(life.inbox) == []
    assert len(files(life.processed)) == 7
    assert not list((life.state / "shots").rglob("*.npz"))


def test_without_shots_the_same_patch_flickers(life: Life) -> None:
    """The test above can fail: with `range: frame` the patch does not keep its value."""
    for number in range(6):
        drop(life.inbox / "take", f"a_{number:04}.png", scene(number))
    assert life.once().returncode == 0
    values = [patch_of(life.outbox / "take" / f"a_{number:04}_depth.png") for number in range(6)]
    assert max(values) - min(values) > 0.2


def test_the_daemon_waits_for_the_end_mark(life: Life) -> None:
    """No map before the shot has settled, sources stay in the inbox; `.end` settles it, and is taken away."""
    life.settle({"output": {"range": "shot"}}, watch={"settle_s": 0.1, "rescan_s": 0.5, "shot_settle_s": 3600})
    with life.running():
        for number in range(3):
            drop(life.inbox / "take", f"a_{number}.png", scene(number, 3))
        until(lambda: len(list((life.state / "shots").rglob("*.npz"))) == 3, what=life.log())
        until(lambda: life.told().counts.in_flight == 0, what=life.log())
        assert files(life.outbox) == []
        assert len(files(life.inbox)) == 3
        (life.inbox / "take" / ".end").touch()
        life.await_done(3)
        assert not (life.inbox / "take" / ".end").exists()
        drop(life.inbox / "take", "a_9.png", scene(2, 3))
        life.await_done(4)
    assert "settled" in life.log()
    values = [patch_of(life.outbox / "take" / f"a_{number}_depth.png") for number in (0, 1, 2, 9)]
    assert max(values) - min(values) < 1 / 1000


def test_a_quiet_time_settles_a_shot(life: Life) -> None:
    """No new frame for `shot_settle_s`."""
    life.settle({"output": {"range": "shot"}}, watch={"settle_s": 0.1, "rescan_s": 0.5, "shot_settle_s": 0.5})
    with life.running():
        for number in range(3):
            drop(life.inbox, f"a_{number}.png", scene(number, 3))
        life.await_done(3)
    values = [patch_of(life.outbox / f"a_{number}_depth.png") for number in range(3)]
    assert max(values) - min(values) < 1 / 1000


@pytest.mark.parametrize("moment", ["kept", "settling"])
def test_a_kill_loses_nothing_of_a_shot(life: Life, moment: str) -> None:
    """kill -9 while maps are kept, and while they are written: the next life finishes the same shot."""
    quiet = {"settle_s": 0.1, "rescan_s": 0.5, "shot_settle_s": 3600}
    life.settle({"output": {"range": "shot"}}, watch=quiet)
    frames = 12
    process = life.start()
    for number in range(frames):
        drop(life.inbox / "take", f"a_{number:02}.png", scene(number, frames))
    least = 4 if moment == "kept" else frames
    until(lambda: len(list((life.state / "shots").rglob("*.npz"))) >= least, what=life.log())
    if moment == "settling":
        until(lambda: life.told().counts.in_flight == 0, what=life.log())
        (life.inbox / "take" / ".end").touch()
        until(lambda: len(files(life.outbox)) >= 2, what=life.log())
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    with life.running():
        if moment == "kept":
            until(lambda: len(list((life.state / "shots").rglob("*.npz"))) == frames, what=life.log())
            until(lambda: life.told().counts.in_flight == 0, what=life.log())
            assert files(life.outbox) == []
            (life.inbox / "take" / ".end").touch()
        until(lambda: len([path for path in life.maps() if path.endswith(".png")]) == frames, what=life.log())
        until(lambda: files(life.inbox) == [], what=life.log())
    values = [patch_of(life.outbox / "take" / f"a_{number:02}_depth.png") for number in range(frames)]
    assert max(values) - min(values) < 1 / 1000
    assert len(files(life.processed)) == frames


def test_shot_live_writes_at_once(life: Life) -> None:
    """Nothing waits, and from frame to frame the patch moves less than half as far as with ranges of their own."""
    steps = {}
    for mode in ("frame", "shot-live"):
        life.settle({"output": {"range": mode, "sidecar": True}})
        for number in range(6):
            drop(life.inbox / mode, f"a_{number:04}.png", scene(number))
        assert life.once().returncode == 0
        assert files(life.inbox) == []
        values = [patch_of(life.outbox / mode / f"a_{number:04}_depth.png") for number in range(6)]
        steps[mode] = float(np.abs(np.diff(values)).max())
    assert steps["shot-live"] < steps["frame"] / 2
    facts = json.loads((life.outbox / "shot-live" / "a_0003_depth.json").read_text())
    assert facts["range"] == "shot-live"


def test_a_slow_frame_of_a_live_shot_is_not_overtaken(life: Life) -> None:
    """The running range follows the frames in their order, however long one of them takes to decode."""
    life.settle({"output": {"range": "shot-live", "sidecar": True, "size": "model"}})
    life.fake = {"FAKE_DECODER": "slow"}
    for number in range(6):
        path = drop(life.inbox / "take", f"a_{number:02}.png", scene(number))
        if number in (0, 3):
            note = PngImagePlugin.PngInfo()
            note.add_text("Comment", "poison")
            Image.open(path).save(path, pnginfo=note)
    assert life.once().returncode == 0
    facts = [json.loads((life.outbox / "take" / f"a_{number:02}_depth.json").read_text()) for number in range(6)]
    tops = [each["range_max"] for each in facts]
    # The bright thing comes nearer with each frame, so a range that saw them in order never narrows at its top,
    # and that of the first frame knows nothing of the others.
    assert tops == sorted(tops)
    assert tops[0] == pytest.approx(facts[0]["raw_max"], rel=0.02)


def test_a_kill_loses_nothing_of_a_live_shot(life: Life) -> None:
    """kill -9 in the midst: the next life takes up the running range, and no frame is lost."""
    output = {"range": "shot-live", "sidecar": True, "size": "model"}
    life.settle({"output": output}, watch={"settle_s": 0.1, "rescan_s": 0.5})
    frames = 16
    process = life.start()
    for number in range(frames // 2):
        drop(life.inbox / "take", f"a_{number:02}.png", scene(0))
    life.await_done(frames // 2)
    for number in range(frames // 2, 12):
        drop(life.inbox / "take", f"a_{number:02}.png", scene(1))
    until(lambda: len([path for path in life.maps() if path.endswith(".png")]) > frames // 2, what=life.log())
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    for number in range(12, frames):
        drop(life.inbox / "take", f"a_{number:02}.png", scene(1))
    with life.running():
        until(lambda: files(life.inbox) == [], what=life.log())
    found = sorted(path for path in life.maps() if path.endswith(".png"))
    assert len(found) == frames
    facts = [json.loads((life.outbox / "take" / f"a_{number:02}_depth.json").read_text()) for number in range(frames)]
    assert {each["range"] for each in facts} == {"shot-live"}
    # A range that began anew would be its frame's own at once; one that runs on has only begun to widen towards it.
    narrow, wide = min(each["range_max"] for each in facts), max(each["raw_max"] for each in facts)
    assert wide > 1.15 * narrow
    assert max(each["range_max"] for each in facts) < narrow + 0.95 * (wide - narrow)
