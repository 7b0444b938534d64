"""The table of docs/performance.md, and the machine that it was measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench import pages
from bench.rows import Found

RUNS_KEPT = 3
BY = "make bench"
_LIBRARIES = ("onnxruntime", "opencv-python-headless", "opencv-python", "numpy", "pillow", "isal", "watchdog")


def number(value: float) -> str:
    """Three figures that mean something."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def spread(found: Found) -> str:
    return f"{number(min(found.values))} … {number(max(found.values))}" if len(found.values) > 1 else "–"


def line(found: Found) -> str:
    """One row for the terminal."""
    row = found.row
    return f"{row.name:15} {number(found.middle):>7} {row.unit:4} ({spread(found)})  goal {row.goal}  {found.mark}"


def rendered(found: list[Found], took_min: float) -> str:
    """The whole block, as Markdown."""
    lines = ["| row | what | goal | median | spread | |", "|---|---|---|---|---|---|"]
    for one in found:
        row = one.row
        values = (
            f"`{row.name}`",
            row.what,
            _goal(one),
            f"{number(one.middle)} {row.unit}",
            spread(one),
            one.mark,
        )
        lines.append(f"| {' | '.join(values)} |")
    return "\n".join([*lines, "", f"{machine()} All of it took {took_min:.0f} minutes.", ""])


def runs(page: Path, found: list[Found]) -> str:
    """The medians of the newest runs side by side, this one last; those before are taken from the page itself."""
    kept = pages.between(page, "runs", BY).splitlines()
    before = [[cell.strip() for cell in line.strip("|").split("|")] for line in kept]
    moments, medians = before[0][2:] if before else [], {cells[0]: cells[2:] for cells in before[2:]}
    moments = [*moments, f"{datetime.now(UTC):%Y-%m-%d %H:%M}"]
    lines = [["row", "goal", *moments[-RUNS_KEPT:]], ["---"] * (2 + len(moments[-RUNS_KEPT:]))]
    for one in found:
        name, median = f"`{one.row.name}`", f"{number(one.middle)} {one.row.unit}"
        past = medians.get(name, ["–"] * (len(moments) - 1))
        lines.append([name, _goal(one), *[*past, f"**{median}**" if "short" in one.mark else median][-RUNS_KEPT:]])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _goal(found: Found) -> str:
    return f"{found.row.goal} {found.row.unit}" if found.row.goal != "–" else "–"


def machine() -> str:
    """What it was measured on, and when, and how busy that was."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC on {_processor()}, {os.cpu_count()} cores, {_memory()}, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}; {', '.join(_versions())}. "
        f"Load of the machine over 1, 5 and 15 minutes at the end: {load}."
    )


def _processor() -> str:
    try:
        for text in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if text.startswith("model name"):
                return text.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> str:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{pages * size / (1 << 30):.0f} GiB"


def _versions() -> list[str]:
    found = []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except ImportError:
            continue
    return found


def put(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the two marks of ``name``; everything else on the page stays."""
    pages.put(page, name, text, BY)
