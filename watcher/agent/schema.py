"""What a plist may hold: one judge for each kind of value. A judge answers with a mistake in words, or "".

launchd ignores keys that it does not know and values of a wrong type, without a word: a slip of the pen would only be
noticed as a Mac that behaves oddly. So what is not listed is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Judge = Callable[[Any], str]


def absolute(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        return "has to be an absolute path: launchd expands neither ~ nor variables"
    return "holds a control character" if any(ord(char) < 32 or ord(char) == 127 for char in value) else ""


def one_of(*allowed: Any) -> Judge:
    def check_value(value: Any) -> str:
        same = any(value == one and type(value) is type(one) for one in allowed)
        return "" if same else f"has to be {' or '.join(map(repr, allowed))}"

    return check_value


def whole(least: int, most: int) -> Judge:
    def check_value(value: Any) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return "" if good else f"has to be a whole number from {least} to {most}"

    return check_value


def program(value: Any) -> str:
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(item, str) and item for item in value):
        return "has to be a list of strings"
    unfit = any(ord(char) < 32 or ord(char) == 127 for item in value for char in item)
    return "holds a control character" if unfit else absolute(value[0])


def environment(value: Any) -> str:
    good = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return "" if good else "has to hold strings only: launchd drops anything else"


def umask(value: Any) -> str:
    good = isinstance(value, str) and re.fullmatch(r"0[0-7]{2,3}", value)
    return "" if good else "has to be an octal string such as '077'"


def within(**schema: Judge) -> Judge:
    def check_value(value: Any) -> str:
        if not isinstance(value, dict):
            return "has to be a dictionary"
        return "; ".join(problems(value, schema))

    return check_value


def places(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return "has to be a list of absolute paths"
    return next((why for item in value if (why := absolute(item))), "")


def problems(values: Mapping[str, Any], schema: Mapping[str, Judge]) -> list[str]:
    """One line for each mistake; every key of ``schema`` has to be there, and no other."""
    found = [f"{key}: no such key is used here" for key in values if key not in schema]
    found += [f"{key}: is missing" for key in schema if key not in values]
    for key, judge in schema.items():
        if key in values and (why := judge(values[key])):
            found.append(f"{key}: {why}")
    return found
