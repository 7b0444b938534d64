"""Tables inside pages: each stands between two marks that say which command writes it."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
CORPUS = Path(__file__).parents[1] / ".." / "shared" / "corpus"


def marks(name: str, by: str = "") -> tuple[str, str]:
    """The two marks of ``name``; ``by``: the command that writes it, by default the module of that name."""
    return f"<!-- {name} begin: written by `{by or f'python -m bench.{name}'}` -->", f"<!-- {name} end -->"


def put(page: Path, name: str, text: str, by: str = "") -> None:
    """Put ``text`` between the two marks of ``name``; everything else on the page stays."""
    begin, end = marks(name, by)
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no place for {name}: {begin} … {end}")
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def between(page: Path, name: str, by: str = "") -> str:
    """What stands between the two marks of ``name``; empty where there are none."""
    begin, end = marks(name, by)
    return page.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0].strip()


def rows(head: str, lines: list[str]) -> str:
    """A Markdown table; ``head`` and each of ``lines`` without the outer bars."""
    columns = head.count(" | ") + 1
    return "\n".join([f"| {head} |", "|---" * columns + "|", *(f"| {line} |" for line in lines)])
