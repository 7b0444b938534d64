"""The plist: the shipped template, filled in, held to a closed schema, and written as launchd wants it."""

from __future__ import annotations

import os
import plistlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher import durable
from watcher.agent.schema import Judge, absolute, environment, one_of, problems, program, umask, whole, within
from watcher.agent_label import LABEL, PLIST
from watcher.errors import CannotCreate, UsageError

TEMPLATE = PLIST
BACKGROUND = "Background"
EXIT_TIMEOUT_S = 30  # as the template says; a test holds both, and the daemon's stop budget, together
_MODE = 0o644
_WORD = re.compile(r"@([A-Z]+)@")


@dataclass(frozen=True, slots=True)
class Filling:
    """What the template leaves open; absolute paths. ``background``: cool and slow instead of full speed.

    ``spool``: where the daemon leaves notices for the helper; ``None``: it leaves none.
    """

    python: Path
    config: Path
    work: Path
    logs: Path
    background: bool = False
    spool: Path | None = None


def template(name: str = TEMPLATE) -> bytes:
    """A shipped template. Raises ``CannotCreate`` where the installation is damaged."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "data" / "launchd" / name, package.parent / "launchd" / name):
        if place.is_file():
            return place.read_bytes()
    raise CannotCreate("the shipped plist template is missing", "Install depth-watcher again.")


def render(filling: Filling) -> bytes:
    """The whole plist as XML. Raises ``UsageError`` where the result would not pass ``check``.

    Values are put into the parsed template, so no character of a path needs escaping; control characters, which a
    plist cannot hold, are refused.
    """
    words = {
        "PYTHON": str(filling.python),
        "CONFIG": str(filling.config),
        "WORK": str(filling.work),
        "LOGS": str(filling.logs),
    }
    values = filled(plistlib.loads(template()), words)
    if filling.background:
        values["ProcessType"] = BACKGROUND
    if mistakes := check(values):
        raise UsageError(f"launchd would not take this agent: {'; '.join(mistakes)}", "Use other paths.")
    return plistlib.dumps(values, sort_keys=False)


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """A parsed template with its words put in."""
    if isinstance(value, str):
        return _WORD.sub(lambda match: words[match[1]], value)
    if isinstance(value, list):
        return [filled(item, words) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, words) for key, item in value.items()}
    return value


# -- the schema ---------------------------------------------------------------------------------------------------

SCHEMA: dict[str, Judge] = {
    "Label": one_of(LABEL),
    "ProgramArguments": program,
    "RunAtLoad": one_of(True),
    "KeepAlive": within(SuccessfulExit=one_of(False)),
    "ThrottleInterval": whole(10, 600),
    "ExitTimeOut": whole(10, 120),
    "ProcessType": one_of("Interactive", BACKGROUND),
    "LimitLoadToSessionType": one_of("Aqua"),
    "MaterializeDatalessFiles": one_of(True),
    "WorkingDirectory": absolute,
    "StandardOutPath": absolute,
    "StandardErrorPath": absolute,
    "Umask": umask,
    "SoftResourceLimits": within(NumberOfFiles=whole(256, 10240)),
    "HardResourceLimits": within(NumberOfFiles=whole(256, 10240)),
    "EnvironmentVariables": environment,
}


def check(values: Any) -> list[str]:
    """One line for each mistake; empty for a plist that launchd would take as it is meant."""
    if not isinstance(values, dict):
        return ["it is no dictionary"]
    return problems(values, SCHEMA)


# -- the file -----------------------------------------------------------------------------------------------------


def write(path: Path, data: bytes) -> None:
    """A regular file with mode 0644 whatever the umask: launchd refuses one that others may write. Raises ``OSError``.

    A link in its place is replaced by the file.
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    before = os.umask(0o022)
    try:
        durable.write_whole(path, data, mode=_MODE)
    finally:
        os.umask(before)


def same(path: Path, data: bytes) -> bool:
    """Whether the file is there, regular, with the right mode, and says the same."""
    try:
        state = path.lstat()
        return state.st_mode == 0o100000 | _MODE and path.read_bytes() == data
    except OSError:
        return False


def read(path: Path) -> dict[str, Any] | None:
    """The installed plist, ``None`` where there is none or it cannot be read."""
    try:
        found = plistlib.loads(path.read_bytes())
    except (OSError, ValueError, plistlib.InvalidFileException):
        return None
    except Exception:  # the parser lets errors of the XML library through
        return None
    return found if isinstance(found, dict) else None


def drift(installed: Mapping[str, Any], filling: Filling) -> list[str]:
    """The keys in which an installed plist differs from what ``install`` would write now."""
    wanted = plistlib.loads(render(filling))
    return sorted(key for key in {*wanted, *installed} if wanted.get(key) != installed.get(key))
