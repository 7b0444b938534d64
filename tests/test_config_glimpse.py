"""`status` finds its folder without the whole check of the settings, and finds the same one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Home, RunCli, StartCli
from waiting import until

from watcher import config


@pytest.mark.parametrize(
    "text",
    ["", "state_dir: null\n", "state_dir: here\n", "state_dir: ~/there\n", "state_dir: $HOME/with $$\n", "log: {}\n"],
)
def test_it_agrees_with_the_whole_check(home: Home, tmp_path: Path, text: str) -> None:
    """Whatever a good file says, both ways lead to one folder."""
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert config.glimpse_of_state_dir(file) == config.state_dir(config.load(file))
    assert config.glimpse_of_state_dir(None) == config.state_dir(config.load(None))


@pytest.mark.parametrize("text", ["state_dir: 3\n", "state_dir: $NO_SUCH_VARIABLE/x\n", "state_dir: [\n", "\xff: {\n"])
def test_it_does_not_guess(home: Home, tmp_path: Path, text: str) -> None:
    """Where the file does not say it plainly, the whole check is asked."""
    file = tmp_path / "config.yaml"
    file.write_bytes(text.encode("latin-1"))
    assert config.glimpse_of_state_dir(file) is None


def test_status_of_a_running_daemon_checks_nothing(run_cli: RunCli, start_cli: StartCli, home: Home) -> None:
    """Who asks what a daemon does waits neither for the validation of its settings nor for that of the words typed."""
    start_cli("run")
    until(lambda: json.loads(run_cli("status", "--json").stdout)["state"] == "running")
    loaded = _loaded(home, ["status", "--json"])
    assert "watcher.status" in loaded
    assert "pydantic" not in loaded


def test_a_mistake_hides_no_running_daemon(run_cli: RunCli, start_cli: StartCli, tmp_path: Path) -> None:
    """A file that was broken after the start does not keep `status` from showing what runs; stopped, it is told."""
    file = tmp_path / "config.yaml"
    file.write_text("{}\n")
    daemon = start_cli("run", "--config", file)
    until(lambda: json.loads(run_cli("status", "--json", "--config", file).stdout)["state"] == "running")
    file.write_text("watch: {settle_s: soon}\n")
    found = json.loads(run_cli("status", "--json", "--config", file).stdout)
    assert (found["running"], found["pid"]) == (True, daemon.pid)
    daemon.terminate()
    assert daemon.wait(10) == 0
    stopped = run_cli("status", "--config", file)
    assert stopped.returncode == 2
    assert "settle_s" in stopped.stderr


HEAVY = ("numpy", "cv2", "onnxruntime", "PIL", "sqlite3", "watcher.daemon", "flask", "importlib.resources.readers")


def _loaded(home: Home, words: list[str]) -> set[str]:
    """The modules that one call of the command line has loaded at its end."""
    code = (
        "import sys\nfrom watcher.cli import main\ntry: main()\nexcept SystemExit: pass\nprint('loaded', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=home.env, cwd=home.path, capture_output=True, text=True, check=True
    )
    first, *names = done.stdout.splitlines()[-1].split()
    assert first == "loaded"
    return set(names)


@pytest.mark.parametrize(
    ("words", "also"),
    [(["--help"], ["pydantic", "yaml"]), (["status"], ["watcher.agent"]), (["config", "check"], ["watcher.agent"])],
    ids=lambda words: " ".join(words),
)
def test_what_only_looks_loads_little(home: Home, words: list[str], also: list[str]) -> None:
    """The verbs that must answer at once import nothing that they do not use."""
    assert not {*HEAVY, *also} & _loaded(home, words)
