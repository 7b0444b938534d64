"""Survey: what only other programs of the system can tell, asked once, before doctor loads the runtime."""

from __future__ import annotations

import os
import plistlib
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from watcher.agent.asking import Answer, Tools
from watcher.agent.launchd import Job, Launchd, parse
from watcher.errors import Unavailable

_SLEEP_KEYS = ("sleep", "lowpowermode", "powernap", "standby", "disablesleep")
_PROBE = "io.depthwatcher.probe"
_PLAIN = "com.apple.Finder"  # an agent of Apple's that every login has, and that sets no ExitTimeOut of ours


@dataclass(frozen=True, slots=True)
class Survey:
    """``words``: one line about the agent, empty where there is none. Off a Mac only that is filled.

    ``switched_off``: whether Login Items, or a program, has switched the agent off; ``None``: nobody could say.
    ``sleep``: the power settings that pmset lists. ``symlink``: what launchd said to a plist that is a link.
    """

    words: str = ""
    switched_off: bool | None = None
    sleep: dict[str, str] = field(default_factory=dict)
    job: Job = field(default_factory=Job)
    default_exit_timeout: str = ""
    symlink: str = ""


def of_mac(words: str, agent: Launchd, launchctl: Tools, pmset: Tools, *, probing: bool) -> Survey:
    """Never raises: what cannot be asked stays empty. ``probing``: also load, and unload, an agent by a link."""
    domain = f"gui/{os.getuid()}"
    return Survey(
        words,
        agent.disabled() if _asked(launchctl, ["print-disabled", domain]).code == 0 else None,
        sleep_settings(_asked(pmset, ["-g"]).out),
        parse(_asked(launchctl, ["print", f"{domain}/{agent.label}"]).out),
        parse(_asked(launchctl, ["print", f"{domain}/{_PLAIN}"]).out).exit_timeout,
        _try_link(launchctl, domain) if probing else "",
    )


def _asked(tools: Tools, words: list[str]) -> Answer:
    try:
        return tools.ask(words)
    except Unavailable as error:
        return Answer(127, "", error.what)


def sleep_settings(text: str) -> dict[str, str]:
    """The lines of ``pmset -g`` that say when the machine sleeps; the rest is nobody's business."""
    found = re.findall(r"^\s*(\w+)\s+(\d+)\b", text, re.MULTILINE)
    return {key.lower(): value for key, value in found if key.lower() in _SLEEP_KEYS}


def _try_link(launchctl: Tools, domain: str) -> str:
    """Whether launchd loads a plist through a link. The agent never runs; it is gone again before this returns."""
    with tempfile.TemporaryDirectory() as place:
        real, link = Path(place, "real.plist"), Path(place, f"{_PROBE}.plist")
        real.write_bytes(plistlib.dumps({"Label": _PROBE, "ProgramArguments": ["/usr/bin/true"]}))
        real.chmod(0o644)
        link.symlink_to(real)
        answer = _asked(launchctl, ["bootstrap", domain, str(link)])
        _asked(launchctl, ["bootout", f"{domain}/{_PROBE}"])
    return "loaded" if answer.code == 0 else f"refused with {answer.code}"
