"""``python -m bench`` measures and writes all of docs/performance.md; ``python -m bench ROW…`` measures some rows."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from bench import difference, place, plots, profile, table, threads
from bench.rows import ROWS, Found, Row

PAGE = place.PROJECT / "docs" / "performance.md"


def measured(row: Row, rounds: int | None) -> Found | None:
    """One row, told as it goes; ``None`` where this machine cannot measure it."""
    began = time.perf_counter()
    try:
        found = Found(row, row.measure(rounds or row.rounds))
    except (OSError, RuntimeError, TimeoutError) as error:
        print(f"{row.name:15} not measured: {error}", flush=True)
        return None
    took_s = time.perf_counter() - began
    print(f"{table.line(found)}  [{took_s:.0f} s]", flush=True)
    return found


def beside_the_table() -> None:
    """What the page says besides: by threads, by function, and the default against ``reference``."""
    for part in (threads, profile, difference):
        began = time.perf_counter()
        try:
            with contextlib.redirect_stdout(None):
                part.main()
        except (SystemExit, OSError, RuntimeError) as error:
            print(f"{part.__name__:15} not measured: {error}", flush=True)
        else:
            print(f"{part.__name__:15} written  [{time.perf_counter() - began:.0f} s]", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the program against its baselines.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="only these rows; nothing is written to the page")
    parser.add_argument("--rounds", type=int, help="rounds of every row, instead of its own number")
    parser.add_argument("--list", action="store_true", help="name the rows")
    parser.add_argument("--plots", action="store_true", help="only the pictures of the page")
    asked = parser.parse_args()
    known = {row.name: row for row in ROWS}
    unknown = [name for name in asked.rows if name not in known]
    if asked.list or unknown:
        print("\n".join(f"{row.name:15} {row.goal:8} {row.unit:5} {row.what}" for row in ROWS))
        return 2 if unknown else 0
    if asked.plots:
        plots.draw_all(PAGE)
        return 0
    began = time.perf_counter()
    wanted = [known[name] for name in asked.rows] or ROWS
    found = [one for one in (measured(row, asked.rounds) for row in wanted) if one is not None]
    if not asked.rows:
        plots.draw_all(PAGE)
        beside_the_table()
        took_min = (time.perf_counter() - began) / 60
        table.put(PAGE, "table", table.rendered(found, took_min))
        table.put(PAGE, "runs", table.runs(PAGE, found))
        print(f"\nwritten: {PAGE.relative_to(place.PROJECT)}, after {took_min:.0f} minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
