"""The tables of docs/reliability.md are held against the code."""

from __future__ import annotations

import errno
import re

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
    """Every test file that the page calls upon is there."""
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert named
    assert [name for name in sorted(named) if not (PROJECT / "tests" / f"{name}.py").is_file()] == []
