"""Room `config`: reading, defaults, places, overrides and presets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from watcher import config
from watcher.config import presets
from watcher.errors import ConfigError

ROOT = Path(__file__).parents[1]


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "null\n", "watch:\nmodel:\n  coreml:\nfolders:\n", "\ufeff"]
)
def test_empty(tmp_path: Path, text: str) -> None:
    """An empty file, and sections whose keys are all commented out, mean the defaults."""
    assert config.load(write(tmp_path, text)) == config.load(None)


def test_shipped_file_says_every_default() -> None:
    """The shipped config.yaml names every key that exists, each with its default."""
    given_keys = yaml.safe_load(config.default_text())
    assert config.load(ROOT / "config.yaml") == config.load(None)
    shown = yaml.safe_load(config.show(config.load(None)))

    def keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: keys(inner) for name, inner in value.items()}
        return [keys(inner) for inner in value] if isinstance(value, list) and value else None

    assert keys(given_keys) == keys(shown)


def test_shipped_file_explains_every_key() -> None:
    """Each key of the shipped file has its own comment, on its line or on the next for a section."""
    lines = [line for line in config.default_text().splitlines() if line.strip()]
    bare = [a for a, b in zip(lines, [*lines[1:], ""], strict=True) if "#" not in a and "#" not in b]
    assert [line for line in bare if not line.rstrip().endswith(":")] == []


def test_default_text_is_the_one_file() -> None:
    """In a checkout `config init` writes the top-level file itself; there is no second copy to drift."""
    assert config.default_text() == (ROOT / "config.yaml").read_text(encoding="utf-8")


def test_anchors(tmp_path: Path) -> None:
    """Entries may share settings by YAML's anchors and merge keys; what is given beside them wins."""
    text = (
        "folders:\n- inbox: a\n  output: &o {near: black, format: jpg}\n- inbox: b\n  output: {<<: *o, format: npy}\n"
    )
    first, second = config.load(write(tmp_path, text)).folders
    assert (first.output.near, first.output.format) == ("black", "jpg")
    assert (second.output.near, second.output.format) == ("black", "npy")


def test_plain_words(tmp_path: Path) -> None:
    """Words are read as YAML 1.2 reads them: no is a word, 1_000 and 1e3 are numbers."""
    settings = config.load(write(tmp_path, "limits: {max_pixels: 1_000, run_timeout_s: 1e3}\nmodel: {name: no}\n"))
    assert (settings.limits.max_pixels, settings.limits.run_timeout_s, settings.model.name) == (1000, 1000.0, "no")


def test_frozen() -> None:
    """Settings do not change after they have been checked, at no depth."""
    settings = config.load(None)
    with pytest.raises(ValueError, match="frozen"):
        settings.watch.settle_s = 3
    with pytest.raises(ValueError, match="frozen"):
        settings.folders[0].output.near = "black"
    assert isinstance(settings.folders, tuple)
    assert isinstance(settings.folders[0].ignore, tuple)


def test_expansion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """~ and $VARS expand, $$ is a dollar, and relative paths start at the folder of the file, links kept."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("SHOTS", "/Volumes/Shots")
    text = "folders:\n- {inbox: $SHOTS/in, outbox: ~/out, processed: done, failed: '${SHOTS}/a$$b'}\n"
    text += "model: {name: nets/my.onnx, dir: nets}\nstate_dir: ./state\nlog: {file: ~/a.log}\n"
    path = link / "config.yaml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.chdir("/")
    settings = config.load(path)
    folder = settings.folders[0]
    assert folder.inbox == Path("/Volumes/Shots/in")
    assert folder.outbox == Path("/home/ann/out")
    assert folder.processed == link / "done"
    assert folder.failed == Path("/Volumes/Shots/a$b")
    assert settings.model.name == str(link / "nets/my.onnx")
    assert settings.state_dir == link / "state"
    assert config.log_file(settings) == Path("/home/ann/a.log")
    assert config.models_dir(settings) == link / "nets"


def test_model_name_that_is_no_path() -> None:
    """A catalogue name stays a name; the catalogue decides whether it exists."""
    assert config.load(None, {"model.name": "midas-v21-small"}).model.name == "midas-v21-small"


def test_default_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a word in the file, state and models lie in the user's data folder, one inside the other."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    settings = config.load(None)
    assert settings.folders[0].inbox == tmp_path / "DepthWatcher/inbox"
    assert config.state_dir(settings).name == "depth-watcher"
    assert tmp_path in config.state_dir(settings).parents
    assert config.models_dir(settings) == config.state_dir(settings) / "models"
    assert config.log_file(settings).name == "depth-watcher.log"


def test_log_place_on_a_mac(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a Mac the log lies where Console looks for it."""
    monkeypatch.setattr("watcher.config.places._MAC", True)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config.log_file(config.load(None)) == tmp_path / "Library/Logs/depth-watcher/depth-watcher.log"


def test_search_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--config, then $DEPTH_WATCHER_CONFIG, then ./config.yaml, then the user's folder, then the defaults."""
    here, user = tmp_path / "here", tmp_path / "user"
    (user / "depth-watcher").mkdir(parents=True)
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("watcher.config.places.user_file", lambda: user / "depth-watcher/config.yaml")
    monkeypatch.delenv("DEPTH_WATCHER_CONFIG", raising=False)
    assert config.find(None) is None
    in_user = write(user / "depth-watcher", "")
    assert config.find(None) == in_user
    in_here = write(here, "")
    assert config.find(None) == in_here
    named = tmp_path / "named.yaml"
    named.write_text("", encoding="utf-8")
    monkeypatch.setenv("DEPTH_WATCHER_CONFIG", str(named))
    assert config.find(None) == named
    assert config.find(Path("config.yaml")) == in_here


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_named_file_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool) -> None:
    """A file that was asked for and is missing, or is a folder, is an error, never a silent default."""
    monkeypatch.delenv("DEPTH_WATCHER_CONFIG", raising=False)
    for path, words in ((tmp_path / "none.yaml", "not there"), (tmp_path, "names a folder")):
        if by_variable:
            monkeypatch.setenv("DEPTH_WATCHER_CONFIG", str(path))
        with pytest.raises(ConfigError, match=words):
            config.find(None if by_variable else path)


def test_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overrides win over the file, are relative to the current folder, and None means not given."""
    path = write(tmp_path, "folders:\n- {inbox: in, after: move}\nmodel:\n")
    other = tmp_path / "a $b"
    other.mkdir()
    monkeypatch.chdir(other)
    settings = config.load(
        path,
        {
            "folders[0].inbox": Path("drop"),
            "folders.0.outbox": "maps",
            "folders[0].after": "keep",
            "folders[0].output.near": "black",
            "model.name": None,
            "model.provider": "cpu",
        },
    )
    folder = settings.folders[0]
    assert (folder.inbox, folder.outbox) == (other / "drop", other / "maps")
    assert folder.failed == other / "drop-failed"
    assert (folder.after, folder.output.near) == ("keep", "black")
    assert (settings.model.name, settings.model.provider) == ("auto", "cpu")


def test_overrides_of_the_defaults(tmp_path: Path) -> None:
    """Without a file, naming an inbox is enough: the other folders follow it."""
    folder = config.load(None, {"folders[0].inbox": tmp_path / "inbox"}).folders[0]
    assert [folder.outbox, folder.processed, folder.failed] == [tmp_path / n for n in ("outbox", "processed", "failed")]


def test_override_of_a_whole_section(tmp_path: Path) -> None:
    """A whole section can be laid over the file, so that one call can name one folder alone."""
    path = write(tmp_path, "folders:\n- {inbox: one}\n- {inbox: two}\n")
    settings = config.load(path, {"folders": [{"inbox": tmp_path / "three", "after": "keep"}]})
    assert [folder.inbox for folder in settings.folders] == [tmp_path / "three"]


@pytest.mark.parametrize("name", sorted(presets.PRESETS))
def test_presets(tmp_path: Path, name: str) -> None:
    """A preset fills the defaults of output, and a key that the user gives wins over it."""
    bundle = presets.PRESETS[name]
    text = f"folders:\n- {{inbox: a, preset: {name}}}\n- {{inbox: b, preset: {name}, output: {{format: npy}}}}\n"
    plain, own = config.load(write(tmp_path, text)).folders
    assert {key: getattr(plain.output, key) for key in bundle} == dict(bundle)
    assert (own.output.format, own.output.near) == ("npy", bundle["near"])


def test_show_reads_back(tmp_path: Path) -> None:
    """What `config show` prints is a configuration that gives the same settings."""
    text = (
        "folders:\n- {inbox: 'a: #$$HOME é', preset: nuke, output: {range: [0, 2.5]}, ignore: ['*.x', '1e3', 'yes']}\n"
    )
    settings = config.load(write(tmp_path, text + "model: {name: $HOME/n$$.onnx}\nlog: {file: l$$.log}\n"))
    again = tmp_path / "again.yaml"
    again.write_text(config.show(settings), encoding="utf-8")
    assert config.load(again) == settings


def test_import_is_light() -> None:
    """Importing the room loads neither the validation library nor YAML nor numbers: `--help` stays quick."""
    heavy = {"pydantic", "yaml", "platformdirs", "numpy", "cv2", "onnxruntime"}
    code = f"import sys, watcher.config; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"


def test_unknown_attribute() -> None:
    """The room gives its classes by name and nothing else."""
    assert config.Settings.__name__ == "Settings"
    with pytest.raises(AttributeError):
        _ = config.Nothing


def test_locks_of_inboxes_are_in_one_place(tmp_path: Path) -> None:
    """Two configurations with state folders of their own still look for the lock of an inbox in the same folder."""
    other = config.load(None, {"state_dir": tmp_path})
    assert config.state_dir(other) == tmp_path
    assert tmp_path not in config.locks_dir().parents
    assert config.locks_dir().parent == config.state_dir(config.load(None))


def test_default_text_of_an_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package carries the file in its data; one that has lost it says so."""
    monkeypatch.setattr("watcher.config.places.__file__", str(tmp_path / "site/watcher/config/places.py"))
    with pytest.raises(ConfigError, match="missing"):
        config.default_text()
    data = tmp_path / "site/watcher/data"
    data.mkdir(parents=True)
    (data / "config.yaml").write_text("log: {}", encoding="utf-8")
    assert config.default_text() == "log: {}"
