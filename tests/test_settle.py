"""When a file counts as completely written: pure, so that hours pass in a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watcher.frame import Identity, Wholeness
from watcher.settle import Rules, Waiting, judge, put_off, sight

W, P, U = Wholeness.WHOLE, Wholeness.PARTIAL, Wholeness.UNKNOWN
RULES = Rules(settle_s=0.5, patience_s=600)
A, B = Identity(100, 1, 1, 1), Identity(200, 2, 1, 1)


def run(*steps: tuple[float, Identity, Wholeness]) -> Waiting:
    waiting = None
    for now, identity, wholeness in steps:
        waiting = sight(waiting, identity, wholeness, now)
    assert waiting is not None
    return waiting


@pytest.mark.parametrize(
    ("steps", "now", "settled", "patient"),
    [
        pytest.param([(0, A, W)], 0, True, True, id="whole at once"),
        pytest.param([(0, A, U)], 0, False, True, id="cannot tell: waits"),
        pytest.param([(0, A, U)], 0.49, False, True, id="not quite quiet"),
        pytest.param([(0, A, U)], 0.5, True, True, id="quiet long enough"),
        pytest.param([(0, A, U), (0.4, B, U)], 0.6, False, True, id="grew: waits anew"),
        pytest.param([(0, A, U), (0.4, B, U)], 0.9, True, True, id="grew, then quiet"),
        pytest.param([(0, A, U), (0.4, A, U)], 0.5, True, True, id="seen again is no change"),
        pytest.param([(0, A, P)], 599, False, True, id="truncated: ten minutes are nothing"),
        pytest.param([(0, A, P)], 600, True, False, id="patience over: let through for its reason"),
        pytest.param([(0, A, P), (599, B, P)], 1198, False, True, id="a change renews the patience"),
        pytest.param([(0, A, P), (599, B, W)], 599, True, True, id="completed at last"),
        pytest.param([(0, A, U), (0.1, A, P)], 1, False, True, id="a closer look says truncated"),
    ],
)
def test_verdicts(steps: list[tuple[float, Identity, Wholeness]], now: float, settled: bool, patient: bool) -> None:
    """A growing file waits, a whole one does not, a truncated one has patience."""
    verdict = judge(run(*steps), RULES, now)
    assert (verdict.settled, verdict.patient) == (settled, patient)


@pytest.mark.parametrize(
    "other",
    [Identity(101, 1, 1, 1), Identity(100, 2, 1, 1), Identity(100, 1, 2, 1), Identity(100, 1, 1, 2)],
    ids=["size", "mtime", "device", "inode"],
)
def test_every_part_of_the_identity_counts(other: Identity) -> None:
    """A file that was replaced by one of the same size waits anew, whatever differs."""
    assert not judge(run((0, A, U), (0.4, other, U)), RULES, 0.6).settled


def test_put_off() -> None:
    """What a volume stood in the way of is not looked at before its time, even when it is whole."""
    waiting = put_off(run((0, A, W)), 60)
    early = judge(waiting, RULES, 59.9)
    assert (early.settled, early.look_again_s) == (False, 60)
    assert judge(waiting, RULES, 60).settled


def test_hours_of_slow_copying() -> None:
    """A copy that pauses for nine minutes at a time is waited for all night, and looked at seldom."""
    waiting, now, looks = None, 0.0, 0
    for step in range(60):
        waiting = sight(waiting, Identity(step, step), P, now)
        until = now + 540
        while now < until:
            verdict = judge(waiting, RULES, now)
            assert not verdict.settled
            assert verdict.look_again_s > now
            now, looks = verdict.look_again_s, looks + 1
    assert looks < 60 * 80
    assert waiting is not None
    assert judge(sight(waiting, Identity(99, 99), W, now), RULES, now).settled


@given(
    st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 3), st.sampled_from([W, P, U])), min_size=1, max_size=20),
    st.floats(0, 2000),
)
def test_always_a_next_look(steps: list[tuple[float, int, Wholeness]], later: float) -> None:
    """Whatever is seen: a file has settled, or there is a moment in the future when it is looked at again."""
    now, waiting = 0.0, None
    for pause, content, wholeness in steps:
        now += pause
        waiting = sight(waiting, Identity(content, content), wholeness, now)
        verdict = judge(waiting, RULES, now)
        assert verdict.settled or verdict.look_again_s > now
        if verdict.settled and wholeness is P:
            assert now - waiting.unchanged_since_s >= RULES.patience_s
    assert waiting is not None
    if later >= RULES.patience_s:
        assert judge(waiting, RULES, now + later).settled
