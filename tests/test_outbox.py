"""The name of a map, and its publishing, whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from watcher import durable
from watcher.outbox import Outbox, Output, fill, shorten


def refusing(code: int, after: int = 0) -> Callable[..., Any]:
    """``write_whole`` that fails at the ``after``-th file."""
    count = 0

    def write(target: Path, data: bytes) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise OSError(code, os.strerror(code), str(target))
        durable.write_whole(target, data)

    return write


@pytest.mark.parametrize(
    ("template", "name", "base"),
    [
        ("{stem}_depth", "a.jpg", "a_depth"),
        ("{stem}_depth", "a.b.jpg", "a.b_depth"),
        ("{stem}_depth", "a", "a_depth"),
        ("{stem}_depth", ".jpg", ".jpg_depth"),
        ("{name}", "a.jpg", "a.jpg"),
        ("{stem}-{ext}-{model}", "a.JPG", "a-JPG-midas"),
        ("depth.{frame}", "shot_v2.0042.exr", "depth.0042"),
        ("depth.{frame}", "shot.exr", "depth."),
        ("{stem}", "line\nbreak \udcff.jpg", "line\nbreak \udcff"),
        ("{stem}", "{name}.jpg", "{name}"),
    ],
)
def test_fill(template: str, name: str, base: str) -> None:
    """Each field stands for what the settings say, whatever the name is made of."""
    assert fill(template, name, "midas") == base


@pytest.mark.parametrize("name", ["x" * 251 + ".jpg", "é" * 125 + ".jpg", "🙂" * 62 + ".jpg", "\udcff" * 255])
def test_long_names(tmp_path: Path, name: str) -> None:
    """A source whose name fills the last byte gets a map that can be written, and not that of its neighbour."""
    outbox = Outbox(tmp_path / "out", "{stem}_depth", "m")
    bases = outbox.bases(name)
    outputs = (Output(".png", b"map"), Output(".preview.jpg", b"preview"), Output(".json", b"{}"))
    tried = [next(bases) for _ in range(3)]
    for base in tried:
        for path in outbox.publish(base, outputs):
            assert path.exists()
    assert len(set(tried)) == (3 if "." in name else 2)
    twin = name[:-5] + "Y" + name[-4:]
    assert next(outbox.bases(twin)) != tried[0]


def test_short_names_are_left_alone() -> None:
    """Only what does not fit is cut, and always in the same way."""
    assert shorten("a" * 223) == "a" * 223
    assert shorten("a" * 224) == shorten("a" * 224) != shorten("a" * 225)


def test_bases() -> None:
    """Sub-folders are mirrored; a name that is taken gives way to one with the whole source name, then to numbers."""
    bases = Outbox(Path("/out"), "{stem}_depth", "m").bases("sub/deep/a.jpg")
    assert [next(bases) for _ in range(4)] == [
        "sub/deep/a_depth",
        "sub/deep/a.jpg_depth",
        "sub/deep/a.jpg_depth (2)",
        "sub/deep/a.jpg_depth (3)",
    ]


def test_a_template_without_the_name_never_ends() -> None:
    """Even where all sources have the same name for their map, each finds one of its own."""
    bases = Outbox(Path("/out"), "depth", "m").bases("a.jpg")
    found = [next(bases) for _ in range(100)]
    assert len(set(found)) >= 99


@pytest.mark.parametrize("there", ["file", "folder", "dangling link"])
@pytest.mark.parametrize("ending", [".png", ".preview.jpg"])
def test_there(tmp_path: Path, there: str, ending: str) -> None:
    """Whatever bears one of the names that a frame would write counts as taken."""
    outbox = Outbox(tmp_path, "{stem}", "m")
    place = tmp_path / f"a{ending}"
    if there == "file":
        place.write_bytes(b"")
    elif there == "folder":
        place.mkdir()
    else:
        place.symlink_to("nowhere")
    assert outbox.there("a", (".png", ".preview.jpg")) == (ending,)
    assert outbox.there("b", (".png", ".preview.jpg")) == ()


def test_publish(tmp_path: Path) -> None:
    """The map comes last, so that it stands for all; nothing else is left; doing it again replaces it."""
    outbox = Outbox(tmp_path / "out", "{stem}_depth", "m")
    for data in (b"old", b"new"):
        paths = outbox.publish("sub/a_depth", (Output(".png", data), Output(".json", data)))
        assert [path.name for path in paths] == ["a_depth.png", "a_depth.json"]
        assert {path.read_bytes() for path in paths} == {data}
    assert sorted(os.listdir(tmp_path / "out" / "sub")) == ["a_depth.json", "a_depth.png"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_no_map_without_its_company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """When the disk fails between two files of a frame there is no map yet, and none of the hidden files."""
    outbox = Outbox(tmp_path, "{stem}", "m")
    outputs = (Output(".png", b"map"), Output(".json", b"{}"))
    with monkeypatch.context() as patch:
        patch.setattr("watcher.outbox.write_whole", refusing(code, after=1))
        with pytest.raises(OSError, match=os.strerror(code)):
            outbox.publish("a", outputs)
    assert os.listdir(tmp_path) == ["a.json"]
    assert outbox.publish("a", outputs)[0].read_bytes() == b"map"


def test_a_nearly_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Free space is checked before a large write, so that journal and log still find some."""
    outbox = Outbox(tmp_path, "{stem}", "m")
    monkeypatch.setattr("watcher.outbox.free_bytes", lambda _: 1 << 20)
    with pytest.raises(OSError, match="full") as caught:
        outbox.publish("a", (Output(".png", b"map"),))
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []
