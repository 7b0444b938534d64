"""A daemon of its own for a test: folders, settings, start, look, stop, kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import Home, command
from waiting import until

from watcher import status
from watcher.status import Snapshot

_MISBEHAVING = Path(__file__).with_name("misbehaving.py")
_QUICK = {"settle_s": 0.2, "rescan_s": 0.5}


class Life:
    """One set of folders, and the processes that live in it one after the other."""

    def __init__(self, home: Home, place: Path) -> None:
        self.home, self.place = home, place
        self.inbox, self.outbox = place / "in", place / "out"
        self.processed, self.failed = place / "processed", place / "failed"
        self.state, self.file = place / "state", place / "settings.yaml"
        self.fake: dict[str, str] | None = None
        self.process: subprocess.Popen[str] | None = None
        self.inbox.mkdir()
        self.settle()

    def settle(self, folder: dict[str, Any] | None = None, **sections: Any) -> None:
        """Write the settings: what is given, on top of folders in ``place`` and quick watching."""
        folders = {key: str(getattr(self, key)) for key in ("inbox", "outbox", "processed", "failed")}
        whole: dict[str, Any] = {"watch": _QUICK, "model": {"name": "starter"}, **sections}
        whole["folders"] = [{**folders, **(folder or {})}]
        whole["state_dir"] = str(self.state)
        self.file.write_text(json.dumps(whole))

    # -- processes ------------------------------------------------------------------------------------------------

    def _words(self, verb: str) -> list[str]:
        program = [command()] if self.fake is None else [sys.executable, str(_MISBEHAVING)]
        return [*program, verb, "--config", str(self.file)]

    def _env(self) -> dict[str, str]:
        return {**self.home.env, **(self.fake or {})}

    def start(self) -> subprocess.Popen[str]:
        assert self.process is None or self.process.poll() is not None
        with (self.place / "log").open("a") as log:
            self.process = subprocess.Popen(
                self._words("run"),
                env=self._env(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                text=True,
            )
        return self.process

    def once(self, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._words("once"), env=self._env(), capture_output=True, text=True, timeout=timeout, check=False
        )

    def stop(self, number: int = signal.SIGTERM, seconds: float = 30.0) -> int:
        """Its exit code. Raises ``subprocess.TimeoutExpired``."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(seconds)

    @contextmanager
    def running(self, **fake: str) -> Iterator[Life]:
        """A daemon until the end of the block, where it is asked to stop and must do so."""
        if fake:
            self.fake = {f"FAKE_{key.upper()}": value for key, value in fake.items()}
        pid = self.start().pid
        until(lambda: self.told().pid == pid and self.told().inboxes, what=f"start\n{self.log()}")
        yield self
        assert self.stop() == 0, self.log()

    def bury(self) -> None:
        """Whatever happened in the test, nothing lives on."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    # -- looking --------------------------------------------------------------------------------------------------

    def log(self) -> str:
        return (self.place / "log").read_text() if (self.place / "log").exists() else ""

    def told(self) -> Snapshot:
        return status.read(self.state)

    def await_done(self, count: int, seconds: float = 30.0) -> Snapshot:
        """Until that many maps were made and nothing is left to do."""

        def over() -> Snapshot | None:
            told = self.told()
            counts = told.counts
            return told if counts.done >= count and not counts.waiting and not counts.in_flight else None

        try:
            found = until(over, seconds)
        except AssertionError:
            raise AssertionError(f"{count} were to be done, but: {self.told()}\n{self.log()}") from None
        assert found is not None
        return found

    def maps(self) -> list[str]:
        return files(self.outbox)


def files(place: Path) -> list[str]:
    """Every file below ``place``, hidden ones too."""
    found = (Path(base, name) for base, _, names in os.walk(place) for name in names)
    return sorted(str(path.relative_to(place)) for path in found)


def maps_of(names: Iterable[str]) -> list[str]:
    return sorted(f"{name.rpartition('.')[0]}_depth.png" for name in names)
