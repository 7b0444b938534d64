"""Room `config`: mistakes are told in words, all at once, each with its line."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from watcher import config
from watcher.config import problems, reading
from watcher.errors import Blame, ConfigError, ExitCode


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(path: Path | None, overrides: dict[str, Any] | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config.load(path, overrides)
    return caught.value.problems


def one_mistake(folder: Path, text: str) -> str:
    found = mistakes(write(folder, text))
    assert len(found) == 1, found
    return found[0]


FIVE = """\
folders:
  - inbox: pictures/inbox
    outbox: pictures/inbox/maps
    after: mvoe
watch:
  setle_s: 3
  rescan_s: "30"
limits:
  max_attempts: 0
"""


def test_five_mistakes_at_once(tmp_path: Path) -> None:
    """Five different mistakes are told together, each with its line, key path, what was found and an example."""
    path = write(tmp_path, FIVE)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    error = caught.value
    starts = [
        "line 3: folders[0].outbox: ",
        "line 4: folders[0].after: ",
        "line 6: watch.setle_s: ",
        "line 7: watch.rescan_s: ",
        "line 9: limits.max_attempts: ",
    ]
    assert len(error.problems) == 5
    assert all(line.startswith(start) for line, start in zip(error.problems, starts, strict=True)), error.problems
    assert all("or example: " in line for line in error.problems)
    for line, found in zip(
        error.problems, ["pictures/inbox/maps", '"mvoe"', "setle_s", '"30"', "found 0"], strict=True
    ):
        assert found in line
    assert "5 mistakes" in error.what
    assert str(path) in error.what
    assert (error.exit_code, error.blame) == (ExitCode.USAGE, Blame.CONFIG)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("folders:\n- inbox: a\n  recursive: 'yes'", ['found "yes"', "true or false"]),
        ("folders:\n- inbox: a\n  recursive: yes", ['found "yes"', "true or false"]),
        ("limits: {max_attempts: '3'}", ['"3"', "a whole number from 1 to 100"]),
        ("limits: {max_attempts: 2.5}", ["2.5", "a whole number"]),
        ("limits: {max_attempts: true}", ["found true", "a whole number"]),
        ("watch: {settle_s: .nan}", ["a number"]),
        ("watch: {settle_s: -1}", ["found -1", "a number from 0 to 3_600"]),
        ("watch: {settle_s: true}", ["found true", "a number"]),
        ("watch: {settle_s: }", ["found nothing", "a number"]),
        ("watch: 5", ["found 5", "a section with keys"]),
        ("watch: [1]", ["found [1]", "a section with keys"]),
        ("folders: {inbox: a}", ["a section with keys", "- inbox:"]),
        ("folders: []", ["found []", "- inbox:"]),
        ("folders: [a]", ["folders[0]", 'found "a"', "inbox"]),
        ("folders: [{outbox: a}]", ["folders[0].inbox", "is missing"]),
        ("folders: [{inbox: 3}]", ["found 3", "a path"]),
        ("folders: [{inbox: }]", ["found nothing", "a path"]),
        ("folders: [{inbox: ''}]", ["cannot be empty"]),
        ("folders: [{inbox: $NOT_THERE/x}]", ["$NOT_THERE is not set"]),
        ("folders: [{inbox: " + "x/" * 3000 + "}]", ["this long"]),
        ("folders: [{inbox: " + "x" * 300 + "}]", ["this long"]),
        ("folders: [{inbox: ~nobody-of-that-name/x}]", ["no user called"]),
        ("folders: [{inbox: a, ignore: '*.x'}]", ["a list of texts"]),
        ("folders: [{inbox: a, ignore: [1]}]", ["ignore[0]", "found 1", "text"]),
        ("folders: [{inbox: a, preset: Resolve}]", ["did you mean resolve"]),
        ("folders: [{inbox: a, output: {format: tif16}}]", ["did you mean tiff16"]),
        ("folders: [{inbox: a, output: {format: webp}}]", ["png16", "npy"]),
        ("folders: [{inbox: a, output: {range: [3, 3]}}]", ["[3, 3]", "smaller"]),
        ("folders: [{inbox: a, output: {range: [3]}}]", ["[number, number] or {percentile: [number, number]}"]),
        ("folders: [{inbox: a, output: {range: {percentile: [99, 1]}}}]", ["smaller"]),
        ("folders: [{inbox: a, output: {range: {percentile: [0, 101]}}}]", ["percentile: [number, number]"]),
        ("folders: [{inbox: a, output: {format: [png8, png16]}}]", ["png8 and png16 would be one file"]),
        ("folders: [{inbox: a, output: {format: [exr, webp]}}]", ["a list of them"]),
        ("api: {host: 0.0.0.0}", ["expose: true"]),
        ("api: {host: example.com}", ["address in numbers"]),
        ("api: {frame_file: a.jpg}", ["belong together"]),
        ("api: {frame_file: a.jpg, map_file: b.exr}", ["end with .jpg"]),
        ("model: {mirror: ftp://x}", ["https://"]),
        ("model: {name: 'a b'}", ["the catalogue"]),
        ("settle_s: 1", ["unknown key", "watch.settle_s"]),
        ("recursive: true", ["unknown key", "folders[…].recursive"]),
        ("wtch: {}", ["unknown key", "did you mean watch?"]),
        ("model: {zzz: 1}", ["unknown key", "name, dir, provider"]),
        ("1: x", ["a key has to be a word"]),
        ("log: !!python/name:os.system x", ["no meaning here"]),
        ("log: &a {level: *a}", ["circles"]),
    ],
)
def test_a_mistake_in_words(tmp_path: Path, text: str, words: list[str]) -> None:
    """Each single mistake gives exactly one line, which says what was found and what belongs there."""
    line = one_mistake(tmp_path, text)
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("text", "start", "words"),
    [
        ("watch:\n\tsettle_s: 1", "line 2: ", "a tab"),
        ("watch:\n  settle_s: 1: 2", "line 2: ", "colon"),
        ("log: {level: info", "line 1: ", "not valid YAML"),
        ("log: {}\n---\nlog: {}", "line 2: ", "a second document"),
        ("- a\n- b", "line 1: ", "keys with values"),
        ("[" * 5000, "line 1: ", "brackets"),
        ("just words", "line 1: ", "keys with values"),
        ("log: {}\nwatch: &x {}\nmodel: *y", "line 3: ", "alias"),
    ],
)
def test_syntax(tmp_path: Path, text: str, start: str, words: str) -> None:
    """What is not YAML at all is a mistake with a line as well, in words."""
    line = one_mistake(tmp_path, text)
    assert line.startswith(start)
    assert words in line


def test_not_text(tmp_path: Path) -> None:
    """Bytes that are no text are refused with the line, not with a traceback."""
    path = tmp_path / "config.yaml"
    path.write_bytes(b"log:\n  level: \xff\xfeinfo\n")
    assert mistakes(path)[0].startswith("line 2: this is not text in UTF-8")


def test_too_large(tmp_path: Path) -> None:
    """A video that was named by mistake is not read into memory."""
    path = tmp_path / "clip.mov"
    path.write_bytes(b"\0" * (2 << 20))
    with pytest.raises(ConfigError, match="too large"):
        config.load(path)


def test_unreadable(tmp_path: Path) -> None:
    """A file that cannot be read is a configuration error with a remedy."""
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EIO, errno.EDEADLK, errno.ENOTCONN])
def test_not_to_be_read_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """What a permission or a volume stands in the way of is no mistake: the agent is to be started again."""
    path = tmp_path / "config.yaml"
    path.write_text("state_dir: state\n")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refuse)
        assert config.find(path) == path  # not called absent, which would be for good
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        config.load(path)
    assert caught.value.exit_code == ExitCode.TRY_LATER
    monkeypatch.undo()
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path)
    assert caught.value.exit_code == ExitCode.USAGE


def test_duplicate_key(tmp_path: Path) -> None:
    """A key that is given twice is a mistake that names both lines, at every depth."""
    line = one_mistake(tmp_path, "log:\n  level: info\nwatch:\n  settle_s: 1\n  settle_s: 2\n")
    assert line.startswith("line 5: watch.settle_s: ")
    assert "first on line 4" in line


def test_billion_laughs(tmp_path: Path) -> None:
    """A few lines that unfold to millions of values are refused at once."""
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
    found = mistakes(write(tmp_path, f"a0: &a0 [x]\n{levels}\n"))
    assert any("endless" in line for line in found)


def test_mistakes_in_overrides(tmp_path: Path) -> None:
    """Overrides are checked like the file; their mistakes have no line."""
    path = write(tmp_path, "log:\n  level: info\n")
    found = mistakes(path, {"log.level": "loud", "folders[7].inbox": "x", "log.colour": "red"})
    assert any(line.startswith('log.level: found "loud"') for line in found), found
    assert any(line.startswith("folders[7].inbox: there is no such place") for line in found), found
    assert any(line.startswith("log.colour: unknown key") for line in found), found


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("depth", "one name"),
        ("{ext}_{model}", "one name"),
        ("{stem}/{name}", "cannot hold"),
        ("a\\{stem}", "cannot hold"),
        (".{stem}", "hidden"),
        ("{frame}.{stem}", "hidden"),
        ("{stem}{date}", "{date} is not a field"),
        ("{stem.__class__}", "not a field"),
        ("{stem!r}", "not a field"),
        ("{frame:04}{stem}", "{frame:04} is not a field"),
        ("{}{stem}", "{} is not a field"),
        ("{stem", "braces"),
        ("{stem}\n", "control"),
        ("", "one name"),
    ],
)
def test_templates_that_are_refused(template: str, words: str) -> None:
    """A name template that would escape, hide or merge maps is refused."""
    (line,) = mistakes(None, {"folders[0].output.name": template})
    assert words in line


@pytest.mark.parametrize(
    "template", ["{stem}", "{name}.depth", "{stem}_{model}_{frame}", "Z-{stem}.{ext}", "{{x}}{stem}"]
)
def test_templates_that_are_taken(template: str) -> None:
    """Every field is usable, and the template arrives unchanged."""
    assert config.load(None, {"folders[0].output.name": template}).folders[0].output.name == template


@given(
    st.dictionaries(
        st.text(max_size=12), st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists), max_size=4
    )
)
def test_any_unknown_keys(extra: dict[str, Any]) -> None:
    """Whatever stands in a file, the answer is settings or a configuration error with printable lines."""
    document = reading.parse(yaml.safe_dump(extra, allow_unicode=True).encode("utf-8"))
    found = problems.render(document.problems)
    assert all(line.strip() for line in found)
    try:
        config.load(None, {"watch": {f"x{key}": value for key, value in extra.items()}})
    except ConfigError as error:
        assert len(error.problems) == len(extra)  # noqa: PT017 - both outcomes are allowed
