"""A systemctl for a user: reads the real unit, starts the real program, remembers it in a file between its calls.

Run as ``systemctl`` from the PATH; ``FAKE_SYSTEMD`` is its folder. ``no-bus`` in there: no manager runs.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

PLACE = Path(os.environ["FAKE_SYSTEMD"])
STATE = PLACE / "state.json"


def load() -> dict[str, object]:
    return json.loads(STATE.read_text()) if STATE.exists() else {"pid": 0, "enabled": False, "calls": []}


def unit_file(name: str) -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "systemd" / "user" / name


def lives(pid: int) -> bool:
    try:
        return pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def begin(name: str) -> int:
    lines = unit_file(name).read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    words = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(values["ExecStart"])]
    with open(PLACE / "journal", "ab") as journal:
        return subprocess.Popen(
            words,
            env={**os.environ, **dict(pair.split("=", 1) for pair in values["Environment"].split())},
            cwd=values["WorkingDirectory"].replace("%%", "%"),
            stdin=subprocess.DEVNULL,
            stdout=journal,
            stderr=journal,
            start_new_session=True,
        ).pid


def end(pid: int) -> None:
    if lives(pid):
        os.kill(pid, signal.SIGTERM)
        for _ in range(500):
            if not lives(pid):
                return
            threading.Event().wait(0.02)
        os.kill(pid, signal.SIGKILL)


def main() -> int:
    if (PLACE / "no-bus").exists():
        print("Failed to connect to bus: No medium found", file=sys.stderr)
        return 1
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    state = load()
    pid = int(str(state["pid"]))
    verb = words[0]
    calls = list(state["calls"]) if isinstance(state["calls"], list) else []
    calls.append(" ".join(sys.argv[1:]))
    if words[-1].endswith(".path"):  # beside the agent: written down, and otherwise left alone
        STATE.write_text(json.dumps({**state, "calls": calls}))
        return 0
    if verb == "show":
        state["pid"] = pid if lives(pid) else 0
        found = unit_file(words[1]).exists()
        print(f"LoadState={'loaded' if found else 'not-found'}")
        failed = bool(state.get("started")) and not state["pid"]
        print(f"ActiveState={'active' if state['pid'] else 'failed' if failed else 'inactive'}")
        print(f"SubState={'running' if state['pid'] else 'dead'}\nMainPID={state['pid']}\nNRestarts=0")
        print("ExecMainStatus=2\nResult=success")
    elif verb in ("stop", "disable") or verb == "restart":
        end(pid)
        state.update(pid=0, started=False)
    if verb in ("start", "restart"):
        state["pid"] = pid if verb == "start" and lives(pid) else begin(words[1])
        state["started"] = True
    if verb in ("enable", "disable"):
        state["enabled"] = verb == "enable"
    state["calls"] = calls
    STATE.write_text(json.dumps(state))
    return 0


if __name__ == "__main__":
    sys.exit(main())
