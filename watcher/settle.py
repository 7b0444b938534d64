"""Settle: decide that a file is completely written. Pure: sightings and the clock's value in, verdicts out.

A file that says itself that it is whole goes through at once. One that says that bytes are missing waits, however
long it pauses, until its ``patience_s`` is over; it is then let through so that a real decoder gives the reason.
One that cannot tell is settled when nothing about it has changed for ``settle_s``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from watcher.frame import Identity, Wholeness

_POLL_SHARE = 0.2
_POLL_MOST_S = 10.0


@dataclass(frozen=True, slots=True)
class Rules:
    settle_s: float
    patience_s: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is known of one file that has not settled yet."""

    identity: Identity
    wholeness: Wholeness
    first_seen_s: float
    unchanged_since_s: float
    not_before_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    settled: bool
    patient: bool = True  # False: it is let through only because its patience is over
    look_again_s: float = 0.0  # when to look at the file again, if it has not settled


def sight(known: Waiting | None, identity: Identity, wholeness: Wholeness, now_s: float) -> Waiting:
    """Take note of a sighting. Any change of the identity starts the waiting anew."""
    if known is None:
        return Waiting(identity, wholeness, now_s, now_s)
    if known.identity != identity:
        return Waiting(identity, wholeness, known.first_seen_s, now_s)
    return replace(known, wholeness=wholeness)


def put_off(known: Waiting, until_s: float) -> Waiting:
    """Not before ``until_s``: a volume or a permission stood in the way."""
    return replace(known, not_before_s=until_s)


def judge(waiting: Waiting, rules: Rules, now_s: float) -> Verdict:
    """Has it settled? The verdict counts only for the identity that was just seen."""
    if waiting.not_before_s > now_s:
        return Verdict(False, look_again_s=waiting.not_before_s)
    if waiting.wholeness is Wholeness.WHOLE:
        return Verdict(True)
    quiet_s = now_s - waiting.unchanged_since_s
    if waiting.wholeness is Wholeness.UNKNOWN:
        if quiet_s >= rules.settle_s:
            return Verdict(True)
        return Verdict(False, look_again_s=waiting.unchanged_since_s + rules.settle_s)
    if quiet_s >= rules.patience_s:
        return Verdict(True, patient=False)
    # Not every system says when writing ends, so it is looked at again, the less often the longer it has been quiet.
    pause_s = min(max(rules.settle_s, _POLL_SHARE * quiet_s), _POLL_MOST_S)
    return Verdict(False, look_again_s=min(now_s + pause_s, waiting.unchanged_since_s + rules.patience_s))
