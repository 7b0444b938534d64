"""The tables of docs/reliability.md are held against the code."""

from __future__ import annotations

import errno
import re

import test_changes
from conftest import PROJECT

from watcher import errors

PAGE = (PROJECT / "docs/reliability.md").read_text(encoding="utf-8")


def test_error_numbers() -> None:
    """Every error number that has words of its own stands in the table, with exactly these words, and no other."""
    shown = {
        getattr(errno, name): (what, remedy)
        for name, what, remedy in re.findall(r"^\| `(E[A-Z]+)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    }
    assert shown == errors.explained()


def test_named_tests_exist() -> None:
    """Every test that the page calls upon is there, by its file and by its name."""
    named = re.findall(r"`(test_\w+)(?:::(test_\w+))?`", PAGE)
    assert len(named) > 60
    for module, name in named:
        text = (PROJECT / "tests" / f"{module}.py").read_text(encoding="utf-8")
        assert not name or re.search(rf"^def {name}\(", text, re.MULTILINE), f"{module}::{name}"


def test_every_kind_has_an_answer() -> None:
    """No kind of loss that other tools' users met is left without a test or a reason."""
    part = PAGE.partition("## What users of other tools lost")[2].partition("\n## ")[0]
    rows = [row for row in re.findall(r"^\| (.+?) \| (.+) \|$", part, re.MULTILINE) if row[0] != "kind"]
    assert len(rows) > 35
    assert [kind for kind, answer in rows if "`test" not in answer] == []


def test_changes_on_the_way() -> None:
    """The page's table of states and changes is the one that is tested."""
    shown = {
        state: [cell.strip() for cell in cells.split("|")]
        for state, cells in re.findall(rf"^\| ({'|'.join(test_changes.TABLE)}) \| (.+) \|$", PAGE, re.MULTILINE)
    }
    assert shown == {state: [_shown(state, change) for change in test_changes.CHANGES] for state in test_changes.TABLE}


def _shown(state: str, change: str) -> str:
    if maps := test_changes.TABLE[state][change]:
        return ", ".join(f"{name}: {content}" for name, content in maps.items())
    if (state, change) in test_changes.WAITING:
        return "waits"
    return "stays failed" if test_changes.FAILED.get((state, change)) else "nothing"
