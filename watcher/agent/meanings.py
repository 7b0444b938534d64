"""What launchd's numbers mean for a person, and what to do. ``launchctl error N`` knows only their names."""

from __future__ import annotations

from watcher.agent.asking import Answer
from watcher.errors import Unavailable

LOGIN_ITEMS = (
    "System Settings > General > Login Items & Extensions: switch this Python (or depth-watcher) on under "
    '"Allow in the Background", then `depth-watcher start`.'
)
NOT_LOADED = 113
BUSY = (5, 17, 36, 37)  # there already, or still going away: worth another try

_MEANINGS: dict[int, tuple[str, str]] = {
    3: ("launchd has no such process", "`depth-watcher install` puts the agent there."),
    5: (
        "launchd refuses the agent (input/output error): it is switched off, still ending, or its file is not accepted",
        f"Wait half a minute and try again. If it stays so: {LOGIN_ITEMS}",
    ),
    17: ("launchd has the agent already", "`depth-watcher restart` starts it anew."),
    36: ("the agent is still ending", "Wait half a minute and try again."),
    37: ("the agent is there already, or still going away", "Wait half a minute and try again."),
    64: (
        "this launchctl does not know what was asked of it",
        "It is older or newer than this program expects; `depth-watcher doctor --report FILE` helps to mend that.",
    ),
    78: (
        "launchd could not prepare the agent: a log file cannot be opened or the working folder is missing",
        "`depth-watcher install` creates both again. The log folder must not be on another volume.",
    ),
    112: (
        "there is no graphical login of this user",
        "Log in at the Mac itself (not over SSH), then `depth-watcher install`.",
    ),
    113: ("launchd does not know the agent", "`depth-watcher install` puts it there."),
    119: ("the agent is switched off", LOGIN_ITEMS),
    124: ("launchctl did not answer", "Try again; if it stays so, log out and in."),
    125: (
        "launchd does not start agents of this kind from here: this is a login over SSH, or not your own session",
        "Run it in Terminal on the Mac itself, as yourself and without sudo.",
    ),
}


def meaning(code: int) -> tuple[str, str]:
    """(what, remedy) for an exit status of ``launchctl`` or the last exit code of the agent."""
    unknown = (f"launchctl ended with {code}", f"`launchctl error {code}` may say more.")
    return _MEANINGS.get(code, unknown)


def refusal(verb: str, answer: Answer) -> Unavailable:
    """The error for an answer that was no success: number, words, remedy."""
    what, remedy = meaning(answer.code)
    said = f" It said: {answer.said}." if answer.said else ""
    return Unavailable(f"{what} ({verb}: {answer.code}).{said}", remedy)
