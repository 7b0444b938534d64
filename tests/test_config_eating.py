"""Room `config`: folders that would eat each other are refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from watcher import config
from watcher.config import eating, paths
from watcher.errors import ConfigError

# (what the file says, the key that is refused, a word of the reason); `{t}` is a fresh folder holding:
# real/inbox (a folder), link -> real, real/inbox/sub (a folder), note (a file)
EATING = [
    ("folders: [{inbox: real/inbox, outbox: real/inbox/maps}]", "folders[0].outbox", "inside the inbox"),
    ("folders: [{inbox: real/inbox, processed: real/inbox/done}]", "folders[0].processed", "inside the inbox"),
    ("folders: [{inbox: real/inbox, failed: real/inbox/a/b/failed}]", "folders[0].failed", "inside the inbox"),
    ("folders: [{inbox: real/inbox, recursive: false, outbox: real/inbox/maps}]", "folders[0].outbox", "inside"),
    ("folders: [{inbox: real/inbox, outbox: real/inbox}]", "folders[0].outbox", "the inbox itself"),
    ("folders: [{inbox: real/inbox, outbox: real/inbox/}]", "folders[0].outbox", "the inbox itself"),
    ("folders: [{inbox: real/inbox, outbox: link/inbox}]", "folders[0].outbox", "the inbox itself"),
    ("folders: [{inbox: link/inbox, outbox: real/inbox/maps}]", "folders[0].outbox", "inside the inbox"),
    ("folders: [{inbox: real/inbox, outbox: link/inbox/new/maps}]", "folders[0].outbox", "inside the inbox"),
    ("folders: [{inbox: real/inbox, outbox: real/out/../inbox/maps}]", "folders[0].outbox", "inside the inbox"),
    ("folders: [{inbox: real/inbox/sub/.., outbox: real/inbox/maps}]", "folders[0].outbox", "inside the inbox"),
    ("folders: [{inbox: in, outbox: out}, {inbox: b, outbox: in/maps}]", "folders[1].outbox", "folders[0].inbox"),
    ("folders: [{inbox: in, failed: b}, {inbox: b}]", "folders[0].failed", "folders[1].inbox itself"),
    ("folders: [{inbox: in}, {inbox: in}]", "folders[1].inbox", "the same folder"),
    ("folders: [{inbox: real/inbox}, {inbox: link/inbox}]", "folders[1].inbox", "the same folder"),
    ("folders: [{inbox: in}, {inbox: in/sub}]", "folders[1].inbox", "lies inside"),
    ("folders: [{inbox: in/sub}, {inbox: in}]", "folders[1].inbox", "holds"),
    ("folders: [{inbox: shots/in, outbox: shots}]", "folders[0].outbox", "mirrored into it"),
    ("folders: [{inbox: in, outbox: out, failed: out}]", "folders[0].failed", "could not be told"),
    ("folders: [{inbox: in, processed: x, failed: x}]", "folders[0].failed", "could not be told"),
    ("{folders: [{inbox: in}], state_dir: in/.state}", "state_dir", "the state folder"),
    ("{folders: [{inbox: in}], state_dir: in}", "state_dir", "the state folder"),
    ("folders: [{inbox: note}]", "folders[0].inbox", "is a file"),
    ("folders: [{inbox: in, outbox: note}]", "folders[0].outbox", "is a file"),
    ('folders: [{inbox: "caf\\u00e9", outbox: "cafe\\u0301/maps"}]', "folders[0].outbox", "inside the inbox"),
    ("folders: [{inbox: /}]", "folders[0].inbox", "volume of its own"),
    ("folders: [{inbox: /Volumes/CARD}]", "folders[0].inbox", "volume of its own"),
    ("folders: [{inbox: /Volumes/CARD, outbox: o, failed: f}]", "folders[0].inbox", "say where processed"),
]

FINE = [
    "folders: [{inbox: in, outbox: out}, {inbox: b, outbox: out}]",
    "folders: [{inbox: in}, {inbox: inbox2}, {inbox: in-2}]",
    "folders: [{inbox: in, outbox: in-maps, processed: inn}]",
    "folders: [{inbox: shots/in, outbox: shots, recursive: false}]",
    "folders: [{inbox: in, outbox: both, processed: both}]",
    "folders: [{inbox: /Volumes/CARD, outbox: o, processed: p, failed: f}]",
    "{folders: [{inbox: home/in}], state_dir: home}",
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "real/inbox/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "note").write_text("a file", encoding="utf-8")
    return tmp_path


def load(place: Path, text: str) -> config.Settings:
    path = place / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return config.load(path)


@pytest.mark.parametrize(("text", "key", "word"), EATING)
def test_self_eating_folders(place: Path, text: str, key: str, word: str) -> None:
    """A folder that is written must not lie in a folder that is read, by whatever name or way it is reached."""
    with pytest.raises(ConfigError) as caught:
        load(place, text)
    assert any(f"{key}: " in line and word in line for line in caught.value.problems), caught.value.problems


@pytest.mark.parametrize("text", FINE)
def test_folders_that_get_along(place: Path, text: str) -> None:
    """Neighbours with similar names, a shared outbox and a state folder above the inbox are nobody's mistake."""
    assert load(place, text).folders


def test_told_beside_other_mistakes(place: Path) -> None:
    """Self-eating folders are told even when another key of the same entry is wrong."""
    with pytest.raises(ConfigError) as caught:
        load(place, "folders:\n- inbox: in\n  outbox: in/maps\n  after: never\n")
    assert [line.split(":")[0] for line in caught.value.problems] == ["line 3", "line 4"]


def test_the_example_is_good(place: Path) -> None:
    """The folder that is offered instead is itself accepted."""
    with pytest.raises(ConfigError) as caught:
        load(place, "folders: [{inbox: in, outbox: in/maps}]")
    offered = caught.value.problems[0].rpartition("outbox: ")[2]
    assert load(place, f"folders: [{{inbox: in, outbox: {offered}}}]").folders[0].outbox == Path(offered)


def test_default_state_inside_the_inbox(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watching the whole home folder is refused: the program's own state lies in it."""
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with pytest.raises(ConfigError) as caught:
        load(place, 'folders: [{inbox: "~", outbox: /x/o, processed: /x/p, failed: /x/f}]')
    assert "folders[0].inbox: " in caught.value.problems[0]
    assert "the state folder" in caught.value.problems[0]


def test_upper_and_lower_case(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the volume takes upper and lower case for one, so does the check; elsewhere they are two folders."""
    text = "folders: [{inbox: Drop, outbox: dROP/maps, processed: p, failed: f}]"
    monkeypatch.setattr(eating, "_folds", lambda _path: False)
    assert load(place, text).folders
    monkeypatch.setattr(eating, "_folds", lambda _path: True)
    with pytest.raises(ConfigError) as caught:
        load(place, text)
    assert "inside the inbox" in caught.value.problems[0]


def test_the_volume_is_asked_about_case(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether case matters is asked of the volume: does the name with its case turned lead to the same folder?"""
    (place / "Shots").mkdir()
    assert eating._folds(place / "Shots/in") is (place / "sHOTS").exists()
    (place / "sHOTS").symlink_to("Shots")
    assert eating._folds(place / "Shots/in")


def test_one_folder_by_identity(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names that no spelling connects are one folder when the system says so (a bind mount, a firmlink)."""
    (place / "other").mkdir()
    real = eating._is_one
    pair = {place / "other", place / "real/inbox"}
    monkeypatch.setattr(eating, "_is_one", lambda one, two: {one, two} == pair or real(one, two))
    with pytest.raises(ConfigError) as caught:
        load(place, "folders: [{inbox: real/inbox, outbox: other/maps}]")
    assert "inside the inbox" in caught.value.problems[0]


@pytest.mark.parametrize(
    ("inbox", "outbox"),
    [("/a/inbox", "/a/outbox"), ("/a/drop", "/a/drop-outbox"), ("/a/My Shots", "/a/My Shots-outbox")],
)
def test_beside(inbox: str, outbox: str) -> None:
    """An entry that names only its inbox gets folders beside it, under the inbox's own name unless that is inbox."""
    assert paths.beside(Path(inbox), "outbox") == Path(outbox)


def test_two_lone_inboxes_share_nothing(place: Path) -> None:
    """Two entries that name only their inboxes, in one folder, share no outbox, no processed and no failed."""
    first, second = load(place, "folders: [{inbox: a}, {inbox: b}]").folders
    mine = {first.outbox, first.processed, first.failed}
    assert mine.isdisjoint({second.outbox, second.processed, second.failed})
    assert {path.parent for path in mine} == {place}
