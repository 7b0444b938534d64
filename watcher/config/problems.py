"""Mistakes in words: what was found, what belongs there, and a good example. The JSON Schema knows both."""

from __future__ import annotations

import difflib
import json
from functools import cache
from typing import Any

from pydantic import ValidationError

from watcher.config.reading import Document, KeyPath, Problem, one_line
from watcher.config.settings import Settings

_LISTED = 8


@cache
def _schema_text() -> str:
    schema = Settings.model_json_schema()
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "depth-watcher configuration",
    }
    return json.dumps(schema)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the settings; a fresh copy at each call."""
    schema: dict[str, Any] = json.loads(_schema_text())
    return schema


def spell(error: ValidationError, document: Document) -> list[Problem]:
    """One problem for each key that the validation refused."""
    found: dict[KeyPath, Problem] = {}
    for detail in error.errors(include_url=False):
        if detail["type"] == "default_factory_not_called" or (detail["type"] == "too_short" and detail["input"]):
            continue  # follows from another mistake, which is told: a refused entry is not counted
        loc: KeyPath = detail["loc"]
        if any(loc[:length] in document.lost for length in range(1, len(loc) + 1)):
            continue  # the reading has told why there is no value
        if detail["type"] == "extra_forbidden":
            path, text = loc, _unknown(loc)
        elif detail["type"] == "missing" and loc[-1] in locate(loc[:-1])[1].get("properties", {}):
            path, text = loc, f"is missing{_example(loc)}"
        else:
            path, node = locate(loc)
            reason = detail.get("ctx", {}).get("error")
            belongs = f": {reason}" if reason else f", but {allowed(node)} belongs here"
            value = _at(document.data, path)
            text = f"found {_found(value)}{belongs}{_meant(value, node)}{_example(path)}"
        found.setdefault(path, Problem(document.line_of(path), path, text))
    return list(found.values())


def render(problems: list[Problem]) -> tuple[str, ...]:
    """Printable lines in the order of the file: ``line 3: watch.settle_s: found …``."""
    lines = []
    for problem in sorted(problems, key=lambda each: each.line):
        where = [f"line {problem.line}"] if problem.line else []
        text = problem.text.replace("?; for example", "? For example")
        lines.append(": ".join([*where, *([dotted(problem.path)] if problem.path else []), text]))
    return tuple(dict.fromkeys(lines))


def dotted(path: KeyPath) -> str:
    """``folders[0].output.name``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def locate(loc: KeyPath) -> tuple[KeyPath, dict[str, Any]]:
    """(key path, schema) of the deepest setting on the way of ``loc``; steps into the parts of a value are dropped."""
    root = json_schema()
    node, depth = _resolved(root, root), 0
    for step in loc:
        below = node.get("items") if isinstance(step, int) else node.get("properties", {}).get(step)
        if not isinstance(below, dict):
            break
        node, depth = _resolved(below, root), depth + 1
    return loc[:depth], node


def _resolved(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    name = str(node.get("$ref", "")).rpartition("/")[2]
    return {**root["$defs"][name], **node} if name else node


def allowed(node: dict[str, Any]) -> str:
    """What a setting takes, in words, from its schema."""
    if "anyOf" in node:
        return _either([word for each in node["anyOf"] for word in each.get("enum", [allowed(each)])])
    if "const" in node:
        return json.dumps(node["const"]).strip('"')
    if "enum" in node:
        return _either([str(each) for each in node["enum"]])
    kind = node.get("type")
    if kind == "array":
        return "[number, number]" if "prefixItems" in node else f"a list of {_plural(node)}"
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _bounds(node)
    if kind == "object":
        return _section(node)
    words = {"boolean": "true or false", "null": "null", "string": "text"}
    return "a path" if node.get("format") == "path" else words.get(str(kind), "something else")


def _section(node: dict[str, Any]) -> str:
    if node.get("required") == list(node.get("properties", {})):
        return "{" + ", ".join(f"{key}: {allowed(child)}" for key, child in node["properties"].items()) + "}"
    return f"a section with keys ({', '.join(node.get('properties', {}))})"


def _plural(node: dict[str, Any]) -> str:
    if "enum" in node["items"]:
        return "them"
    return "texts" if node["items"].get("type") == "string" else "entries, each beginning with '- inbox:',"


def _bounds(node: dict[str, Any]) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    return "" if low is None or high is None else f" from {low:g} to {high:,}".replace(",", "_")


def _either(parts: list[str]) -> str:
    return " or ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def _found(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a section with keys"
    if isinstance(value, list):
        return "a list" if len(value) > _LISTED or not _flat(value) else json.dumps(value, ensure_ascii=False)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:76]}…"


def _flat(value: list[Any]) -> bool:
    return not any(isinstance(each, (dict, list)) for each in value)


def _meant(value: Any, node: dict[str, Any]) -> str:
    words = [str(each) for part in [node, *node.get("anyOf", [])] for each in part.get("enum", [])]
    close = difflib.get_close_matches(str(value).lower(), words, 1, 0.6) if isinstance(value, str) else []
    folded = {word.lower(): word for word in words}
    meant = folded.get(str(value).lower()) or (close[0] if close else "")
    return f"; did you mean {meant}?" if meant else ""


def _example(path: KeyPath) -> str:
    while path and isinstance(path[-1], int):
        path = path[:-1]  # the example of a list is the whole list
    _, node = locate(path)
    key = next((step for step in reversed(path) if isinstance(step, str)), "")
    if node.get("examples"):
        value = node["examples"][0]
    elif "default" in node:
        value = node["default"]
    elif node.get("properties"):
        value = {name: each["default"] for name, each in node["properties"].items() if "default" in each}
        value = dict(list(value.items())[:1]) or {"inbox": "~/DepthWatcher/inbox"}
    else:
        value = [{"inbox": "~/DepthWatcher/inbox"}]
    return f"; for example: {one_line(key, value)}" if key else ""


def _unknown(path: KeyPath) -> str:
    name = str(path[-1])
    _, node = locate(path[:-1])
    beside = list(node.get("properties", {}))
    if close := difflib.get_close_matches(name.lower(), beside, 1, 0.6):
        return f"unknown key; did you mean {close[0]}?{_example((*path[:-1], close[0]))}"
    if homes := _homes(name):
        return f"unknown key here; it belongs at {' or '.join(homes)}"
    return f"unknown key; what belongs here: {', '.join(beside)}{_example((*path[:-1], *beside[:1]))}"


def _homes(name: str) -> list[str]:
    """Every other place where a key of this name exists."""
    root = json_schema()

    def below(node: dict[str, Any], path: str) -> list[str]:
        node = _resolved(node, root)
        node = _resolved(node["items"], root) if isinstance(node.get("items"), dict) else node
        found = []
        for key, child in node.get("properties", {}).items():
            found += [f"{path}{key}"] if key == name else []
            found += below(child, f"{path}{key}[…]." if child.get("type") == "array" else f"{path}{key}.")
        return found

    return below(root, "")


def _at(data: Any, path: KeyPath) -> Any:
    for step in path:
        try:
            data = data[step]
        except (LookupError, TypeError):
            return None
    return data
