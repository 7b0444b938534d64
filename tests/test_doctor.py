"""``depth-watcher doctor``: each precondition is looked at, and what is wrong is said with its remedy."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
from pathlib import Path
from typing import IO, Any

import pytest
from conftest import PROJECT, Home, RunCli, StartCli, make_picture
from waiting import until

from watcher import config as settings_room
from watcher import volume
from watcher.agent import protected
from watcher.doctor import places, program
from watcher.doctor.finding import Finding

KEYS = {"id", "title", "state", "found", "why", "remedy"}


def look(run_cli: RunCli, *args: str | Path, code: int = 0) -> dict[str, dict[str, str]]:
    done = run_cli("doctor", "--json", *args)
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    assert all(set(finding) == KEYS for finding in found)
    return {finding["id"]: finding for finding in found}


def config(place: Path, text: str) -> Path:
    file = place / "config.yaml"
    file.write_text(text)
    return file


def test_a_fresh_machine(run_cli: RunCli, home: Home) -> None:
    """Nothing is wrong, nothing is left behind, and the network was really run."""
    before = sorted(home.path.rglob("*"))
    findings = look(run_cli)
    assert {finding["state"] for finding in findings.values()} == {"ok", "warning"}
    assert findings["model"]["state"] == "warning"  # the starter is said to be one
    assert " ms on cpu" in findings["inference"]["found"]
    assert "partition" in findings["graph"]["found"] or "too old to say" in findings["graph"]["found"]
    assert sorted(home.path.rglob("*")) == before


def test_mistakes_in_the_settings(run_cli: RunCli, tmp_path: Path) -> None:
    """They are problems, and what can be checked still is."""
    findings = look(run_cli, "--config", config(tmp_path, "watch: {settle_s: soon}\n"), code=1)
    assert "line 1: watch.settle_s" in findings["config"]["found"]
    assert findings["inference"]["state"] == "ok"


def test_folders_that_cannot_be(run_cli: RunCli, tmp_path: Path) -> None:
    """A folder that can neither be read nor made is a problem with a remedy."""
    text = "folders: [{inbox: /proc/nowhere/in, outbox: out, processed: done, failed: no}]\n"
    findings = look(run_cli, "--config", config(tmp_path, text), code=1)
    assert findings["folder-1-inbox"]["state"] == "problem"
    assert findings["folder-1-inbox"]["remedy"]
    assert findings["folder-1-outbox"]["state"] == "ok"


def findings_of(folder: Path, text: str = "folders: [{inbox: in, outbox: out}]\n") -> dict[str, Finding]:
    """What doctor says of the first entry of ``folders``, asked for in this process."""
    settings = settings_room.load(config(folder, text))
    found = [*places.state(settings), *places.folder(1, settings.folders[0], settings.watch.observer)]
    assert len({finding.id for finding in found}) == len(found)
    return {finding.id.removeprefix("folder-1-"): finding for finding in found}


def test_a_volume_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on an absent volume is a problem also for who may write on the empty mount point, as root may."""
    (tmp_path / "Volumes").mkdir()
    monkeypatch.setattr(volume, "_MOUNTS", (tmp_path / "Volumes",))
    found = findings_of(tmp_path, "folders: [{inbox: Volumes/Card/in, outbox: Volumes/Card/out, failed: f}]\n")
    for name in ("inbox", "outbox", "processed", "space", "volume"):
        assert (found[name].state, "the volume is not there" in found[name].found) == ("problem", True), name
        assert "mount it again" in found[name].remedy
    assert found["failed"].state == "ok"
    assert not list((tmp_path / "Volumes").iterdir())


def test_what_stands_in_the_way(tmp_path: Path) -> None:
    """A file, or a link to nowhere, where a folder has to be made is a problem, however deep the folder lies."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    text = "folders: [{inbox: in, outbox: file/a/b, processed: link, failed: f}]\nstate_dir: file/state\n"
    found = findings_of(tmp_path, f"{text}log: {{file: ./link/log}}\n")
    for name, culprit in (("outbox", "file"), ("state-folder", "file"), ("processed", "link"), ("log", "link")):
        assert found[name].state == "problem"
        assert found[name].found.startswith(f"{tmp_path / culprit} is no folder")
    assert found["inbox"].state == found["failed"].state == "ok"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link", "config.yaml"}


def test_a_log_that_is_a_folder(tmp_path: Path) -> None:
    """Only a log that can be appended to is well."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "a.log").write_text("before\n")
    assert findings_of(tmp_path, "log: {file: ./logs}\n")["log"].state == "problem"
    assert findings_of(tmp_path, "log: {file: ./a.log}\n")["log"].state == "ok"
    assert (tmp_path / "a.log").read_text() == "before\n"


def test_an_inbox_that_gives_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pictures shall be taken away, the inbox has to be writable; where they are kept, reading is enough."""
    (tmp_path / "in").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / "in")
    moving = findings_of(tmp_path)["inbox"]
    assert (moving.state, "after: keep" in moving.remedy) == ("problem", True)
    keeping = findings_of(tmp_path, "folders: [{inbox: in, outbox: out, after: keep}]\n")
    assert keeping["inbox"].state == "ok"
    assert "processed" not in keeping


def test_a_picture_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that can be listed and none of whose files can be opened is a problem: that is how macOS refuses."""
    picture = make_picture(tmp_path / "in" / "a.png")
    real = open

    def refuse(path: str, mode: str) -> IO[Any]:
        if str(path) == str(picture):
            raise PermissionError(errno.EPERM, "Operation not permitted", str(path))
        return real(path, mode)

    assert findings_of(tmp_path)["inbox"].state == "ok"
    monkeypatch.setattr(places, "open", refuse, raising=False)
    assert findings_of(tmp_path)["inbox"].state == "problem"


def test_a_disk_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever one look meets, the others are still made."""

    def broken(folder: Path) -> int:
        raise OSError(errno.EIO, "Input/output error", str(folder))

    monkeypatch.setattr(volume, "free_bytes", broken)
    found = findings_of(tmp_path)
    assert found["space"].state == "problem"
    assert "input/output error" in found["space"].found
    assert found["volume"].state == "ok"


def test_a_disk_that_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a gibibyte is worth a warning, in the same unit in which systems show it."""
    monkeypatch.setattr(volume, "free_bytes", lambda _: 123_456_789)
    found = findings_of(tmp_path)["space"]
    assert (found.state, found.found, bool(found.remedy)) == ("warning", "0.1 GB", True)


def test_sources_that_go_to_another_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are copied there: slower, so a warning, and no problem."""
    assert findings_of(tmp_path)["processed"].state == "ok"
    monkeypatch.setattr(volume, "same_volume", lambda *_: False)
    found = findings_of(tmp_path)["processed"]
    assert (found.state, "another volume" in found.found, bool(found.remedy)) == ("warning", True, True)


@pytest.mark.parametrize(
    ("network", "observer", "state", "words"),
    [
        (False, "auto", "ok", "on this machine"),
        (True, "auto", "ok", "looked at again and again"),
        (True, "polling", "ok", "looked at again and again"),
        (True, "native", "warning", "watched by events"),
    ],
)
def test_network_volumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: bool, observer: str, state: str, words: str
) -> None:
    """Events of a network volume are only those of this machine: who insists on them is warned."""
    monkeypatch.setattr(volume, "is_network", lambda _: network)
    found = findings_of(tmp_path, f"watch: {{observer: {observer}}}\n")["volume"]
    assert (found.state, bool(found.remedy)) == (state, state != "ok")
    assert words in found.found


@pytest.mark.parametrize(("ignores", "words"), [(True, "are one file"), (False, "case tells names apart")])
def test_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignores: bool, words: str) -> None:
    """Whether a.png and A.PNG are one file is told, because it decides how many maps there are."""
    monkeypatch.setattr(volume, "ignores_case", lambda _: ignores)
    assert words in findings_of(tmp_path)["volume"].found


def test_guarded_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a Mac one warning names every folder of an entry that lies where macOS guards, and what to click."""
    text = f"folders: [{{inbox: {tmp_path}/Desktop/in, outbox: {tmp_path}/Documents/out, after: keep}}]\n"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "privacy" not in findings_of(tmp_path, text)
    monkeypatch.setattr(places, "_MAC", True)
    found = findings_of(tmp_path, text)["privacy"]
    assert (found.state, found.remedy) == ("warning", protected.clicks())
    assert "the Desktop" in found.found
    assert "Documents" in found.found


def test_a_damaged_model(run_cli: RunCli, tmp_path: Path) -> None:
    """A network that cannot be loaded is found before anybody waits for maps."""
    (tmp_path / "own.onnx").write_bytes(b"no network")
    findings = look(run_cli, "--config", config(tmp_path, "model: {name: ./own.onnx}\n"), code=1)
    assert findings["inference"]["state"] == "problem"


def test_beside_a_daemon(run_cli: RunCli, start_cli: StartCli, home: Home) -> None:
    """A running daemon is named, and is no problem; its inbox is read, not only listed."""
    start_cli("run")
    until(lambda: json.loads(run_cli("status", "--json").stdout)["state"] == "running")
    make_picture(home.path / "DepthWatcher/inbox/a.png")
    assert "run since" in look(run_cli)["daemon"]["found"]


@pytest.mark.parametrize(
    ("installed", "state"),
    [
        ({"onnxruntime": "1.32.0"}, "ok"),
        ({"onnxruntime": "1.30.0"}, "warning"),
        ({"onnxruntime-silicon": "1.16.3"}, "warning"),
        ({"onnxruntime": "1.32.0", "onnxruntime-silicon": "1.16.3"}, "problem"),
        ({}, "problem"),
    ],
)
def test_runtime_packages(monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], state: str) -> None:
    """Exactly one runtime, and a recent one; two share one import name and overwrite each other."""
    monkeypatch.setattr(program, "_version", lambda name: installed.get(name, ""))
    finding = next(iter(program.runtime()))
    assert finding.state == state
    assert bool(finding.remedy) == (state != "ok")


def ids_in_code() -> set[str]:
    """Every id that a finding may carry: the first words of each ``Finding`` and each look."""
    found = set()
    for file in (PROJECT / "watcher/doctor").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Finding", "_tried"):
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    found.add(str(first.value))
                elif isinstance(first, ast.JoinedStr):
                    found.add("folder-N" + "".join(str(v.value) for v in first.values if isinstance(v, ast.Constant)))
    return found


def ids_in_page() -> list[str]:
    page = (PROJECT / "docs/doctor.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)


def test_the_page_names_every_check(run_cli: RunCli) -> None:
    """docs/doctor.md has one row for each check, neither more nor less, and real findings are among them."""
    assert sorted(ids_in_page()) == sorted(ids_in_code())
    assert {re.sub(r"^folder-\d+", "folder-N", name) for name in look(run_cli)} <= set(ids_in_page())
