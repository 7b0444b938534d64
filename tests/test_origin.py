"""A map is only ever replaced by a newer map of the same source; whatever else has its name stays."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rooms import files, folder

from watcher import durable, recovery
from watcher.folder import Folder
from watcher.frame import Frame, readable
from watcher.imagefile import encode
from watcher.journal import Journal
from watcher.outbox import Output

ODD = ["a.jpg", "line\nbreak.jpg", "🙂.jpg", "\udcff.jpg", "e\u0301.jpg"]


@dataclass
class Life:
    place: Path
    folder: Folder
    journal: Journal

    @property
    def outbox(self) -> Path:
        return self.folder.outbox.folder

    def attempt(self, name: str = "a.jpg", data: bytes = b"x") -> Frame:
        (self.place / "in" / name).write_bytes(data)
        sighting = self.folder.inbox.sight(str(self.place / "in" / name))
        assert sighting is not None
        assert sighting.source is not None
        return self.folder.attempt(self.journal, sighting.source, alone=False, patient=True)

    def publish(self, frame: Frame, sha256: str = "", *, note: str = "") -> str:
        """The name of the map, which says ``note`` as well."""
        outputs = tuple(Output(ending, made(frame, ending, sha256, note)) for ending in self.folder.endings)
        return self.folder.publish(self.journal, frame, outputs, sha256)[0].name

    def killed(self, *, away: bool = False) -> None:
        """The process is killed now, and started again; ``away``: when the outbox cannot be looked at."""
        with pytest.MonkeyPatch.context() as patch:
            if away:
                patch.setattr("watcher.outbox.is_there", refuse)
            recovery.recover(self.journal, [self.folder], self.place / "state", 3)


def refuse(path: Path) -> Any:
    raise OSError(errno.EIO, "no", str(path))


def made(frame: Frame, ending: str, sha256: str, note: str) -> bytes:
    size = frame.source.identity.size
    facts = {"source": readable(frame.source.rel), "source_bytes": str(size), "source_sha256": sha256, "made": note}
    fmt = {".png": "png16", ".exr": "exr", ".npy": "npy"}.get(ending)
    if fmt is None:
        return f'{{"source": "{facts["source"]}", "source_bytes": {size}, "made": "{note}"}}'.encode()
    return encode(np.full((4, 4), len(note), "uint16" if fmt == "png16" else "float32"), fmt, facts)


def born(place: Path, **output: Any) -> Life:
    (place / "state").mkdir()
    journal = Journal(place / "state" / "journal.db")
    journal.create()
    return Life(place, folder(place, **{f"folder__output__{key}": value for key, value in output.items()}), journal)


@pytest.fixture
def life(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Life]:
    lived = born(tmp_path, **getattr(request, "param", {}))
    yield lived
    lived.journal.close()


def take(life: Life, name: str, data: bytes = b"somebody's") -> None:
    life.outbox.mkdir(exist_ok=True)
    (life.outbox / name).write_bytes(data)


def test_an_outbox_that_comes_back_with_files(life: Life) -> None:
    """What could not be seen when the attempt was written down is seen before the map is published."""
    frame = life.attempt()
    assert frame.base == "a_depth"
    take(life, "a_depth.png")
    assert life.publish(frame) == "a.jpg_depth.png"
    assert (life.outbox / "a_depth.png").read_bytes() == b"somebody's"
    assert life.publish(frame) == "a.jpg_depth.png"  # whoever publishes again knows the new name
    assert files(life.outbox) == ["a.jpg_depth.png", "a_depth.png"]


@pytest.mark.parametrize("how", ["hold", "suspect", "fail"])
def test_an_older_claim(life: Life, how: str) -> None:
    """A name that a source had claimed earlier, and has no map under, is as good as any other."""
    frame = life.attempt()
    if how == "suspect":
        life.journal.suspect(frame)
    else:
        (life.journal.hold if how == "hold" else life.journal.fail)(frame, {"code": "truncated"})
    take(life, "a_depth.png")
    assert life.publish(life.attempt(data=b"repaired")) == "a.jpg_depth.png"
    assert (life.outbox / "a_depth.png").read_bytes() == b"somebody's"


@pytest.mark.parametrize("life", [{"sidecar": True}, {"format": ["png16", "exr"]}], indirect=True)
@pytest.mark.parametrize("beside", [0, 1])
def test_files_beside_the_map(life: Life, beside: int) -> None:
    """Not one file of somebody else's is replaced, and none of ours stays beside it."""
    frame = life.attempt()
    take(life, f"a_depth{life.folder.endings[beside]}")
    life.publish(frame)
    assert files(life.outbox) == sorted(
        [f"a_depth{life.folder.endings[beside]}", *(f"a.jpg_depth{ending}" for ending in life.folder.endings)]
    )


@pytest.mark.parametrize("life", [{"sidecar": True}], indirect=True)
def test_a_file_that_comes_while_the_map_is_written(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the renaming, too."""
    real = durable.add_whole

    def add(path: Path, data: bytes) -> None:
        if path.name == "a_depth.png":
            path.write_bytes(b"somebody's")
        real(path, data)

    monkeypatch.setattr("watcher.outbox.add_whole", add)
    assert life.publish(life.attempt()) == "a.jpg_depth.png"
    assert files(life.outbox) == ["a.jpg_depth.json", "a.jpg_depth.png", "a_depth.png"]
    assert (life.outbox / "a_depth.png").read_bytes() == b"somebody's"


@pytest.mark.parametrize("life", [{"sidecar": False}, {"sidecar": True}], indirect=True)
@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_a_kill_before_it_is_written_down(life: Life, name: str, away: bool) -> None:
    """The map is published, the journal does not know: the next life makes it again under the same name."""
    life.publish(life.attempt(name), "abc")
    before = files(life.outbox)
    life.killed(away=away)
    life.publish(life.attempt(name), "abc", note="later")
    assert files(life.outbox) == before


def test_a_kill_before_it_is_written_down_and_then_a_change(life: Life) -> None:
    """New content of that name has a newer map of the same source."""
    life.publish(life.attempt())
    life.killed()
    assert life.publish(life.attempt(data=b"another content")) == "a_depth.png"


@pytest.mark.parametrize("life", [{"sidecar": True}, {"format": ["png16", "exr"]}], indirect=True)
def test_a_kill_before_the_map(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beside the map is there, the map is not: it comes to where the others are, as it does after an error."""
    real = durable.add_whole

    def full(path: Path, data: bytes) -> None:
        if path.suffix == ".png":
            raise OSError(errno.ENOSPC, "full", str(path))
        real(path, data)

    frame = life.attempt()
    with monkeypatch.context() as patch:
        patch.setattr("watcher.outbox.add_whole", full)
        for _ in range(2):
            with pytest.raises(OSError, match="full"):
                life.publish(frame)
    life.killed()
    life.publish(life.attempt(), note="later")
    assert files(life.outbox) == sorted(f"a_depth{ending}" for ending in life.folder.endings)


@pytest.mark.parametrize("life", [{"format": "npy"}], indirect=True)
def test_a_map_that_cannot_speak(life: Life) -> None:
    """Where the format has no place for facts, the very same bytes are ours, and others are not."""
    assert life.publish(life.attempt()) == "a_depth.npy"
    life.killed()
    assert life.publish(life.attempt()) == "a_depth.npy"
    life.killed()
    assert life.publish(life.attempt(), note="another map") == "a.jpg_depth.npy"


def test_another_content_of_the_same_size(life: Life) -> None:
    """A journal that knows nothing of a map compares what was read, not only its size; its own maps are replaced."""
    life.publish(first := life.attempt(), "abc")
    life.journal.forget(first.source.inbox, first.source.key, "attempt")
    second = life.attempt()
    assert life.publish(second, "def") == "a.jpg_depth.png"
    life.journal.done(second, ["m"])
    assert life.publish(life.attempt(data=b"y"), "ghi") == "a.jpg_depth.png"


def test_an_outbox_that_cannot_be_looked_at(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is no answer: the attempt goes on, and the map waits until somebody can tell."""
    take(life, "a_depth.png")
    with monkeypatch.context() as patch:
        patch.setattr("watcher.outbox.is_there", refuse)
        frame = life.attempt()
        with pytest.raises(OSError, match="no"):
            life.publish(frame)
    assert frame.base == "a_depth"
    with monkeypatch.context() as patch:
        patch.setattr("watcher.origin.read_facts", refuse)
        with pytest.raises(OSError, match="no"):
            life.publish(frame)
    assert life.publish(frame) == "a.jpg_depth.png"
    assert os.listdir(life.outbox) != []


@pytest.mark.parametrize("life", [{"sidecar": True}], indirect=True)
@pytest.mark.parametrize("text", [b"{", b"[]", b"null", b"\xff", b'{"source": 5}', b"[" * 100_000, b"1" * (2 << 20)])
def test_notes_of_somebody_else(life: Life, text: bytes) -> None:
    """Whatever is in a file that is called like a sidecar of ours, it stays."""
    frame = life.attempt()
    take(life, "a_depth.json", text)
    assert life.publish(frame) == "a.jpg_depth.png"
    assert (life.outbox / "a_depth.json").read_bytes() == text
