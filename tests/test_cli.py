"""The command line as a user meets it: the installed command, its words, its exit codes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pty
import re
import select
import subprocess
from pathlib import Path

import pytest
from conftest import Home, RunCli, StartCli, command, make_picture
from PIL import Image
from waiting import until

from watcher import errors
from watcher.agent_label import LABEL, UNIT
from watcher.cli import endings
from watcher.imagefile import read_facts

VERBS = (
    *(["run"], ["once"], ["depth"], ["status"], ["retry"], ["doctor"], ["inspect"]),
    *(["install"], ["uninstall"], ["start"], ["stop"], ["restart"], ["logs"]),
    *(["config", "show"], ["config", "check"], ["config", "schema"], ["config", "init"]),
    *(["models", "list"], ["models", "pull"], ["models", "verify"], ["models", "path"]),
    *(["models", "prepare"], ["models", "bench"]),
)
ERROR = re.compile(r"^error: .+\. .+", re.MULTILINE)


def test_every_verb_is_looked_at(run_cli: RunCli) -> None:
    """What the help offers is what these tests know: a new verb has to keep its word as well."""
    groups: dict[tuple[str, ...], list[str]] = {(): []}
    for verb in VERBS:
        groups.setdefault(tuple(verb[:-1]), []).append(verb[-1])
    groups[()] += [group[0] for group in groups if group]
    for group, known in groups.items():
        offered = run_cli(*group, "--help").stdout.partition("Commands:")[2]
        assert sorted(re.findall(r"^  (\w+)  ", offered, re.MULTILINE)) == sorted(known)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_has_an_example(run_cli: RunCli, verb: list[str]) -> None:
    """Each verb explains itself and shows how it is called."""
    done = run_cli(*verb, "--help")
    assert done.returncode == 0
    assert f"Example: depth-watcher {' '.join(verb)}" in done.stdout


def test_exit_codes(run_cli: RunCli, tmp_path: Path) -> None:
    """What is wrong is said as `error: what. remedy` on stderr, with the documented code."""
    broken = tmp_path / "broken.yaml"
    broken.write_text("watch: {settle_s: soon}\n")
    good = make_picture(tmp_path / "good.png")
    (tmp_path / "bad.jpg").write_text("no picture")
    (tmp_path / "file").write_text("")
    table: list[tuple[list[str | Path], int]] = [
        (["depth", good, "-o", tmp_path / "maps"], 0),
        (["depth", tmp_path / "bad.jpg"], 1),
        (["once", "--config", broken], 2),
        (["depth", good, "--model", "no-such-model"], 2),
        (["models", "pull", "no-such-model"], 2),
        (["retry"], 0),
        (["retry", "--all"], 0),
        (["depth", tmp_path / "missing.jpg"], 66),
        (["depth", tmp_path], 66),
        (["once", "--inbox", tmp_path / "missing"], 66),
        (["retry", "missing.jpg"], 66),
        (["depth", good, "-o", tmp_path / "file" / "maps"], 73),
        (["config", "init", broken], 73),
        (["start"], 69),
    ]
    for words, code in table:
        done = run_cli(*words)
        assert (words, done.returncode) == (words, code)
        assert "Traceback" not in done.stderr
        if code not in (0, 1):
            assert ERROR.search(done.stderr), done.stderr


def test_usage(run_cli: RunCli) -> None:
    """A call that makes no sense ends with 2 and says what would."""
    for words in (["no-such-verb"], ["depth"], ["status", "--no-such-option"], ["once", "--after", "burn"]):
        assert run_cli(*words).returncode == 2


def test_once(run_cli: RunCli, tmp_path: Path) -> None:
    """One line a frame and a sum; a broken picture does not stop the others and is kept with its reason."""
    inbox, outbox = tmp_path / "shots", tmp_path / "maps"
    for name in ("a.png", "deep/b.jpg"):
        make_picture(inbox / name)
    (inbox / "broken.jpg").write_text("no picture")
    done = run_cli("once", "--inbox", inbox, "--outbox", outbox, "--after", "keep")
    assert done.returncode == 1
    assert sorted(done.stdout.splitlines()) == [
        "2 done, 1 failed",
        "done  a.png",
        "done  deep/b.jpg",
        "failed  broken.jpg",
    ]
    assert "error: broken.jpg: the file is no picture" in done.stderr
    assert sorted(str(path.relative_to(outbox)) for path in outbox.rglob("*.png")) == [
        "a_depth.png",
        "deep/b_depth.png",
    ]
    assert {path.name for path in inbox.iterdir()} == {"a.png", "deep"}
    kept = Path(re.findall(r"with its reason, in (\S+)", done.stderr)[0])
    assert json.loads((kept / "broken.jpg.error.json").read_text())["code"] == "not-a-picture"
    again = run_cli("once", "--inbox", inbox, "--outbox", outbox, "--after", "keep")
    assert again.returncode == 0
    assert "nothing to do" in again.stdout


def test_once_of_a_named_folder_only(run_cli: RunCli, tmp_path: Path) -> None:
    """`--inbox` means that folder and no other of the configuration, whose other rules still hold."""
    make_picture(tmp_path / "in" / "a.png")
    make_picture(tmp_path / "other" / "b.png")
    config = tmp_path / "config.yaml"
    config.write_text(
        "folders: [{inbox: other, after: keep, output: {format: png8}}, {inbox: third}]\nstate_dir: state\n"
    )
    done = run_cli("once", "--inbox", "in", "--config", config, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "in-outbox" / "a_depth.png") as made:
        assert made.mode == "L"
    assert not (tmp_path / "outbox").exists()
    assert (tmp_path / "in" / "a.png").exists()


def test_once_on_a_terminal(home: Home, tmp_path: Path) -> None:
    """People at a terminal see a bar with numbers, not a line for each frame."""
    for number in range(5):
        make_picture(tmp_path / "in" / f"{number}.png")
    ours, theirs = pty.openpty()
    words = [command(), "once", "--inbox", str(tmp_path / "in"), "--after", "keep"]
    env = {**home.env, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                block = os.read(ours, 4096)
            except OSError:  # the other end was closed
                break
            if not block:
                break
            shown += block
    os.close(ours)
    assert process.returncode == 0
    assert b"depth maps" in shown
    assert b"5/5" in shown
    assert b"5 done, 0 failed" in shown


NAMES = (
    *("--help.png", "-o.png", "a b  c.png", "quote'\".png", "100%_{0}.png", "\u00e9.png", "e\u0301.png", "🏔️ 📸.png"),
    *(
        "line\nbreak.png",
        "tab\t.png",
        "写真.png",
        "x" * 240 + ".png",
        "HOLIDAY.PNG",
        ".png.png",
        " leading.png",
        "trailing .png ",
        "a.tar.png",
        "\udcff.png",
    ),
)


def test_names_of_every_kind(run_cli: RunCli, tmp_path: Path) -> None:
    """Whatever a picture is called, it gets its map and nothing else happens."""
    for name in NAMES:
        (tmp_path / "in").mkdir(exist_ok=True)
        make_picture(tmp_path / "staged.png").rename(tmp_path / "in" / name)
    done = run_cli("once", "--inbox", tmp_path / "in", "--outbox", tmp_path / "out", timeout=120)
    assert done.returncode == 0, done.stderr
    hidden = {name for name in NAMES if name.startswith(".")}
    assert len(list((tmp_path / "out").iterdir())) == len(NAMES) - len(hidden)
    assert {path.name for path in (tmp_path / "in").iterdir()} == hidden


def test_depth_of_odd_names(run_cli: RunCli, tmp_path: Path) -> None:
    """After `--`, a name that looks like an option is a name."""
    for name in ("--help.png", "-o.png"):
        make_picture(tmp_path / "staged.png").rename(tmp_path / name)
    done = run_cli("depth", "--", "--help.png", "-o.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "--help_depth.png").is_file()
    assert (tmp_path / "-o_depth.png").is_file()


def test_depth_never_replaces_what_is_not_its_own(run_cli: RunCli, tmp_path: Path) -> None:
    """A map is replaced by a newer map of the same picture only; a foreign file and another picture's map stay."""
    picture = make_picture(tmp_path / "a.png", (80, 60))
    foreign = tmp_path / "a_depth.png"
    foreign.write_bytes(b"somebody's work")
    assert run_cli("depth", picture).returncode == 0
    assert foreign.read_bytes() == b"somebody's work"
    with Image.open(tmp_path / "a.png_depth.png") as made:
        assert made.size == (80, 60)
        assert made.mode == "I;16"
    assert run_cli("depth", picture).returncode == 0
    assert {path.name for path in tmp_path.glob("*.png")} == {"a.png", "a_depth.png", "a.png_depth.png"}


def sources_of(place: Path) -> dict[str, str]:
    """The hash of the picture that each map says it is of."""
    return {path.name: (read_facts(path) or {})["source_sha256"] for path in place.iterdir()}


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", ["gradient", "copy"])
def test_depth_of_two_pictures_of_one_name(run_cli: RunCli, tmp_path: Path, kind: str) -> None:
    """Each of them has its map, named as it was told; called again, each map is replaced by its own."""
    one, out = make_picture(tmp_path / "a" / "1.jpg", (40, 30)), tmp_path / "out"
    other = make_picture(tmp_path / "b" / "1.jpg", (44, 30))
    if kind == "copy":
        other.write_bytes(one.read_bytes())
    for _ in range(2):
        done = run_cli("depth", one, other, one, "-o", out)
        assert done.returncode == 0
        assert sources_of(out) == {"1_depth.png": hash_of(one), "1.jpg_depth.png": hash_of(other)}
        told = re.findall(r"\S+_depth\.png", done.stdout)
        assert [Path(path).name for path in told] == ["1_depth.png", "1.jpg_depth.png", "1_depth.png"]


def test_depth_of_another_picture_of_that_name(run_cli: RunCli, tmp_path: Path) -> None:
    """It gets a name of its own, also in the outbox of a daemon, whatever its size in bytes."""
    config, out = tmp_path / "config.yaml", tmp_path / "outbox"
    config.write_text("folders: [{inbox: inbox}]\nstate_dir: state\n")
    first = make_picture(tmp_path / "inbox" / "1.bmp", (40, 30))
    was = hash_of(first)
    assert run_cli("once", "--config", config).returncode == 0
    second = make_picture(tmp_path / "b" / "1.bmp", (40, 30), "noise")
    assert second.stat().st_size == (tmp_path / "processed" / "1.bmp").stat().st_size
    for _ in range(2):
        assert run_cli("depth", second, "-o", out).returncode == 0
        assert sources_of(out) == {"1_depth.png": was, "1.bmp_depth.png": hash_of(second)}


def test_depth_of_a_picture_that_was_edited(run_cli: RunCli, tmp_path: Path) -> None:
    """Beside the picture its map is made anew, since an old one under the better name would mislead; elsewhere the map
    may be of another picture of that name, and stays."""
    picture, out = make_picture(tmp_path / "a.bmp", (40, 30)), tmp_path / "out"
    was = hash_of(picture)
    for arguments in ((picture,), (picture, "-o", out)):
        assert run_cli("depth", *arguments).returncode == 0
    make_picture(picture, (50, 30), "noise")
    for arguments in ((picture,), (picture, "-o", out)):
        assert run_cli("depth", *arguments).returncode == 0
    beside = [path for path in tmp_path.iterdir() if path.suffix == ".png"]
    assert [(path.name, (read_facts(path) or {})["source_sha256"]) for path in beside] == [
        ("a_depth.png", hash_of(picture))
    ]
    assert sources_of(out) == {"a_depth.png": was, "a.bmp_depth.png": hash_of(picture)}


def test_depth_touches_nothing_else(run_cli: RunCli, home: Home, tmp_path: Path) -> None:
    """No inbox, no journal, no state."""
    before = sorted(home.path.rglob("*"))
    assert run_cli("depth", make_picture(tmp_path / "a.png"), "-o", tmp_path / "out").returncode == 0
    assert sorted(home.path.rglob("*")) == before


def test_retry(run_cli: RunCli, tmp_path: Path) -> None:
    """By name, by pattern, all: the pictures are in the inbox again, without their reasons, and are tried anew."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    config = tmp_path / "config.yaml"
    config.write_text("folders: [{inbox: inbox}]\nstate_dir: state\n")
    names = ["one.jpg", "two.jpg", "three.jpg", "x.png"]
    for name in names:
        (inbox / name).write_text("no picture")
    assert run_cli("once", "--config", config).returncode == 1
    listed = run_cli("retry", "--config", config)
    assert listed.returncode == 2
    assert all(name in listed.stdout for name in names)
    assert run_cli("retry", "one.jpg", "--config", config).returncode == 0
    assert {path.name for path in inbox.iterdir()} == {"one.jpg"}
    assert run_cli("retry", "t*.jpg", "--config", config).returncode == 0
    assert {path.name for path in inbox.iterdir()} == {"one.jpg", "two.jpg", "three.jpg"}
    make_picture(tmp_path / "good.png").rename(inbox / "one.jpg")
    assert run_cli("retry", "--all", "--config", config).returncode == 0
    assert list((tmp_path / "failed").iterdir()) == []
    assert run_cli("once", "--config", config).returncode == 1
    assert [path.name for path in (tmp_path / "outbox").iterdir()] == ["one_depth.png"]
    assert json.loads(run_cli("status", "--json", "--config", config).stdout)["counts"]["failed"] == 3


def test_status_before_anything_ran(run_cli: RunCli) -> None:
    """It answers, with all its keys."""
    done = run_cli("status", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert {
        "running",
        "pid",
        "state",
        "reason",
        "provider",
        "model",
        "counts",
        "in_flight",
        "rate",
        "last_errors",
    } <= set(found)
    assert (found["running"], found["pid"], found["state"]) == (False, None, "stopped")
    assert set(found["counts"]) == {"seen", "waiting", "in_flight", "done", "failed", "ignored"}


def test_beside_a_running_daemon(run_cli: RunCli, start_cli: StartCli) -> None:
    """A second `run`, and a `once`, refuse with 75 and name the process that is at work."""
    daemon = start_cli("run")
    until(lambda: json.loads(run_cli("status", "--json").stdout)["state"] == "running")
    for verb in ("run", "once"):
        done = run_cli(verb)
        assert done.returncode == 75
        assert f"process {daemon.pid}" in done.stderr
    daemon.terminate()
    assert daemon.wait(10) == 0


def test_a_permanent_error_under_launchd(run_cli: RunCli, tmp_path: Path) -> None:
    """It ends with 0, or launchd would start it again for ever; the reason stands in the status."""
    broken = tmp_path / "broken.yaml"
    broken.write_text("watch: {settle_s: soon}\n")
    assert run_cli("run", "--config", broken).returncode == 2
    done = run_cli("run", "--config", broken, env={"XPC_SERVICE_NAME": LABEL})
    assert done.returncode == 0
    assert "mistake" in json.loads(run_cli("status", "--json").stdout)["reason"]


def test_models(run_cli: RunCli, tmp_path: Path) -> None:
    """The catalogue shows sizes, licences and what is here; offline, a pull says so and leaves nothing behind."""
    listed = json.loads(run_cli("models", "list", "--json").stdout)
    assert {"starter", "midas-v21-small", "midas-v21"} <= {model["name"] for model in listed}
    assert all({"bytes", "sha256", "licence", "commercial", "here"} <= set(model) for model in listed)
    assert run_cli("models", "path", "starter").stdout.strip().endswith("starter.onnx")
    assert run_cli("models", "verify").returncode == 0
    config = tmp_path / "config.yaml"
    config.write_text("model: {dir: models, mirror: 'http://127.0.0.1:9/'}\n")
    done = run_cli("models", "pull", "midas-v21-small", "--config", config)
    assert done.returncode == 69
    assert ERROR.search(done.stderr)
    assert not list((tmp_path / "models").glob("*.onnx"))


def test_config(run_cli: RunCli, tmp_path: Path) -> None:
    """`init` writes a file that `check` accepts and `show` reads; the schema is one."""
    file = tmp_path / "new.yaml"
    assert run_cli("config", "init", file).returncode == 0
    assert "no mistakes" in run_cli("config", "check", file).stdout
    assert "settle_s: 0.5" in run_cli("config", "show", "--config", file).stdout
    assert "properties" in json.loads(run_cli("config", "schema").stdout)


@pytest.mark.parametrize("after", ["keep", "move"])
def test_a_lost_journal_doubles_no_map(run_cli: RunCli, tmp_path: Path, after: str) -> None:
    """A map says itself whose it is: done again without a journal, it is replaced; another picture's map stays."""
    inbox, state = tmp_path / "inbox", tmp_path / "state"
    config = tmp_path / "config.yaml"
    config.write_text(f"folders: [{{inbox: inbox, after: {after}}}]\nstate_dir: state\n")
    for name in ("a.jpg", "a.png"):
        make_picture(inbox / name, (64, 48))
    assert run_cli("once", "--config", config).returncode == 0
    for file in state.glob("journal*"):
        file.unlink()
    if after == "move":
        make_picture(tmp_path / "other" / "a.jpg", (80, 60)).rename(inbox / "a.jpg")
    assert run_cli("once", "--config", config).returncode == 0
    expected = {"a_depth.png", "a.png_depth.png", *(["a.jpg_depth.png"] if after == "move" else [])}
    assert {path.name for path in (tmp_path / "outbox").iterdir()} == expected


def test_a_journal_that_is_taken_away(run_cli: RunCli, start_cli: StartCli, tmp_path: Path) -> None:
    """A daemon does not go on without the file that it writes to; it ends, to be started anew."""
    config = tmp_path / "config.yaml"
    config.write_text("folders: [{inbox: inbox}]\nstate_dir: state\n")
    daemon = start_cli("run", "--config", config)
    until(lambda: json.loads(run_cli("status", "--json", "--config", config).stdout)["state"] == "running")
    for file in (tmp_path / "state").glob("journal*"):
        file.unlink()
    make_picture(tmp_path / "a.png").rename(tmp_path / "inbox" / "a.png")
    assert daemon.wait(20) == 75
    assert "journal" in json.loads(run_cli("status", "--json", "--config", config).stdout)["reason"]


def test_a_command_that_ends_promises_nothing_for_later() -> None:
    """What the daemon does by itself has to be done by hand where nothing lives on."""
    for _, remedy in errors.explained().values():
        ends = errors.by_hand(remedy)
        assert "by itself" not in ends
        assert "It is done when" not in ends
    assert "by itself" not in errors.by_hand(errors.explain(OSError(errno.ENOENT, "gone", "x"))[1])
    assert "by itself" in errors.explain(OSError(errno.ENOENT, "gone", "x"))[1]


@pytest.mark.parametrize(
    ("started_by", "advice"),
    [
        ({}, "then run the command again"),
        ({"XPC_SERVICE_NAME": LABEL}, "work goes on by itself"),
        ({"DEPTH_WATCHER_UNIT": UNIT}, "work goes on by itself"),
    ],
)
def test_the_last_words_of_a_command(
    started_by: dict[str, str], advice: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that ends a command is told with what to do by hand; launchd and systemd start their agent again."""
    for name in ("XPC_SERVICE_NAME", "DEPTH_WATCHER_UNIT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in started_by.items():
        monkeypatch.setenv(name, value)
    endings.complain(errors.CannotCreate("the volume is not there", "Connect it again; work goes on by itself."))
    assert capsys.readouterr().err == f"error: the volume is not there. Connect it again; {advice}.\n"
