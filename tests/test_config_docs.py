"""Room `config`: the JSON Schema and docs/configuration.md say what the settings say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from watcher import config
from watcher.config import presets, problems, reading

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "configuration.md"


TOLD = {"$ref", "$defs", "$schema", "title", "description", "default", "examples", "format"}
CHECKED = {"type", "const", "enum", "anyOf", "minimum", "maximum", "minItems", "maxItems", "items", "prefixItems"}
CHECKED |= {"properties", "required", "additionalProperties"}


def refusals(value: Any, node: dict[str, Any], root: dict[str, Any], path: str = "") -> list[str]:
    """What the schema has against a value: the part of draft 2020-12 that the schema uses, and nothing else."""
    node = {**root["$defs"][node["$ref"].rpartition("/")[2]], **node} if "$ref" in node else node
    unknown = set(node) - TOLD - CHECKED
    assert not unknown, f"the schema uses what this check does not know: {unknown}"
    if "anyOf" in node:
        return [] if any(not refusals(value, each, root) for each in node["anyOf"]) else [f"{path}: none of anyOf"]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
    kind = node.get("type")
    wrong = kind and not isinstance(value, (int, float) if kind == "number" else kinds[kind])
    if wrong or (isinstance(value, bool) and kind in ("integer", "number")):
        return [f"{path}: not {kind}"]
    found = [f"{path}: not {node['const']}"] if "const" in node and value != node["const"] else []
    found += [f"{path}: not one of enum"] if "enum" in node and value not in node["enum"] else []
    if kind in ("integer", "number") and not node.get("minimum", value) <= value <= node.get("maximum", value):
        found.append(f"{path}: out of range")
    if kind == "array":
        if not node.get("minItems", 0) <= len(value) <= node.get("maxItems", len(value)):
            found.append(f"{path}: wrong number of items")
        for index, item in enumerate(value):
            found += refusals(item, node["items"] if "items" in node else node["prefixItems"][index], root, f"{path}[]")
    if kind == "object":
        known = node["properties"]
        found += [f"{path}.{key}: missing" for key in node.get("required", []) if key not in value]
        found += [f"{path}.{key}: unknown" for key in value if key not in known and not node["additionalProperties"]]
        for key in value.keys() & known.keys():
            found += refusals(value[key], known[key], root, f"{path}.{key}")
    return found


def check(text: str) -> list[str]:
    schema = config.schema()
    return refusals(reading.parse(text.encode()).data, schema, schema)


def test_schema_takes_the_shipped_file() -> None:
    """An editor that uses the schema has nothing against the shipped file, nor against what `config show` prints."""
    assert check(config.default_text()) == []
    assert check(config.show(config.load(None))) == []


@pytest.mark.parametrize(
    "text",
    [
        "wtch: {}",
        "watch: {settle_s: '1'}",
        "watch: {settle_s: -1}",
        "folders: []",
        "folders: [{outbox: a}]",
        "folders: [{inbox: a, after: never}]",
        "folders: [{inbox: a, output: {range: [1]}}]",
        "folders: [{inbox: a, recursive: yes}]",
        "api: {enabled: 1}",
    ],
)
def test_schema_refuses_mistakes(text: str) -> None:
    """What the program refuses by type, range or name is refused by the schema too, in the editor."""
    assert check(text)
    assert reading.parse(text.encode()).problems == []


def test_schema_describes_every_key() -> None:
    """Every key carries a description, a good example or a default, and no path of this machine."""
    schema = config.schema()
    for section in [schema, *schema["$defs"].values()]:
        for key, node in section["properties"].items():
            inner = str(node.get("$ref", "")).rpartition("/")[2]
            assert node.get("description") or schema["$defs"][inner]["description"], key
            assert inner or "default" in node or "examples" in node or key == "folders", key
    assert str(Path.home()) not in str(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    schema.clear()
    assert config.schema()


def rows() -> list[str]:
    """The table of keys as the settings have it."""
    schema = config.schema()
    found = ["| key | takes | default | meaning |", "|---|---|---|---|"]

    def below(node: dict[str, Any], path: str) -> None:
        for key, child in node["properties"].items():
            inner = schema["$defs"].get(str(child.get("$ref") or child.get("items", {}).get("$ref")).rpartition("/")[2])
            if inner:
                below(inner, f"{path}{key}[]." if child.get("type") == "array" else f"{path}{key}.")
                continue
            value = reading.one_line("x", child["default"]).removeprefix("x: ") if "default" in child else ""
            shown = f"`{value}`" if value else "required" if key in node.get("required", []) else "beside the inbox"
            found.append(f"| `{path}{key}` | {problems.allowed(child)} | {shown} | {child['description']} |")

    below(schema, "")
    return found


def between(mark: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"<!-- {mark} -->\n\n(.*?)\n\n<!-- end of {mark} -->", text, re.DOTALL)
    assert found, f"docs/configuration.md has lost its mark {mark}"
    return found[1].splitlines()


def test_table_of_keys() -> None:
    """The table in docs/configuration.md is the one that the settings give, row by row."""
    assert between("keys") == rows(), "\n".join(rows())


def test_table_of_presets() -> None:
    """The presets in docs/configuration.md are the ones that the program has, with the same output keys."""
    told = {}
    for row in between("presets")[2:]:
        name, keys, *_ = [cell.strip().replace("`", "") for cell in row.strip("|").split("|")]
        told[name] = yaml.safe_load(f"{{{keys}}}")
    assert told == {name: dict(bundle) for name, bundle in presets.PRESETS.items()}


def test_page_names_the_places() -> None:
    """The page tells the search order and what a lone inbox gets, in the words that the program uses."""
    text = PAGE.read_text(encoding="utf-8")
    for word in ("--config", "$DEPTH_WATCHER_CONFIG", "./config.yaml", "drop-outbox", "$$"):
        assert word in text
