"""Backlog: the window of files that intake has in view. Pure bookkeeping, bounded, time as an argument.

The inbox itself is the backlog; this holds at most ``WINDOW`` of its files, in the order in which they will be done:
first come, first served, by name inside one arrival.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

from watcher import settle
from watcher.frame import Identity, Source, Wholeness

WINDOW = 4096
_VOID_SPARE = 256
_BACK_OFF_FIRST_S = 2.0
_BACK_OFF_MOST_S = 60.0

Key = tuple[int, str]  # (index of the folder, key of the source)


@dataclass(slots=True)
class Entry:
    """One file in view."""

    folder: int
    source: Source
    waiting: settle.Waiting
    arrival: int
    ticket: int  # changes with every sighting: what the heaps say of an older one is void
    alone: bool = False
    patient: bool = True
    unread: bool = False  # its bytes could not be looked at yet
    why: str = ""  # it waits for the rest of its bytes, in words

    @property
    def key(self) -> Key:
        return self.folder, self.source.key


@dataclass(slots=True)
class Backlog:
    rules: settle.Rules
    entries: dict[Key, Entry] = field(default_factory=dict)
    _due: list[tuple[float, int, Key]] = field(default_factory=list)
    _settled: list[tuple[int, str, int, Key]] = field(default_factory=list)
    _penalties: dict[Key, int] = field(default_factory=dict)
    _tickets: int = 0
    _incomplete: set[Key] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.entries)

    def room(self) -> int:
        return max(0, WINDOW - len(self.entries))

    def sight(self, entry: Entry, now_s: float) -> None:
        """Take a (re-)sighted file in and judge it."""
        self._tickets += 1
        entry.ticket = self._tickets
        self.entries[entry.key] = entry
        (self._incomplete.add if _waits_for_its_end(entry) else self._incomplete.discard)(entry.key)
        verdict = settle.judge(entry.waiting, self.rules, now_s)
        self._forget_void()
        if verdict.settled:
            entry.patient = entry.patient and verdict.patient
            order = -1 if entry.alone else entry.arrival
            heapq.heappush(self._settled, (order, entry.source.rel, entry.ticket, entry.key))
        else:
            heapq.heappush(self._due, (verdict.look_again_s, entry.ticket, entry.key))

    def _forget_void(self) -> None:
        """A backlog that is held back for days is looked at again and again; what is void must not pile up."""
        most = 2 * len(self.entries) + _VOID_SPARE
        if len(self._settled) > most:
            self._settled = [note for note in self._settled if self._counts(note[3], note[2])]
            heapq.heapify(self._settled)
        if len(self._due) > most:
            self._due = [note for note in self._due if self._counts(note[2], note[1])]
            heapq.heapify(self._due)

    def _counts(self, key: Key, ticket: int) -> bool:
        entry = self.entries.get(key)
        return entry is not None and entry.ticket == ticket

    def drop(self, key: Key) -> None:
        self.entries.pop(key, None)
        self._incomplete.discard(key)

    def incomplete(self, most: int) -> list[Entry]:
        """The first of those that wait for the rest of their bytes, in the order of their names."""
        return [self.entries[key] for key in heapq.nsmallest(most, self._incomplete)]

    def put_off(self, entry: Entry, now_s: float) -> None:
        """A volume stood in the way: each time in a row it waits twice as long, up to a minute."""
        count = self._penalties[entry.key] = self._penalties.get(entry.key, 0) + 1
        pause_s = min(_BACK_OFF_FIRST_S * 2 ** (count - 1), _BACK_OFF_MOST_S)
        self.sight(replace_waiting(entry, settle.put_off(entry.waiting, now_s + pause_s)), now_s)

    def forgive(self, key: Key) -> None:
        self._penalties.pop(key, None)

    def due(self, now_s: float) -> list[Entry]:
        """Files to look at again now."""
        found = []
        while self._due and self._due[0][0] <= now_s:
            _, ticket, key = heapq.heappop(self._due)
            entry = self.entries.get(key)
            if entry is not None and entry.ticket == ticket:
                found.append(entry)
        return found

    def next_settled(self) -> Entry | None:
        """The settled file whose turn it is; it stays in view until dropped."""
        while self._settled:
            _, _, ticket, key = self._settled[0]
            entry = self.entries.get(key)
            if entry is not None and entry.ticket == ticket:
                return entry
            heapq.heappop(self._settled)
        return None

    def next_look_s(self) -> float | None:
        """When ``due`` will have something; ``None`` for never."""
        return self._due[0][0] if self._due else None


def _waits_for_its_end(entry: Entry) -> bool:
    return entry.waiting.wholeness is Wholeness.PARTIAL and bool(entry.why)


def replace_waiting(entry: Entry, waiting: settle.Waiting) -> Entry:
    return replace(entry, waiting=waiting)


class Handled:
    """Remembers, in bounded memory, which contents need no second look. Forgetting only costs a look-up."""

    def __init__(self, most: int = 500_000) -> None:
        self.marks: set[int] = set()
        self._most = most

    def add(self, folder: int, key: str, identity: Identity) -> None:
        self.add_content(folder, key, identity.content)

    def add_content(self, folder: int, key: str, content: tuple[int, int]) -> None:
        if len(self.marks) < self._most:
            self.marks.add(mark_of(folder, key, content))

    def __contains__(self, what: tuple[int, str, Identity]) -> bool:
        folder, key, identity = what
        return mark_of(folder, key, identity.content) in self.marks

    @property
    def full(self) -> bool:
        return len(self.marks) >= self._most


def mark_of(folder: int, key: str, content: tuple[int, int]) -> int:
    """One number for one content under one key; ``content`` is (size, mtime_ns)."""
    return hash((folder, key, content))


def fresh(folder: int, source: Source, wholeness: Wholeness, arrival: int, now_s: float) -> Entry:
    """The entry of a file that was not in view before."""
    return Entry(folder, source, settle.sight(None, source.identity, wholeness, now_s), arrival, 0)
