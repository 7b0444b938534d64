"""YAML in, plain values out, with the line of every key; and back.

Plain words are read as YAML 1.2 reads them: only ``true`` and ``false`` are switches, ``yes``, ``no``, ``on`` and
``off`` are words, ``1e3`` is a number and ``1:30`` is not. A key that is given twice is a mistake, not a replacement.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from watcher.errors import ConfigError, ExitCode, explain

KeyPath = tuple[str | int, ...]

_MAX_BYTES = 1 << 20  # the shipped file has 5 kB; a video named by mistake is not read into memory
_MAX_NODES = 20_000  # aliases of aliases can mean billions of values in a few lines
PATH_KEYS = frozenset({"inbox", "outbox", "processed", "failed", "dir", "state_dir"})

_PLAIN: tuple[tuple[str, str, str], ...] = (
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, first in _PLAIN:
        for letter in first:
            table.setdefault("" if letter == "\0" else letter, []).append((tag, re.compile(f"^(?:{pattern})$")))
    return table


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = _resolvers()


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers = _resolvers()


@dataclass(frozen=True)
class Problem:
    """One mistake: the line (0: no line, it came from the command line or a default), the key, and the words."""

    line: int
    path: KeyPath
    text: str


@dataclass
class Document:
    """What a file says. ``lines`` holds the line (from 1) of each key path; ``typed`` what came from overrides.

    ``lost`` holds the paths whose value could not be read, for a reason that ``problems`` tells.
    """

    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    typed: set[KeyPath] = field(default_factory=set)
    lost: set[KeyPath] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True

    def line_of(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest thing around it that has one; 0 where there is none."""
        while path:
            if path in self.typed:
                return 0
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return 0

    def refuse(self, line: int, text: str, path: KeyPath = ()) -> None:
        self.problems.append(Problem(line, path, text))


class ConfigAway(ConfigError):
    """The settings cannot be read now, and may well be later: a permission, a volume, a file in iCloud."""

    exit_code = ExitCode.TRY_LATER


def read(path: Path) -> Document:
    """The document in a file. What is wrong with its syntax lands in ``problems``, not in an exception.

    Raises ``ConfigError`` when the file cannot be read at all.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        what, remedy = explain(error)
        lasting = isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError))
        kind = ConfigError if lasting else ConfigAway
        raise kind(f"The configuration cannot be read: {what}", remedy) from error
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"{path} is too large for a configuration file", "Name a YAML file with --config.")
    return parse(content)


@functools.lru_cache(maxsize=1)  # a verb that looks reads one file twice: a glimpse first, the whole check after it
def _composed(content: bytes) -> yaml.Node | None:
    return yaml.compose(content, Loader=_Loader)


def parse(content: bytes) -> Document:
    """The document in the bytes of a file (UTF-8, or UTF-16 with its mark)."""
    document = Document()
    try:
        root = _composed(content)
    except yaml.reader.ReaderError as error:
        position = error.position if isinstance(error.position, int) else 0
        line = content[:position].count(b"\n") + 1
        document.readable = False
        document.refuse(line, f"this is not text in UTF-8 ({error.reason}); save the file as UTF-8")
        return document
    except yaml.MarkedYAMLError as error:
        document.readable = False
        document.refuse(*_syntax(error))
        return document
    except RecursionError:
        document.readable = False
        document.refuse(1, "brackets within brackets without end; for example: watch: {settle_s: 0.5}")
        return document
    if root is None or (isinstance(root, yaml.ScalarNode) and root.tag.endswith(":null")):
        return document
    if not isinstance(root, yaml.MappingNode):
        document.readable = False
        document.refuse(root.start_mark.line + 1, "keys with values belong here, for example: state_dir: null")
        return document
    document.data = _Walk(document).mapping(root, ())
    return document


def _syntax(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or "this cannot be read"
    if "'\\t'" in problem:
        problem = "a tab stands where spaces belong"
    elif "mapping values are not allowed" in problem:
        problem = 'a colon stands where none belongs; check the indentation, or put the text in "quotes"'
    elif "but found another document" in problem:
        problem = "a second document begins here; a configuration is one document, without ---"
    context = f" ({error.context})" if error.context else ""
    return (mark.line + 1 if mark else 1), f"not valid YAML: {problem}{context}; for example: watch: {{settle_s: 0.5}}"


class _Walk:
    """From YAML nodes to plain values; remembers lines, refuses what a settings file has no use for."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: set[int] = set()
        self._nodes = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self._nodes += 1
        line = node.start_mark.line + 1
        if self._nodes > _MAX_NODES or id(node) in self._open:
            if self._nodes <= _MAX_NODES + 1:
                self._document.refuse(line, "aliases that lead in circles or to endless values; write them out", path)
            self._document.lost.add(path)
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self.mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self._item(child, (*path, index)) for index, child in enumerate(node.value)]
            return self._scalar(node, path)
        finally:
            self._open.discard(id(node))

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, child in node.value:
            line = key.start_mark.line + 1
            if key.tag.endswith(":merge"):
                merged = {**merged, **self._merge(child, path)}
                continue
            if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith(":str"):
                self._document.refuse(line, "a key has to be a word, for example: watch: {settle_s: 0.5}", path)
                continue
            here = (*path, key.value)
            if key.value in found:
                first = self._document.lines[here]
                self._document.refuse(line, f"this key is given twice, first on line {first}; keep one", here)
                continue
            self._document.lines[here] = line
            found[key.value] = self.value(child, here)
        return {**merged, **found}

    def _item(self, node: yaml.Node, path: KeyPath) -> Any:
        self._document.lines[path] = node.start_mark.line + 1
        return self.value(node, path)

    def _merge(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        parts = list(reversed(node.value)) if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in parts:
            value = self.value(part, (*path, "<<"))
            if isinstance(value, dict):
                merged |= value
            else:
                line = node.start_mark.line + 1
                self._document.refuse(line, "<< takes in an alias of a section, for example: <<: *base", path)
        return merged

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        text, kind = str(node.value), node.tag.removeprefix("tag:yaml.org,2002:")
        if kind == "str":
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        try:
            if kind == "int":
                return _whole(text.replace("_", ""))
            if kind == "float":
                return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            kind = node.tag
        self._document.lost.add(path)
        self._document.refuse(node.start_mark.line + 1, f"a tag such as {kind} has no meaning here; leave it out", path)
        return None


def _whole(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text, base)


def dump(values: dict[str, Any]) -> str:
    """Settings as YAML that reads back to the same settings."""
    return yaml.dump(_escaped(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def one_line(key: str, value: Any) -> str:
    """``key: value`` as it would be written in the file."""
    text = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, default_flow_style=True, width=1000)
    return f"{key}: {text.removesuffix('...' + chr(10)).strip()}"


def _escaped(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _escaped(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_escaped(inner, key) for inner in value]
    is_path = key in PATH_KEYS or (key in ("name", "file") and "/" in str(value))
    return value.replace("$", "$$") if is_path and isinstance(value, str) else value
