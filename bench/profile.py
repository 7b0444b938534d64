"""Profile: where the processor goes function by function, in the published procedure and in the path of a frame.

``python -m bench.profile`` prints it and writes it into docs/performance.md. It needs py-spy (``pip install py-spy``),
which looks at every thread from outside and pauses none of them for long; on a Mac it wants to be root.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench import pages, pictures, place, streams

FRAMES, LOOKS_A_SECOND = 200, 500
SHOWN_FROM_MS = 0.2  # what costs less of a frame is added up
_LOOP, _OURS = "loop", ("loader", "engine", "finisher", "intake")


def profiled(mode: str, where: place.Place, **task: Any) -> list[tuple[list[str], int]]:
    """(calls from the outermost to the innermost, times that they were seen running) of a task of bench.child."""
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    if spy is None:
        raise SystemExit("py-spy is not installed here. Install it (pip install py-spy) and ask again.")
    found = where.root / "profile.txt"
    look = [spy, "record", "--format", "raw", "--threads", "--function", "--nonblocking", "--full-filenames"]
    what = [sys.executable, "-m", "bench.child", mode, json.dumps(task, default=str)]
    subprocess.run(
        [*look, "--rate", str(LOOKS_A_SECOND), "--output", str(found), "--", *what],
        env=where.env(),
        cwd=where.root,
        check=True,
        capture_output=True,
        timeout=600,
    )
    return stacks(found.read_text(encoding="utf-8"))


def stacks(text: str) -> list[tuple[list[str], int]]:
    """The lines of a raw profile: calls with ``;`` between them, then how often they were seen."""
    found = []
    for line in text.splitlines():
        calls, _, times = line.rpartition(" ")
        found.append((calls.split(";"), int(times)))
    return found


def by_function(seen: list[tuple[list[str], int]], kinds: tuple[str, ...]) -> Counter[tuple[str, str]]:
    """Times that each (kind of thread, innermost function of ours and what it called) was seen."""
    found: Counter[tuple[str, str]] = Counter()
    for calls, times in seen:
        kind = next((kind for kind in kinds if kind in calls[0] or any(call.startswith(kind) for call in calls)), None)
        if kind is not None:
            found[kind, innermost(calls)] += times
    return found


def innermost(calls: list[str]) -> str:
    """The last call into our own code, and what it called outside of it."""
    own = max((at for at, call in enumerate(calls) if "/watcher/" in call or "/bench/" in call), default=0)
    text = named(calls[own])
    return f"{text} → {named(calls[own + 1])}" if own + 1 < len(calls) else text


def named(call: str) -> str:
    """``function (/a/b/watcher/room.py)`` as ``room.function``."""
    function, _, file = call.partition(" (")
    path = Path(file.rstrip(")"))
    room = path.parent.name if path.stem == "__init__" else path.stem
    return f"{room}.{function}".lstrip(".")


def told(seen: Counter[tuple[str, str]], frames: int) -> list[str]:
    """Lines of the table, the dearest first."""
    costs = {key: 1000 * times / LOOKS_A_SECOND / frames for key, times in seen.items()}
    lines = [
        f"{kind} | `{function}` | {ms:.1f}"
        for (kind, function), ms in sorted(costs.items(), key=lambda item: -item[1])
        if ms >= SHOWN_FROM_MS
    ]
    rest = sum(ms for ms in costs.values() if ms < SHOWN_FROM_MS)
    return [*lines, f"all | everything else | {rest:.1f}", f"all | together | {sum(costs.values()):.1f}"]


def main() -> None:
    picture = streams.picture("1080p.jpg")
    with place.place() as where:
        pictures.fill(where.inbox, picture, FRAMES)
        seen = profiled("loop", where, inbox=where.inbox, outbox=where.outbox, model=streams.trivial())
        before = by_function(seen, (_LOOP,))
    with place.place() as where:
        config = where.lay_out(streams.trivial())
        pictures.fill(where.inbox, picture, FRAMES)
        after = by_function(profiled("path", where, config=config), _OURS)
    head = "thread | function, and what it calls | ms a frame"
    text = f"The published procedure (the baseline `loop`):\n\n{pages.rows(head, told(before, FRAMES))}\n\n"
    text += f"The path of a frame:\n\n{pages.rows(head, told(after, FRAMES))}\n\n"
    text += f"1080p JPEG, trivial network, {FRAMES} frames, {LOOKS_A_SECOND} looks a second by py-spy; "
    text += "what waits for a processor counts as running, "
    text += "so these are shares, not milliseconds of processor."
    print(text)
    pages.put(pages.DOCS / "performance.md", "profile", text)


if __name__ == "__main__":
    main()
