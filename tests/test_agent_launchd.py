"""The verbs of the LaunchAgent against a launchctl that is as slow and as moody as the real one. None ran on a Mac."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_launchctl import DOMAIN, UID, FakeLaunchctl

from watcher import status
from watcher.agent import asking, launchd, meanings, plist
from watcher.agent.asking import Answer, Tools
from watcher.agent.launchd import Launchd
from watcher.agent_label import LABEL
from watcher.errors import ExitCode, Unavailable


class Mac:
    """One user's launchd, the agent in it, and time that goes by only in waits."""

    def __init__(self, place: Path, fake: FakeLaunchctl) -> None:
        self.fake = fake
        self.state = place / "state"
        self.state.mkdir(exist_ok=True)
        self.file = place / "Library" / "LaunchAgents" / plist.TEMPLATE
        self.agent = Launchd(Tools(fake, fake.now_s, fake.pause), UID, self.file, self.state)
        self.data = plist.render(
            plist.Filling(Path("/opt/venv/bin/python"), place / "config.yaml", place / "state", place / "logs")
        )

    def install(self) -> int:
        return self.agent.install(self.data)


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    made = Mac(tmp_path, FakeLaunchctl())
    monkeypatch.setattr(asking, "alive", lambda _, pid: pid in made.fake.living)
    return made


def test_first_install(mac: Mac) -> None:
    """A first install enables, loads and starts, and answers with the number of the process that lives."""
    pid = mac.install()
    assert mac.fake.jobs[LABEL].pid == pid
    assert [call for call in mac.fake.calls if not call.startswith("print")] == ["enable", "bootstrap", "kickstart"]
    assert mac.fake.jobs[LABEL].runs == 1


def test_install_again_unchanged(mac: Mac) -> None:
    """The same plist again is not loaded anew: the process is started anew, so that an upgrade takes effect."""
    first = mac.install()
    mac.fake.calls.clear()
    second = mac.install()
    assert second != first
    assert "bootstrap" not in mac.fake.calls
    assert "kickstart -k" in mac.fake.calls


def test_install_changed(mac: Mac) -> None:
    """Another plist replaces the old one only after launchd has let go of the old agent."""
    mac.install()
    mac.fake.calls.clear()
    mac.data = plist.render(plist.Filling(Path("/other/bin/python"), Path("/c.yaml"), Path("/w"), Path("/l")))
    mac.install()
    calls = [call for call in mac.fake.calls if call != "print"]
    assert calls == ["bootout", "enable", "bootstrap", "kickstart"]
    assert mac.fake.calls[mac.fake.calls.index("bootout") :].count("print") > mac.fake.drains
    assert mac.file.read_bytes() == mac.data


@pytest.mark.parametrize("code", [5, 17, 36, 37])
def test_bootstrap_is_tried_again(mac: Mac, code: int) -> None:
    """What may be over in a moment is tried again, with growing pauses and an end."""
    mac.fake.scripted["bootstrap"] = [code, code]
    assert mac.install() in mac.fake.living
    assert mac.fake.calls.count("bootstrap") == 3


def test_bootstrap_is_not_tried_for_ever(mac: Mac) -> None:
    """A refusal that stays ends within the bound, with launchd's number and a remedy."""
    mac.fake.endless["bootstrap"] = 5
    with pytest.raises(Unavailable, match=r"bootstrap: 5") as caught:
        mac.install()
    assert mac.fake.clock_s <= 15.0
    assert mac.fake.calls.count("bootstrap") >= 4
    assert "Login Items" in caught.value.remedy


@pytest.mark.parametrize("code", [64, 78, 112, 119, 122, 125])
def test_bootstrap_refusals_are_explained(mac: Mac, code: int) -> None:
    """Numbers that do not heal are not tried again; each says what it means, itself and what to do."""
    mac.fake.endless["bootstrap"] = code
    with pytest.raises(Unavailable, match=str(code)) as caught:
        mac.install()
    assert mac.fake.calls.count("bootstrap") == 1
    assert caught.value.what.startswith(meanings.meaning(code)[0])
    assert caught.value.remedy
    assert caught.value.exit_code == ExitCode.UNAVAILABLE


def test_every_meaning_speaks_to_a_person() -> None:
    """No two numbers share their words, and the numbers of the field reports are all there."""
    known = {code: meanings.meaning(code) for code in (3, 5, 17, 36, 37, 64, 78, 112, 113, 119, 124, 125)}
    assert len({what for what, _ in known.values()}) == len(known)
    assert all(remedy and not what.endswith(".") for what, remedy in known.values())
    assert "launchctl error 134" in meanings.meaning(134)[1]
    assert "SSH" in known[125][0]
    assert "Log in at the Mac" in known[112][1]


def test_switched_off_in_login_items(mac: Mac) -> None:
    """An agent that the user has switched off is not fought with: the error says where the switch is."""
    mac.fake.disabled.add(LABEL)
    mac.fake.switched_off = True
    with pytest.raises(Unavailable, match="switched off") as caught:
        mac.install()
    assert "Login Items & Extensions" in caught.value.remedy


def test_disabled_by_a_program(mac: Mac) -> None:
    """An override that `enable` can lift does not stand in the way."""
    mac.fake.disabled.add(LABEL)
    assert mac.install() in mac.fake.living


def test_held_back(mac: Mac) -> None:
    """Just after login launchd holds agents back; the start is asked for again until it happens."""
    mac.fake.holds = 100  # polls of a quarter second
    assert mac.install() in mac.fake.living
    assert 20 <= mac.fake.clock_s <= 60
    assert mac.fake.calls.count("kickstart") > 2


def test_held_back_for_ever(mac: Mac) -> None:
    """An agent that stays held back ends the wait with the reason."""
    mac.fake.holds = 10_000
    with pytest.raises(Unavailable, match="holds the agent back"):
        mac.install()
    assert mac.fake.clock_s <= 61


def test_a_process_is_not_yet_success(mac: Mac) -> None:
    """launchd shows a process even in a crash loop: only our own status file makes it a success."""
    mac.fake.dumb = True
    with pytest.raises(Unavailable, match="has not said within 60 s that it lives"):
        mac.install()


def test_crash_loop(mac: Mac) -> None:
    """A program that always fails is reported with its exit code and where to look."""
    mac.fake.ends_with = 1
    with pytest.raises(Unavailable, match="ended with exit code 1") as caught:
        mac.install()
    assert "depth-watcher logs" in caught.value.remedy


def test_permanent_mistake(mac: Mac) -> None:
    """A daemon that ends with 0 has left word of the reason; install repeats it, and does not wait a minute for it."""
    status.write(mac.state, status.Snapshot(state="stopped", reason="There is a mistake in config.yaml"))
    mac.fake.ends_with = 0
    with pytest.raises(Unavailable, match=r"There is a mistake in config\.yaml"):
        mac.install()
    assert mac.fake.clock_s < 5


def test_last_exit_78(mac: Mac) -> None:
    """78 is launchd's own failure to open the logs, and is explained as such at once."""
    mac.fake.ends_with = 78
    with pytest.raises(Unavailable, match="log file cannot be opened"):
        mac.install()
    assert mac.fake.clock_s < 5


def test_never_gone(mac: Mac) -> None:
    """An agent that does not end is waited for as long as launchd may need, and no longer."""
    mac.install()
    mac.fake.drains = 10_000
    began_s = mac.fake.clock_s
    with pytest.raises(Unavailable, match="still ending"):
        mac.agent.stop()
    assert plist.EXIT_TIMEOUT_S < mac.fake.clock_s - began_s <= plist.EXIT_TIMEOUT_S + 6


def test_stop_and_start(mac: Mac) -> None:
    """After stop nothing is loaded, and a second stop is no mistake; start loads it again."""
    first = mac.install()
    assert mac.agent.stop()
    assert not mac.fake.jobs
    assert not mac.agent.stop()
    assert mac.agent.start() not in (first, None)


def test_start_twice(mac: Mac) -> None:
    """Starting what runs leaves it running."""
    pid = mac.install()
    assert mac.agent.start() == pid


def test_restart_waits_for_the_new_process(mac: Mac) -> None:
    """The old process, still alive for a moment, is never taken for the new one."""
    pid = mac.install()
    assert mac.agent.restart() != pid


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_not_installed(mac: Mac, verb: str) -> None:
    """Without a plist the verbs name the one that makes it."""
    with pytest.raises(Unavailable, match="not installed") as caught:
        getattr(mac.agent, verb)()
    assert "install" in caught.value.remedy


@pytest.mark.parametrize("code", [0, 3, 36, 113])
def test_uninstall(mac: Mac, code: int) -> None:
    """Uninstalling removes the file and leaves nothing loaded or switched off; answers that mean "gone" are fine."""
    mac.install()
    mac.fake.scripted["bootout"] = [code]
    if code:
        del mac.fake.jobs[LABEL]
    assert mac.agent.uninstall()
    assert not mac.file.exists()
    assert not mac.fake.jobs
    assert not mac.fake.disabled
    assert not mac.agent.uninstall()


def test_ssh(mac: Mac) -> None:
    """Over SSH there may be no graphical session: nothing is written, and the words say so."""
    mac.fake.endless["print"] = 125
    with pytest.raises(Unavailable, match="SSH"):
        mac.install()
    assert not mac.file.exists()


def test_parse_reads_the_outer_block_only(mac: Mac) -> None:
    """`state = active` and `pid` of nested blocks are not the agent's."""
    pid = mac.install()
    answer = mac.fake(["print", f"{DOMAIN}/{LABEL}"])
    job = launchd.parse(answer.out)
    assert (job.state, job.pid, job.runs) == ("running", pid, 1)
    assert job.spawn_type == "interactive (4)"
    assert job.exit_code is None


@pytest.mark.parametrize("text", ["", "}", "x = {", "state = running", "a = {\n}\n}\n}\nstate = x", "\x00\n= \n = "])
def test_parse_survives_anything(text: str) -> None:
    """The text is no interface: whatever it becomes, reading it says less and never fails."""
    assert launchd.parse(text).loaded


def test_real_files_and_umask(mac: Mac) -> None:
    """Whatever the umask, launchd gets a regular file of mode 0644, even where a link lay before."""
    other = mac.file.parent / "other.plist"
    for mask in (0o002, 0o077, 0o022):
        before = os.umask(mask)
        try:
            mac.file.parent.mkdir(parents=True, exist_ok=True)
            mac.file.unlink(missing_ok=True)
            mac.file.symlink_to(other)
            mac.install()
        finally:
            os.umask(before)
        assert not mac.file.is_symlink()
        assert mac.file.stat().st_mode == 0o100644
    assert not other.exists()


def test_no_launchctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no launchctl at all, the error says what to do instead."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no launchctl"):
        asking.program("launchctl")(["print", "x"])


def test_asking_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program on the PATH is asked with the words as they are, and its code and words come back."""
    script = tmp_path / "launchctl"
    script.write_text('#!/bin/sh\nprintf "%s|" "$@"\necho oh >&2\nexit 113\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert asking.program("launchctl")(["print", "a b"]) == Answer(113, "print|a b|", "oh\n")
