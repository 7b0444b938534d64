"""The kinds of value that need more than a type: paths, name templates, ranges, addresses.

Every refusal is a ``ValueError`` whose words complete the sentence "found X: …".
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from watcher.config.paths import expand

FIELDS = ("stem", "name", "ext", "model", "frame")


def _base(info: ValidationInfo) -> Path:
    return (info.context or {}).get("base") or Path.cwd()


def _path(value: object, info: ValidationInfo) -> object:
    return expand(value, _base(info)) if isinstance(value, str) else value


def _log_file(value: object, info: ValidationInfo) -> object:
    return value if value == "auto" else _path(value, info)


def checked_model(value: str, info: ValidationInfo) -> str:
    if "/" in value or value.startswith("~") or value.lower().endswith(".onnx"):
        return str(expand(value, _base(info)))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        raise ValueError("a model is auto, a name of the catalogue, or the path of an .onnx file")
    return value


def checked_template(value: str) -> str:
    try:
        parts = list(Formatter().parse(value))
    except ValueError as error:
        raise ValueError(f"the braces do not match ({error}); a plain brace is written twice") from None
    names = [field for _, field, _, _ in parts if field is not None]
    for _, field, form, conversion in parts:
        if field is not None and (field not in FIELDS or form or conversion):
            known = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise ValueError(f"{{{field}{':' if form else ''}{form}}} is not a field; the fields are {known}")
    plain = "".join(text for text, *_ in parts)
    if not {"stem", "name"} & set(names):
        raise ValueError("without {stem} or {name} all maps would have one name")
    if any(sign in plain for sign in "/\\:") or not plain.isprintable():
        raise ValueError("a name cannot hold / \\ : or control characters")
    if value.format_map({**dict.fromkeys(FIELDS, ""), "stem": "s", "name": "n"}).startswith("."):
        raise ValueError("a name that can start with a dot is hidden")
    return value


def _rising(value: Any) -> Any:
    pair = value.percentile if isinstance(value, Percentile) else value
    if isinstance(pair, tuple) and pair[0] >= pair[1]:
        raise ValueError("the first number has to be smaller than the second")
    return value


def as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


_Percent = Annotated[float, Field(ge=0, le=100)]


class Percentile(BaseModel):
    """Percentages (0..100) of a map's values, the first smaller than the second."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    percentile: Annotated[tuple[_Percent, _Percent], BeforeValidator(as_tuple)]


def _apart(value: Any) -> Any:
    """Files of one map differ only by what follows the last dot."""
    if isinstance(value, str):
        return value
    if not value:
        raise ValueError("at least one format has to be named")
    families = [name.rstrip("0123456789f") for name in value]
    twins = [name for name, family in zip(value, families, strict=True) if families.count(family) > 1]
    if twins:
        raise ValueError(f"{' and '.join(twins)} would be one file")
    return value


def checked_address(value: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+\S*", value):
        raise ValueError("a base address begins with https:// or http://, then names a machine")
    return value


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


def checked_host(value: str) -> str:
    if value != "localhost":
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise ValueError("this has to be an address in numbers, or localhost") from None
    return value


AnyPath = Annotated[Path, BeforeValidator(_path), WithJsonSchema({"type": "string", "format": "path"})]
LogFile = Annotated[
    Path | Literal["auto"],
    BeforeValidator(_log_file),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "string", "format": "path"}]}),
]
_PAIR = {"type": "array", "prefixItems": [{"type": "number"}] * 2, "minItems": 2, "maxItems": 2}
_PERCENT = {"type": "number", "minimum": 0, "maximum": 100}
Range = Annotated[
    Literal["frame", "shot", "shot-live"] | tuple[float, float] | Percentile,
    BeforeValidator(as_tuple),
    AfterValidator(_rising),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["frame", "shot", "shot-live"]},
                _PAIR,
                {
                    "type": "object",
                    "properties": {"percentile": {**_PAIR, "prefixItems": [_PERCENT] * 2}},
                    "required": ["percentile"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
Format = Literal["png16", "png8", "jpg", "tiff16", "tiff32f", "exr", "pfm", "npy"]
_FORMATS = {"type": "string", "enum": list(get_args(Format))}
Formats = Annotated[
    Format | tuple[Format, ...],
    BeforeValidator(as_tuple),
    AfterValidator(_apart),
    WithJsonSchema({"anyOf": [_FORMATS, {"type": "array", "items": _FORMATS, "minItems": 1, "maxItems": 8}]}),
]
Template = Annotated[str, AfterValidator(checked_template)]
ModelName = Annotated[str, AfterValidator(checked_model)]
Address = Annotated[str, AfterValidator(checked_address)]
HostAddress = Annotated[str, AfterValidator(checked_host)]
