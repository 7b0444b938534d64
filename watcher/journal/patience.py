"""A journal whose disk is full or away is waited for: nothing is decided without it."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from watcher.errors import JournalDamaged, VolumeTrouble

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_S = 1.0
_MOST_S = 15.0


@dataclass(frozen=True, slots=True)
class Patience:
    """``wait(seconds)`` is True when the process is to stop; ``tell(place, trouble)`` reports, ``None``: it is over."""

    wait: Callable[[float], bool]
    tell: Callable[[str, str | None], None]


class Patient(Protocol):
    path: Path
    patience: Patience | None


J = TypeVar("J", bound=Patient)


def patiently(method: Callable[Concatenate[J, P], T]) -> Callable[Concatenate[J, P], T]:
    """Try until the disk lets us; raises ``VolumeTrouble`` where nobody waits, or a stop comes first."""

    @functools.wraps(method)
    def run(journal: J, *args: P.args, **kwargs: P.kwargs) -> T:
        pause_s, told = _FIRST_S, False
        while True:
            try:
                result = method(journal, *args, **kwargs)
            except sqlite3.OperationalError as error:
                trouble = VolumeTrouble(
                    f"the journal {journal.path} cannot be used: {error}",
                    "Make room on its disk; work goes on by itself.",
                )
                if journal.patience is None:
                    raise trouble from error
                journal.patience.tell(str(journal.path), str(trouble))
                told = True
                if journal.patience.wait(pause_s):
                    raise trouble from error
                pause_s = min(2 * pause_s, _MOST_S)
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:
                    raise  # a mistake of ours
                raise JournalDamaged(
                    f"the journal {journal.path} is damaged: {error}",
                    "Move it away; the next start begins a new one, and does again what is still in the inbox.",
                ) from error
            else:
                if told and journal.patience is not None:
                    journal.patience.tell(str(journal.path), None)
                return result

    return cast(Callable[Concatenate[J, P], T], run)
