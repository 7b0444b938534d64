"""The real daemon under a simulated launchd, started by the plist that `install` writes."""

from __future__ import annotations

import os
import plistlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Home, make_picture
from launchd_simulator import SPAWN_FAILED, Simulator
from living import Life
from waiting import until

from watcher import daemon, durable, status
from watcher.agent import asking, plist
from watcher.agent_label import LABEL

MISBEHAVING = Path(__file__).with_name("misbehaving.py")


class Agent:
    """Folders, settings and the rendered plist of one test."""

    def __init__(self, home: Home, place: Path) -> None:
        self.life = Life(home, place)
        self.home = home
        self.file = place / plist.TEMPLATE
        self.logs = place / "logs"
        self.logs.mkdir()
        self.life.state.mkdir()
        filling = plist.Filling(Path(sys.executable), self.life.file, self.life.state, self.logs)
        plist.write(self.file, plist.render(filling))
        self.launchd: Simulator | None = None

    def load(self, fake: dict[str, str] | None = None, scale: float = 0.1) -> Simulator:
        if fake is not None:
            values = plistlib.loads(self.file.read_bytes())
            words = values["ProgramArguments"]
            values["ProgramArguments"] = [words[0], str(MISBEHAVING), *words[3:]]
            plist.write(self.file, plistlib.dumps(values))
        # The variables of a Linux desktop are absent under launchd: everything is found below HOME.
        self.launchd = Simulator(self.file, self.home.path, scale=scale, extra=fake)
        self.launchd.bootstrap()
        return self.launchd

    def living(self, sim: Simulator) -> Callable[[], int | None]:
        def look() -> int | None:
            pid = sim.look().pid
            return pid if pid is not None and asking.alive(self.life.state, pid) else None

        return look

    def said(self) -> str:
        texts = [path.read_text() for path in self.logs.glob("*.log")]
        return "\n".join([*texts, *(path.read_text() for path in self.home.path.rglob("depth-watcher.log"))])


@pytest.fixture
def agent(home: Home, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(home, tmp_path)
    yield made
    if made.launchd is not None:
        made.launchd.bootout(0)
    made.life.bury()


def test_lives_and_works(agent: Agent) -> None:
    """With nothing but launchd's environment the daemon starts, works, and ends with 0 in time."""
    sim = agent.load()
    pid = until(agent.living(sim), what=agent.said())
    make_picture(agent.life.inbox / "Überblick & Co.png")
    agent.life.await_done(1)
    assert agent.life.maps() == ["Überblick & Co_depth.png"]
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert f"XPC_SERVICE_NAME={LABEL}".encode() in environment
    assert b"LANG=" not in environment
    assert (agent.life.outbox / "Überblick & Co_depth.png").stat().st_mode & 0o077 == 0
    assert sim.bootout(daemon.STOP_BUDGET_S + 2) == 0
    assert not sim.killed
    assert not sim.look().respawns
    assert sim.runs == 1


def test_killed_in_the_middle_of_a_run(agent: Agent, tmp_path: Path) -> None:
    """kill -9 during a run: started again after the throttle, the picture is done, nothing is lost or done twice."""
    gate = tmp_path / "gate"
    sim = agent.load({"FAKE_GATE": str(gate)}, scale=0.2)
    until(agent.living(sim))
    make_picture(agent.life.inbox / "a.png")
    until(lambda: agent.life.told().in_flight)
    sim.kill()
    until(lambda: sim.look().runs == 2)
    assert sim.spawned_s[1] - sim.spawned_s[0] >= 2.0
    gate.touch()
    agent.life.await_done(1)
    assert agent.life.maps() == ["a_depth.png"]
    assert sim.bootout() == 0


@pytest.mark.parametrize("text", ["folders: [", "nonsense: true", "model: {name: not-a-model}"])
def test_a_permanent_mistake_is_no_loop(agent: Agent, text: str) -> None:
    """A mistake that no restart heals ends with 0: launchd leaves it alone, and the reason can be read."""
    agent.life.file.write_text(text)
    sim = agent.load()
    until(lambda: sim.look().last is not None, what=agent.said())
    assert (sim.last, sim.runs, sim.respawns) == (0, 1, False)
    assert "error:" in (agent.logs / "agent.err.log").read_text()
    reason = status.read(agent.home.path / ".local/share/depth-watcher").reason
    assert reason
    assert asking.last_word(agent.home.path / ".local/share/depth-watcher") == reason


def test_stopped_while_the_model_is_loaded(agent: Agent) -> None:
    """SIGTERM while loading hangs: the end comes within the stop budget, well before launchd would kill."""
    sim = agent.load({"FAKE_LOADING": "hang"})
    until(lambda: agent.life.told().state == "starting" and asking.alive(agent.life.state, sim.pid or 0))
    assert sim.bootout(daemon.STOP_BUDGET_S + 3) == 0
    assert not sim.killed


def test_stopped_in_a_run_that_does_not_return(agent: Agent, tmp_path: Path) -> None:
    """SIGTERM during a native call that hangs: the end comes in time, and the picture waits for the next start."""
    sim = agent.load({"FAKE_GATE": str(tmp_path / "never")})
    until(agent.living(sim))
    make_picture(agent.life.inbox / "a.png")
    until(lambda: agent.life.told().in_flight)
    assert sim.bootout(daemon.STOP_BUDGET_S + 3) == 0
    assert not sim.killed
    assert (agent.life.inbox / "a.png").exists()


def test_crash_loop_is_throttled(agent: Agent) -> None:
    """A program that dies at each start is started again only as often as the throttle lets it."""
    sim = agent.load({"FAKE_LOADING": "exit"}, scale=0.3)
    until(lambda: sim.look().runs == 3, 60)
    assert sim.last == 3
    pauses = [later - earlier for earlier, later in zip(sim.spawned_s, sim.spawned_s[1:], strict=False)]
    assert min(pauses) >= 3.0


def test_second_start(agent: Agent) -> None:
    """A daemon in a terminal holds the folders: the agent says so, tries again later, and leaves that one alone."""
    agent.life.start()
    until(lambda: agent.life.told().inboxes)
    sim = agent.load()
    until(lambda: sim.look().last is not None)
    assert sim.last == 75
    assert "another depth-watcher is at work" in agent.said()
    assert agent.life.told().running
    assert agent.life.stop() == 0
    until(agent.living(sim))


def test_log_folder_missing(agent: Agent) -> None:
    """Without its log folder launchd starts nothing and says 78: that is why install makes the folder."""
    shutil.rmtree(agent.logs)
    sim = agent.load()
    assert (sim.last, sim.pid) == (SPAWN_FAILED, None)


def test_python_gone(agent: Agent) -> None:
    """A Python that an upgrade took away is a failed start of launchd's, with nothing of ours in any log."""
    values = plistlib.loads(agent.file.read_bytes())
    values["ProgramArguments"][0] = "/nowhere/python"
    plist.write(agent.file, plistlib.dumps(values))
    sim = agent.load()
    assert (sim.last, sim.respawns) == (SPAWN_FAILED, True)


def test_limits(agent: Agent) -> None:
    """The limits of the plist hold in the daemon, which raises the soft one as far as it may."""
    sim = agent.load()
    pid = until(agent.living(sim))
    line = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "open files" in line)
    assert line.split()[3:5] == ["4096", "4096"]


def test_nothing_is_left_of_the_group(agent: Agent) -> None:
    """The daemon has no children, so nothing remains of its process group when it has gone."""
    sim = agent.load()
    pid = until(agent.living(sim))
    assert pid is not None
    assert Path(f"/proc/{pid}/task/{pid}/children").read_text() == ""
    sim.bootout()
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)
    assert durable.holder(agent.life.state / status.LOCK_FILE) is None
