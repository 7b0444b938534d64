"""OpenAPI: the description of every route, as data."""

from __future__ import annotations

from typing import Any

from watcher import __version__
from watcher.web.asking import TYPES
from watcher.web.gate import TOKEN_HEADER

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "what", "remedy"],
            "properties": {key: {"type": "string"} for key in ("code", "what", "remedy")},
        }
    },
}
_WORDS = {
    "400": "The request cannot be understood.",
    "401": "The token is missing or wrong.",
    "403": "A page of another site asked.",
    "404": "There is no such thing.",
    "406": "No map can be given in the types that are accepted.",
    "413": "The picture is too large.",
    "415": "This is not a picture, or one that nobody here reads.",
    "421": "The Host header names somebody else.",
    "422": "The picture is damaged, or has no depth in it.",
    "429": "Too many pictures are waiting; see Retry-After.",
    "503": "Not now: time-out, stopping, not running; see Retry-After.",
}
_ALWAYS = ("401", "421", "503")


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _route(summary: str, ok: dict[str, Any], *codes: str, **more: Any) -> dict[str, Any]:
    errors = {code: {"description": _WORDS[code], "content": _json(_ERROR)} for code in (*_ALWAYS, *codes)}
    return {"summary": summary, "responses": {**errors, **ok}, **more}


def _ok(content: dict[str, Any], code: str = "200", words: str = "So it is.") -> dict[str, Any]:
    return {code: {"description": words, "content": content}}


def _query(name: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": about}


def _predict() -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary"}}
    form = {"type": "object", "required": ["file"], "properties": {"file": binary["schema"]}}
    answers = {**dict.fromkeys(TYPES, binary), **_json({"type": "object"})}
    return _route(
        "A picture in, its depth map out; an empty request stands for the two files of the settings",
        _ok(answers, words="The map; or, for an empty request, that map_file was written."),
        *("400", "403", "404", "406", "413", "415", "422", "429"),
        parameters=[
            _query("name", {"type": "string"}, "What the map calls its source."),
            _query("near", {"enum": ["white", "black"]}, "Which end of the scale is near."),
            _query("size", {"enum": ["source", "model"]}, "Size of the picture, or of the network's output."),
            _query("range", {"type": "string", "pattern": "^(frame|-?[0-9.]+,-?[0-9.]+)$"}, "frame, or low,high."),
        ],
        requestBody={
            "required": False,
            "content": {"image/*": binary, "application/octet-stream": binary, "multipart/form-data": {"schema": form}},
        },
    )


def _changes() -> dict[str, Any]:
    named = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}
    back = {"type": "object", "required": ["back"], "properties": {"back": {"type": "string"}}}
    paused = {"type": "object", "required": ["paused"], "properties": {"paused": {"type": "boolean"}}}
    body = {"required": True, "content": _json(named)}
    return {
        "/api/retry": {
            "post": _route(
                "A failed picture back to its inbox", _ok(_json(back)), "400", "403", "404", "413", requestBody=body
            )
        },
        "/api/pause": {"post": _route("Hand no more frames on", _ok(_json(paused)), "403", "413")},
        "/api/resume": {"post": _route("Go on", _ok(_json(paused)), "403", "413")},
    }


def _looks() -> dict[str, Any]:
    text, anything = {"schema": {"type": "string"}}, {"type": "object"}
    health = {"type": "object", "required": ["healthy", "state", "reason"]}
    pieces = {"type": "object", "additionalProperties": {"type": "string"}}
    unwell = {"503": {"description": "It is not well: the reason.", "content": _json(anything)}}
    which = [
        {"name": "row", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}},
        {"name": "side", "in": "path", "required": True, "schema": {"enum": ["map", "picture"]}},
    ]
    return {
        "/": {"get": _route("The status page", _ok({"text/html": text}))},
        "/healthz": {"get": _route("Is it well", {**_ok(_json(health)), **unwell}, security=[])},
        "/metrics": {"get": _route("Measures for Prometheus", _ok({"text/plain": text}))},
        "/api/status": {"get": _route("What `depth-watcher status --json` says", _ok(_json(anything)))},
        "/api/page": {"get": _route("What the status page shows", _ok(_json(anything)))},
        "/api/parts": {"get": _route("The same as the page's own pieces of HTML", _ok(_json(pieces)))},
        "/api/events": {
            "get": _route(
                "The parts of the page that change, as they change; 204 where it is better to ask now and then",
                {**_ok({"text/event-stream": text}), "204": {"description": "No stream here, or too many."}},
            )
        },
        "/favicon.ico": {"get": _route("Nothing", {"204": {"description": "There is no icon."}})},
        "/api/openapi.json": {"get": _route("This description", _ok(_json(anything)))},
        "/api/thumbnail/{row}/{side}": {
            "get": _route(
                "A small picture of a known map, or of its source", _ok({"image/jpeg": text}), "404", parameters=which
            )
        },
    }


def description() -> dict[str, Any]:
    """OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "depth-watcher", "version": __version__},
        "paths": {"/predict": {"post": _predict()}, **_looks(), **_changes()},
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            }
        },
        "security": [{}, {"token": []}, {"bearer": []}, {"basic": []}],
    }
