"""A stop that comes before there is anything to stop."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys

import pytest

from watcher import early

_CHILD = """
import os, signal, sys
sys.argv = ["depth-watcher", *{words}]
from watcher import cli
os.kill(os.getpid(), {number})
"""


def end_of(words: list[str], number: int) -> int:
    program = _CHILD.format(words=words, number=int(number))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60).returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("verb", ["run", "once"])
def test_a_stop_at_once(verb: str, number: int) -> None:
    """A process that is asked to stop before it has begun to work has done what it was asked for: it ends with 0."""
    assert end_of([verb], number) == 0


@pytest.mark.parametrize(("words", "rarely"), [(["status"], True), (["run"], False), (["depth"], False), ([], False)])
def test_only_verbs_that_answer_put_their_garbage_off(words: list[str], rarely: bool) -> None:
    """A daemon looks for it as often as ever: a picture must not stay in memory because nobody looked."""
    before = gc.get_threshold()
    try:
        early.hurry(["depth-watcher", *words])
        assert (gc.get_threshold() != before) is rarely
    finally:
        gc.set_threshold(*before)


def test_nohup() -> None:
    """A hang-up that whoever started the program ignores stays ignored."""
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)" + _CHILD.format(
        words=["once"], number=int(signal.SIGHUP)
    )
    done = subprocess.run(
        [sys.executable, "-c", program + "print('goes on')"], capture_output=True, check=False, timeout=60
    )
    assert done.stdout == b"goes on\n"


def test_other_verbs() -> None:
    """What only looks ends by the signal, as people expect of it."""
    assert end_of(["status"], signal.SIGTERM) == -signal.SIGTERM
    assert end_of([], signal.SIGTERM) == -signal.SIGTERM
