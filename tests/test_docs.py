"""The documentation is true: every link leads somewhere, and every example marked ``<!-- run -->`` does what it shows.

An example is a fenced block right after that mark. ``console``: each line after ``$ `` is run by the shell in a home
of its own that holds the example pictures as ``photos/``; it must end with 0 (or N, after ``<!-- run exit=N -->``),
and the lines under it must appear in what it prints, in this order, where ``…`` stands for anything. ``python``: the
block is run as it stands. ``yaml``: the block passes ``config check``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PROJECT, Home, command

PAGES = [
    page
    for page in sorted({*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md"), *PROJECT.glob("*/README.md")})
    if not page.relative_to(PROJECT).parts[0].startswith(".")
]
MARKED = re.compile(r"<!-- run(?: exit=(\d+))? -->\s*\n```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!\\)\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|<(?:img|a)\b[^>]*\b(?:src|href)=\"([^\"]+)\"")
KINDS = ("console", "python", "yaml")


@dataclass(frozen=True)
class Example:
    page: str
    line: int
    kind: str
    text: str
    exit_code: int

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def examples(page: str, text: str) -> list[Example]:
    """The marked examples of a page."""
    return [
        Example(page, text.count("\n", 0, m.start()) + 1, m[2], m[3], int(m[1] or 0)) for m in MARKED.finditer(text)
    ]


def steps(text: str) -> list[tuple[str, list[str]]]:
    """(command, the lines shown under it) for each ``$`` line of a console block."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        elif line.strip() and found:
            found[-1][1].append(line.rstrip())
    return found


def shown_in(shown: list[str], printed: str) -> str:
    """The first shown line that was not printed in its turn; empty where all were."""
    lines = iter(printed.splitlines())
    for line in shown:
        pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
        if line.strip() != "…" and not any(re.fullmatch(pattern, printed_line.strip()) for printed_line in lines):
            return line
    return ""


def anchors(text: str) -> set[str]:
    """The anchors that a page offers, by the rule that the usual viewers follow for headings."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+\s+(.*?)\s*#*$", prose, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain} | set(
        re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)
    )


def dead_links(page: Path) -> list[str]:
    """The links of a page that lead nowhere inside the project. Addresses of the outside world are not visited."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    dead = []
    for link in (m[1] or m[2] for m in LINK.finditer(prose)):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        there = target.is_relative_to(PROJECT) and target.exists()
        if there and anchor and target.suffix == ".md":
            there = anchor in anchors(target.read_text(encoding="utf-8"))
        if not there:
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links(page: Path) -> None:
    """Every link of the documentation leads to a file or a heading of the project."""
    assert dead_links(page) == []


EXAMPLES = [e for page in PAGES for e in examples(str(page.relative_to(PROJECT)), page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_example(example: Example, home: Home) -> None:
    """Every example of the documentation does what it shows, in an empty home, with the installed command."""
    assert example.kind in KINDS, f"no way to run a block of {example.kind}"
    shutil.copytree(PROJECT / "examples/inbox", home.path / "photos")
    if example.kind == "console":
        _run_console(example, home)
    elif example.kind == "python":
        _run([sys.executable, "-c", example.text], example, home)
    else:
        (home.path / "example.yaml").write_text(example.text, encoding="utf-8")
        _run([command(), "config", "check", "--config", "example.yaml"], example, home)


def _run_console(example: Example, home: Home) -> None:
    script = steps(example.text)
    assert script, f"{example}: no line begins with '$ '"
    for line, shown in script:
        printed = _run(["/bin/sh", "-c", line], example, home)
        missing = shown_in(shown, printed)
        assert not missing, f"{example}: {line}\nnot printed (in its turn): {missing}\nprinted:\n{printed}"


def _run(line: list[str], example: Example, home: Home) -> str:
    done = subprocess.run(
        line,
        cwd=home.path,
        env=home.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    assert done.returncode == example.exit_code, f"{example}: ended with {done.returncode}\n{done.stdout}"
    return done.stdout


def test_dependencies_are_explained() -> None:
    """docs/dependencies.md has a row for each package that is asked for, with every version that is locked."""
    asked = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = asked["dependency-groups"]
    names = {re.split(r"[<>=;\s]", line)[0].lower() for line in [*asked["project"]["dependencies"], *groups["dev"]]}
    lock = (PROJECT / "requirements-dev.lock").read_text(encoding="utf-8")
    rows = [line.lower() for line in (PROJECT / "docs/dependencies.md").read_text(encoding="utf-8").splitlines()]
    for name in names | {"hatchling"}:
        versions = re.findall(
            rf"^{re.escape(name)}==([\d.]+?)(?:\.\d{{8}})?[ ;]", lock, re.MULTILINE
        )  # stubs carry a date
        mine = [row for row in rows if row.startswith("|") and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", row)]
        assert versions, f"{name} is not locked"
        assert any(all(v in row for v in versions) for row in mine), (name, versions)


# --- the checks themselves ------------------------------------------------------------------------------------------


def test_collector() -> None:
    """Marked blocks are found with their line, kind and expected ending; unmarked ones are not."""
    page = (
        "# T\n\n<!-- run exit=2 -->\n```console\n$ a\nb\n```\n\n```console\n$ c\n```\n<!-- run -->\n```python\nd\n```\n"
    )
    first, second = examples("x.md", page)
    assert (first.line, first.kind, first.exit_code, steps(first.text)) == (3, "console", 2, [("a", ["b"])])
    assert (second.kind, second.text, second.exit_code) == ("python", "d\n", 0)


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (["a", "c"], ""),
        (["a … z"], ""),
        (["…", "c"], ""),
        (["c", "a"], "a"),
        (["a"] * 2, "a"),
        (["b"], "b"),
    ],
)
def test_shown_lines(shown: list[str], missing: str) -> None:
    """Shown lines must be printed, whole and in order; an ellipsis stands for anything."""
    assert shown_in(shown, "a\n  a to z\nbb\nc\n") == missing


def test_example_that_lies(home: Home) -> None:
    """An example whose command fails, or prints something else, fails the suite."""
    for text in ("$ exit 3\n", "$ echo one\ntwo\n"):
        with pytest.raises(AssertionError):
            _run_console(Example("x.md", 1, "console", text, 0), home)


def test_dead_links_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A link to a missing file, a missing heading or out of the project is reported; code and the outside are not."""
    monkeypatch.setattr(sys.modules[__name__], "PROJECT", tmp_path)
    (tmp_path / "b.md").write_text("## What it's *for*\n", encoding="utf-8")
    page = tmp_path / "a.md"
    page.write_text(
        "[ok](b.md) [ok](b.md#what-its-for) [x](c.md) [y](b.md#no) [z](../z) `[code](d.md)` [web](https://example.org)"
        '\n<img src="no.png">\n```\n[in](e.md)\n```\n',
        encoding="utf-8",
    )
    assert dead_links(page) == ["c.md", "b.md#no", "../z", "no.png"]
