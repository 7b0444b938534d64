"""The plist: the shipped template, filled in, held to a closed schema, and written as launchd wants it."""

from __future__ import annotations

import os
import plistlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher import durable
from watcher.agent_label import LABEL, PLIST
from watcher.errors import CannotCreate, UsageError

TEMPLATE = PLIST
BACKGROUND = "Background"
EXIT_TIMEOUT_S = 30  # as the template says; a test holds both, and the daemon's stop budget, together
_MODE = 0o644
_WORD = re.compile(r"@([A-Z]+)@")


@dataclass(frozen=True, slots=True)
class Filling:
    """What the template leaves open; absolute paths. ``background``: cool and slow instead of full speed."""

    python: Path
    config: Path
    work: Path
    logs: Path
    background: bool = False


def template() -> bytes:
    """The shipped template. Raises ``CannotCreate`` where the installation is damaged."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "data" / "launchd" / TEMPLATE, package.parent / "launchd" / TEMPLATE):
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
    values = _filled(plistlib.loads(template()), words)
    if filling.background:
        values["ProcessType"] = BACKGROUND
    problems = check(values)
    if problems:
        raise UsageError(f"launchd would not take this agent: {'; '.join(problems)}", "Use other paths.")
    return plistlib.dumps(values, sort_keys=False)


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _WORD.sub(lambda match: words[match[1]], value)
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, words) for key, item in value.items()}
    return value


# -- the schema ---------------------------------------------------------------------------------------------------
# launchd ignores keys that it does not know and values of a wrong type, without a word: a slip of the pen would only
# be noticed as a Mac that behaves oddly. So what is not listed here is a mistake.


def _absolute(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        return "has to be an absolute path: launchd expands neither ~ nor variables"
    return "holds a control character" if any(ord(char) < 32 or ord(char) == 127 for char in value) else ""


def _one_of(*allowed: Any) -> Callable[[Any], str]:
    def check_value(value: Any) -> str:
        same = any(value == one and type(value) is type(one) for one in allowed)
        return "" if same else f"has to be {' or '.join(map(repr, allowed))}"

    return check_value


def _whole(least: int, most: int) -> Callable[[Any], str]:
    def check_value(value: Any) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return "" if good else f"has to be a whole number from {least} to {most}"

    return check_value


def _program(value: Any) -> str:
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(item, str) and item for item in value):
        return "has to be a list of strings"
    unfit = any(ord(char) < 32 or ord(char) == 127 for item in value for char in item)
    return "holds a control character" if unfit else _absolute(value[0])


def _environment(value: Any) -> str:
    good = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return "" if good else "has to hold strings only: launchd drops anything else"


def _umask(value: Any) -> str:
    good = isinstance(value, str) and re.fullmatch(r"0[0-7]{2,3}", value)
    return "" if good else "has to be an octal string such as '077'"


def _within(**schema: Callable[[Any], str]) -> Callable[[Any], str]:
    def check_value(value: Any) -> str:
        if not isinstance(value, dict):
            return "has to be a dictionary"
        return "; ".join(_problems(value, schema))

    return check_value


SCHEMA: dict[str, Callable[[Any], str]] = {
    "Label": _one_of(LABEL),
    "ProgramArguments": _program,
    "RunAtLoad": _one_of(True),
    "KeepAlive": _within(SuccessfulExit=_one_of(False)),
    "ThrottleInterval": _whole(10, 600),
    "ExitTimeOut": _whole(10, 120),
    "ProcessType": _one_of("Interactive", BACKGROUND),
    "LimitLoadToSessionType": _one_of("Aqua"),
    "MaterializeDatalessFiles": _one_of(True),
    "WorkingDirectory": _absolute,
    "StandardOutPath": _absolute,
    "StandardErrorPath": _absolute,
    "Umask": _umask,
    "SoftResourceLimits": _within(NumberOfFiles=_whole(256, 10240)),
    "HardResourceLimits": _within(NumberOfFiles=_whole(256, 10240)),
    "EnvironmentVariables": _environment,
}


def check(values: Any) -> list[str]:
    """One line for each mistake; empty for a plist that launchd would take as it is meant."""
    if not isinstance(values, dict):
        return ["it is no dictionary"]
    return list(_problems(values, SCHEMA))


def _problems(values: Mapping[str, Any], schema: Mapping[str, Callable[[Any], str]]) -> list[str]:
    found = [f"{key}: no such key is used here" for key in values if key not in schema]
    found += [f"{key}: is missing" for key in schema if key not in values]
    for key, judge in schema.items():
        if key in values and (why := judge(values[key])):
            found.append(f"{key}: {why}")
    return found


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
