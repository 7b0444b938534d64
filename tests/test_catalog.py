"""The catalogue: complete entries, and the way from a name to a verified file."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from watcher.catalog import STARTER, Spec, by_name, embedded_dir, find, manifest, verify
from watcher.catalog import spec as specs
from watcher.errors import ModelError
from watcher.session import probe


def test_every_entry_is_complete() -> None:
    """Whoever pulls a model sees licence, size, parameters and citation; whoever runs it knows how to feed it."""
    names = [spec.name for spec in manifest()]
    assert len(set(names)) == len(names)
    assert len({spec.rank for spec in manifest()}) == len(names)
    for spec in manifest():
        assert spec.title
        assert spec.licence != "unknown"
        assert spec.bytes > 0
        assert spec.parameters > 0
        assert spec.citation
        assert spec.input_px
        assert spec.input
        assert spec.embedded == (not spec.url)
        assert spec.embedded or spec.url.startswith("https://")


def test_nothing_noncommercial_is_offered() -> None:
    """Every entry may be used for paid work; weights that may not be are left to who fetches them by hand."""
    assert all(spec.commercial for spec in manifest())


def test_the_starter_is_what_the_manifest_says() -> None:
    """Size, hash, input name and input size of the embedded file agree with its entry and its graph."""
    spec = by_name("starter")
    content = (embedded_dir() / spec.file).read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (spec.bytes, spec.sha256)
    (entry,) = probe(embedded_dir() / spec.file).inputs
    assert entry.name == spec.input
    assert entry.shape == (1, 3, *(spec.input_px or ()))


def test_the_model_card_tells_the_limits() -> None:
    """The card that travels with the starter names it for what it is and says where it is weak."""
    card = (embedded_dir() / "README.md").read_text(encoding="utf-8")
    assert "starter: for a first look and for tests, not MiDaS" in card
    assert "people and pets" in card.lower()


# -- entries ------------------------------------------------------------------------------------------------------

GOOD = {"name": "x", "file": "x.onnx"}


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"colour": 1}, "unknown key 'colour'"),
        ({"input_px": [384]}, "input_px"),
        ({"input_px": [0, 384]}, "input_px"),
        ({"input_px": [1.5, 384]}, "input_px"),
        ({"mean": [1, 2]}, "mean"),
        ({"mean": [1, 2, 3]}, "come together"),
        ({"mean": [1, 2, 3], "std": [1, 0, 1]}, "std"),
        ({"multiple": 0}, "multiple"),
        ({"bytes": -1}, "bytes"),
        ({"bytes": True}, "bytes"),
        ({"sha256": "abc"}, "sha256"),
        ({"resize": "crop"}, "resize"),
        ({"output": "metric depth"}, "output"),
        ({"layout": "NHWC"}, "layout"),
        ({"file": "../x.onnx"}, "file"),
        ({"name": ""}, "without name"),
        ({"commercial": "yes"}, "commercial"),
        ({"licence": 3}, "licence"),
    ],
)
def test_bad_entries_are_named(extra: dict[str, object], says: str) -> None:
    """A wrong key or value names itself, where it stands and what it must be."""
    with pytest.raises(ModelError, match=says) as caught:
        specs.from_entry({**GOOD, **extra}, "here.toml")
    assert "here.toml" in str(caught.value)
    assert caught.value.remedy


# -- finding ------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_pulled(monkeypatch: pytest.MonkeyPatch) -> tuple[Spec, Spec]:
    """A catalogue of the starter and two small models."""
    low, high = (
        Spec(
            name=name,
            file=f"{name}.onnx",
            url=f"https://example.invalid/{name}",
            bytes=len(name),
            sha256=hashlib.sha256(name.encode()).hexdigest(),
            licence="MIT",
            commercial=True,
            rank=rank,
        )
        for name, rank in (("low", 1), ("high", 2))
    )
    catalogue = (high, by_name("starter"), low)
    monkeypatch.setattr(specs, "manifest", lambda: catalogue)
    return low, high


def test_auto_without_a_pulled_model_is_the_starter(tmp_path: Path) -> None:
    """`auto` works at once and offline, and says what it is and how to get MiDaS."""
    model = find("auto", tmp_path / "nothing")
    assert model.name == "starter"
    assert model.notice == STARTER
    assert "not MiDaS" in model.notice
    assert "depth-watcher models pull midas" in model.notice
    assert model.path.is_file()
    assert model.sha256 == by_name("starter").sha256


def test_auto_takes_the_best_pulled_model(two_pulled: tuple[Spec, Spec], tmp_path: Path) -> None:
    """With models pulled, `auto` is the one of the highest rank, without a notice."""
    (tmp_path / "low.onnx").write_text("low")
    assert find("auto", tmp_path).name == "low"
    (tmp_path / "high.onnx").write_text("high")
    model = find("auto", tmp_path)
    assert (model.name, model.notice) == ("high", "")


def test_auto_does_not_hide_a_damaged_model(two_pulled: tuple[Spec, Spec], tmp_path: Path) -> None:
    """A damaged file is an error, not another model in silence: maps of one shot must come from one network."""
    (tmp_path / "low.onnx").write_text("low")
    (tmp_path / "high.onnx").write_text("hugh")
    with pytest.raises(ModelError, match="damaged") as caught:
        find("auto", tmp_path)
    assert "models pull high" in caught.value.remedy


def test_names_that_are_not_there(tmp_path: Path) -> None:
    """A model that is not pulled says how to pull it; a name nobody knows lists the names there are."""
    with pytest.raises(ModelError, match="not been pulled") as caught:
        find("midas-v21-small", tmp_path)
    assert "depth-watcher models pull midas-v21-small" in caught.value.remedy
    assert caught.value.exit_code == 2
    with pytest.raises(ModelError, match="midas-v22") as caught:
        find("midas-v22", tmp_path)
    assert "midas-v21-small" in caught.value.remedy


def test_a_path_is_a_model(tmp_path: Path) -> None:
    """Any .onnx path works, with a notice of what is not known about it."""
    path = tmp_path / "Mein Netz.onnx"
    path.write_bytes(b"network")
    model = find(str(path), tmp_path / "models")
    assert (model.spec.name, model.path, model.spec.input_px) == ("Mein Netz", path, None)
    assert model.sha256 == hashlib.sha256(b"network").hexdigest()
    assert "not in the catalogue" in model.notice
    with pytest.raises(ModelError, match="no model file"):
        find(str(tmp_path / "none.onnx"), tmp_path)


def test_a_relative_path_may_lie_in_the_models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the user's own in the models folder is found by its name, wherever the program was started."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "own.onnx").write_bytes(b"network")
    assert find("own.onnx", tmp_path / "models").path == tmp_path / "models" / "own.onnx"


def test_a_copy_of_a_known_model_is_known(tmp_path: Path) -> None:
    """A file that is byte for byte one of the catalogue's gets that entry, whatever it is called."""
    copy = tmp_path / "renamed.onnx"
    shutil.copy(embedded_dir() / "starter.onnx", copy)
    model = find(str(copy), tmp_path)
    assert (model.name, model.path, model.notice) == ("starter", copy, STARTER)


def test_a_note_beside_a_file_completes_it(tmp_path: Path) -> None:
    """What a graph cannot say is said in a .toml of the same name."""
    (tmp_path / "own.onnx").write_bytes(b"network")
    note = tmp_path / "own.toml"
    note.write_text("input_px = [384, 512]\nmean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]\nlicence = 'mine'\n")
    spec = find(str(tmp_path / "own.onnx"), tmp_path).spec
    assert (spec.input_px, spec.mean, spec.std, spec.licence) == ((384, 512), (0.5,) * 3, (0.5,) * 3, "mine")
    note.write_text("input_px = [384")
    with pytest.raises(ModelError, match=r"own\.toml is not TOML"):
        find(str(tmp_path / "own.onnx"), tmp_path)


def test_verify_judges_every_model(two_pulled: tuple[Spec, Spec], tmp_path: Path) -> None:
    """`verify` tells for each model whether it is whole, damaged or absent."""
    (tmp_path / "low.onnx").write_text("lov")
    verdicts = {verdict.spec.name: verdict for verdict in verify(tmp_path)}
    assert {name: verdict.state for name, verdict in verdicts.items()} == {
        "starter": "ok",
        "low": "damaged",
        "high": "absent",
    }
    (tmp_path / "low.onnx").write_text("longer")
    assert "6 bytes instead of 3" in next(v for v in verify(tmp_path) if v.spec.name == "low").detail


def test_a_file_that_cannot_be_held_to_a_hash_is_unsure(
    two_pulled: tuple[Spec, Spec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file put there by hand, of a model without a published hash, is used, and the notice says what is missing."""
    unknown = replace(two_pulled[1], sha256="")
    catalogue = (unknown, by_name("starter"))
    monkeypatch.setattr(specs, "manifest", lambda: catalogue)
    (tmp_path / "high.onnx").write_text("high")
    model = find("high", tmp_path)
    assert "published a hash" in model.notice
    assert model.sha256 == hashlib.sha256(b"high").hexdigest()
