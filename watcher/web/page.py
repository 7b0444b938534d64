"""Page: the status page as one HTML text. Complete without JavaScript; with it, it stays current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any


def policy(nonce: str) -> str:
    """The content security policy of the page: its own style and script, its own pictures and data, nothing else."""
    own = f"'nonce-{nonce}'"
    return (
        f"default-src 'none'; script-src {own}; style-src {own}; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def render(facts: Mapping[str, Any], nonce: str) -> str:
    """``facts`` are the answer to the question "page". Every text of theirs is escaped."""
    text = files("watcher.web").joinpath("page.html").read_text(encoding="utf-8")
    parts = {
        "nonce": nonce,
        "state": _state(facts),
        "facts": _facts(facts),
        "stages": _rows([(name, f"{took:.1f} ms") for name, took in facts["status"]["stages_ms"].items()]),
        "maps": "".join(_map(entry) for entry in facts["maps"]) or "<li class=none>No maps yet.</li>",
        "failures": "".join(_failure(entry) for entry in facts["failures"]) or _NO_FAILURES,
        "switch": _switch(paused=bool(facts["paused"])),
    }
    for key, value in parts.items():
        text = text.replace(f"@@{key}@@", value)
    return text


_NO_FAILURES = "<tr><td colspan=4 class=none>Nothing has failed.</td></tr>"


def _state(facts: Mapping[str, Any]) -> str:
    status = facts["status"]
    word = "paused" if facts["paused"] and status["state"] == "running" else status["state"]
    why = f" <span>{escape(status['reason'])}</span>" if status["reason"] and word != "paused" else ""
    return f'<strong class="s-{escape(word)}">{escape(word)}</strong>{why}'


def _facts(facts: Mapping[str, Any]) -> str:
    status, calls = facts["status"], facts["calls"]
    counts = status["counts"]
    return _rows(
        [
            ("Provider", status["provider"] or "not known yet"),
            ("Model", status["model"]),
            ("Licence", facts["licence"]),
            ("Rate", f"{status['rate']:g} maps a second"),
            ("Waiting", counts["waiting"]),
            ("In work", counts["in_flight"]),
            ("Done", counts["done"]),
            ("Failed", counts["failed"]),
            ("Sent pictures", f"{calls.get('done', 0)} answered, {calls['waiting']} waiting"),
            *([("Note", status["notice"])] if status["notice"] else []),
        ]
    )


def _rows(pairs: Sequence[tuple[str, Any]]) -> str:
    return "".join(f"<tr><th scope=row>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in pairs)


def _map(entry: Mapping[str, Any]) -> str:
    name, where = escape(entry["name"]), f"/api/thumbnail/{int(entry['id'])}"
    return (
        f'<li><img src="{where}/picture" alt="" width=96 height=72 loading=lazy>'
        f'<img src="{where}/map" alt="Depth map of {name}" width=96 height=72 loading=lazy>'
        f"<span>{name}</span><time>{escape(entry['when'])}</time></li>"
    )


def _failure(entry: Mapping[str, Any]) -> str:
    name = escape(entry["name"])
    return (
        f"<tr><td>{name}</td><td>{escape(entry['what'])} {escape(entry['remedy'])}</td>"
        f"<td><time>{escape(entry['when'])}</time></td><td><form method=post action=/api/retry>"
        f'<input type=hidden name=name value="{name}"><button aria-label="Try {name} again">Try again</button>'
        "</form></td></tr>"
    )


def _switch(*, paused: bool) -> str:
    action, word = ("resume", "Resume") if paused else ("pause", "Pause")
    return f"<form method=post action=/api/{action}><button id=switch>{word}</button></form>"
