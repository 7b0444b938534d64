"""A source that cannot be done is kept, with the reason beside it, and can come back."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from watcher.durable import moving
from watcher.quarantine import Quarantine, reason

WHY = reason("corrupt", "the picture is damaged", "Save it again.", 2)
ODD = ["a.jpg", "sub/deep/a.jpg", "line\nbreak.jpg", "-rf", "🙂 \udcff.jpg", "x" * 251 + ".jpg", "é" * 125 + ".jpg"]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Quarantine, Path]:
    inbox = tmp_path / "in"
    inbox.mkdir()
    return Quarantine(tmp_path / "failed"), inbox


def drop(inbox: Path, rel: str, data: bytes = b"x") -> Path:
    path = inbox / rel
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("rel", ODD)
def test_there_and_back(places: tuple[Quarantine, Path], rel: str) -> None:
    """Names of every kind go to quarantine and come back to where they were; no reason is left behind."""
    quarantine, inbox = places
    place = quarantine.admit(drop(inbox, rel, b"data"), rel, inbox, WHY)
    assert place == quarantine.folder / rel
    assert files(inbox) == []
    (case,) = quarantine.cases()
    assert (case.path, case.rel, case.inbox) == (place, rel, inbox)
    assert quarantine.explained(place)
    assert quarantine.release(case) == inbox / rel
    assert (inbox / rel).read_bytes() == b"data"
    assert files(quarantine.folder) == []


def test_the_reason_file(places: tuple[Quarantine, Path]) -> None:
    """Beside the source: what, why, when, attempts, what to do, under stable keys."""
    quarantine, inbox = places
    quarantine.admit(drop(inbox, "a.jpg"), "a.jpg", inbox, WHY)
    text = json.loads((quarantine.folder / "a.jpg.error.json").read_bytes())
    assert set(text) == {"source", "inbox", "code", "what", "when", "attempts", "what_to_do"}
    assert (text["code"], text["what"], text["attempts"]) == ("corrupt", "the picture is damaged", 2)
    assert text["what_to_do"].startswith("Save it again.")
    assert "retry" in text["what_to_do"]
    assert reason("x", "y", "", 1)["what_to_do"].endswith("retry NAME")
    assert reason("not-a-picture", "y", "Put pictures only.", 1)["what_to_do"] == "Put pictures only."


def test_nothing_is_overwritten(places: tuple[Quarantine, Path]) -> None:
    """Each failure of one name keeps its file and its reason; each comes back beside what was dropped meanwhile."""
    quarantine, inbox = places
    for number in range(3):
        quarantine.admit(drop(inbox, "a.jpg", str(number).encode()), "a.jpg", inbox, WHY)
    assert len(files(quarantine.folder)) == 6
    drop(inbox, "a.jpg", b"new")
    for case in list(quarantine.cases()):
        quarantine.release(case)
    assert {path.read_bytes() for path in inbox.iterdir()} == {b"0", b"1", b"2", b"new"}
    assert files(quarantine.folder) == []


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (["a.jpg"], ["a.jpg", "sub/a.jpg"]),
        (["sub/a.jpg"], ["sub/a.jpg"]),
        (["*.jpg"], ["a.jpg", "b.jpg", "sub/a.jpg"]),
        (["*"], ["a.jpg", "b.jpg", "c[1].png", "sub/a.jpg"]),
        (["c[1].png"], ["c[1].png"]),
        (["b.jpg", "c*"], ["b.jpg", "c[1].png"]),
        (["A.jpg"], []),
        ([], []),
    ],
)
def test_chosen(places: tuple[Quarantine, Path], patterns: list[str], chosen: list[str]) -> None:
    """Names, paths and globs choose; a name with brackets is also a name."""
    quarantine, inbox = places
    for rel in ("a.jpg", "b.jpg", "c[1].png", "sub/a.jpg"):
        quarantine.admit(drop(inbox, rel), rel, inbox, WHY)
    assert sorted(case.rel for case in quarantine.chosen(tuple(patterns))) == chosen
    full = str(quarantine.folder / "b.jpg")
    assert [case.rel for case in quarantine.chosen((full,))] == ["b.jpg"]


def test_a_reason_without_its_source(places: tuple[Quarantine, Path]) -> None:
    """A reason whose source somebody took away never brings back another file whose name begins alike."""
    quarantine, inbox = places
    for rel in ("a.jpg", "a.jpg.png", "a.jpg2"):
        quarantine.admit(drop(inbox, rel), rel, inbox, WHY)
    (quarantine.folder / "a.jpg").unlink()
    assert sorted(case.rel for case in quarantine.cases()) == ["a.jpg.png", "a.jpg2"]


def test_two_long_names_keep_their_own_reasons(places: tuple[Quarantine, Path]) -> None:
    """Names that differ only where the reason's name was cut do not share a reason."""
    quarantine, inbox = places
    names = ["x" * 248 + "one.jpg"[:7], "x" * 248 + "two.jpg"[:7]]
    for number, rel in enumerate(names):
        quarantine.admit(drop(inbox, rel), rel, inbox, reason("c", str(number), "", 1))
    found = {case.rel: (case.path.name, case.reason["what"]) for case in quarantine.cases()}
    assert found == {names[0]: (names[0], "0"), names[1]: (names[1], "1")}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"source": "a.jpg"}', b"\xff", b'{"source": 1, "inbox": 2}'])
def test_somebody_elses_notes(places: tuple[Quarantine, Path], text: bytes) -> None:
    """A reason file that is damaged or not ours is passed over, and the others are found."""
    quarantine, inbox = places
    quarantine.admit(drop(inbox, "b.jpg"), "b.jpg", inbox, WHY)
    (quarantine.folder / "a.jpg").write_bytes(b"")
    (quarantine.folder / "a.jpg.error.json").write_bytes(text)
    assert [case.rel for case in quarantine.cases()] == ["b.jpg"]


def test_a_reason_cannot_lead_outside(places: tuple[Quarantine, Path]) -> None:
    """A reason file that was tampered with releases nothing to elsewhere than below its inbox."""
    quarantine, inbox = places
    for source in ("../../evil.jpg", "/evil.jpg"):
        quarantine.admit(drop(inbox, "a.jpg"), "a.jpg", inbox, WHY)
        reason_file = quarantine.folder / "a.jpg.error.json"
        reason_file.write_text(json.dumps({"source": source, "inbox": str(inbox)}))
        assert list(quarantine.cases()) == []
        for left in quarantine.folder.iterdir():
            left.unlink()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_no_room_for_the_reason(places: tuple[Quarantine, Path], monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A source is never there without its reason: when that cannot be written, the source stays in the inbox."""
    quarantine, inbox = places
    path = drop(inbox, "a.jpg", b"data")

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr("watcher.quarantine.write_whole", refuse)
        with pytest.raises(OSError, match=os.strerror(code)):
            quarantine.admit(path, "a.jpg", inbox, WHY)
    assert files(quarantine.folder) == []
    assert path.read_bytes() == b"data"
    quarantine.admit(path, "a.jpg", inbox, WHY)
    assert files(quarantine.folder) == ["a.jpg", "a.jpg.error.json"]


def test_expelled_beside_a_newcomer(places: tuple[Quarantine, Path]) -> None:
    """When the old name is taken again, both files are in the inbox."""
    quarantine, inbox = places
    path = drop(inbox, "a.jpg", b"one")
    place = quarantine.admit(path, "a.jpg", inbox, WHY)
    drop(inbox, "a.jpg", b"two")
    quarantine.expel(place, path)
    assert {one.read_bytes() for one in inbox.iterdir()} == {b"one", b"two"}
    assert files(quarantine.folder) == []


def test_expel(places: tuple[Quarantine, Path]) -> None:
    """What was moved here by mistake goes back, with no reason left."""
    quarantine, inbox = places
    path = drop(inbox, "a.jpg", b"new")
    quarantine.expel(quarantine.admit(path, "a.jpg", inbox, WHY), path)
    assert path.read_bytes() == b"new"
    assert files(quarantine.folder) == []


def test_across_volumes(places: tuple[Quarantine, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarantine on another volume works in both directions."""
    quarantine, inbox = places
    real = moving._exclusive
    monkeypatch.setattr(
        moving, "_exclusive", lambda a, b: real(a, b) if os.path.dirname(a) == os.path.dirname(b) else errno.EXDEV
    )
    quarantine.admit(drop(inbox, "a.jpg", b"data"), "a.jpg", inbox, WHY)
    assert files(inbox) == []
    quarantine.release(next(quarantine.cases()))
    assert (inbox / "a.jpg").read_bytes() == b"data"
    assert files(quarantine.folder) == []
