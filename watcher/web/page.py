"""Page: the status page as one HTML text, and its parts. Complete without JavaScript; with it, it stays current."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

_CODE = re.compile("`([^`]+)`")
_SLOT_S = 2


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
    given = {"nonce": nonce, **parts(facts)}
    return re.sub("@@([a-z]+)@@", lambda mark: given[mark[1]], text)


def parts(facts: Mapping[str, Any]) -> dict[str, str]:
    """What changes on the page: the content of the elements with these ids, as HTML."""
    return {
        "state": _state(facts),
        "switch": _switch(paused=bool(facts["paused"])),
        "facts": _facts(facts),
        "stages": _stages(facts["status"]),
        "graph": _graph(facts),
        "maps": "".join(_map(entry) for entry in facts["maps"]) or "<li class=none>No maps yet.</li>",
        "failures": "".join(_failure(entry) for entry in facts["failures"]) or _NO_FAILURES,
        "more": _more(facts),
    }


_NO_FAILURES = "<tr role=row><td role=cell colspan=4 class=none>Nothing has failed.</td></tr>"


def _state(facts: Mapping[str, Any]) -> str:
    status = facts["status"]
    word = "paused" if facts["paused"] and status["state"] == "running" else status["state"]
    why = f" <span>{_text(status['reason'])}</span>" if status["reason"] and word != "paused" else ""
    return f'<strong class="s-{escape(word)}">{escape(word)}</strong>{why}'


def _switch(*, paused: bool) -> str:
    action, word = ("resume", "Resume") if paused else ("pause", "Pause")
    return f"<form method=post action=/api/{action}><button>{word}</button></form>"


def _facts(facts: Mapping[str, Any]) -> str:
    status, calls = facts["status"], facts["calls"]
    counts = status["counts"]
    pairs = [
        ("Provider", _provider(status)),
        ("Model", status["model"]),
        ("Licence", facts["licence"]),
        ("Rate", f"{status['rate']:g} maps a second"),
        ("Waiting", f"{counts['waiting']:,}"),
        ("In work", f"{counts['in_flight']:,}"),
        ("Done", f"{counts['done']:,}"),
        ("Failed", f"{counts['failed']:,}"),
        ("Sent pictures", f"{calls.get('done', 0):,} answered, {calls['waiting']:,} waiting"),
        ("Note", status["notice"]),
    ]
    return "".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{_text(value)}</td></tr>" for name, value in pairs if value
    )


def _provider(status: Mapping[str, Any]) -> str:
    """What really runs, as the runtime assigned the graph; and why it is not what was asked for."""
    if not status["provider"]:
        return "not known yet"
    nodes = ", ".join(f"{count} nodes on {name}" for name, count in status["nodes"].items())
    proven = f"{status['provider']} (proven: {nodes})" if nodes else f"{status['provider']} (not proven)"
    return ". ".join(text for text in (proven, status["fallback"], status["decision"]) if text)


def _stages(status: Mapping[str, Any]) -> str:
    rows = []
    for name, took_ms in status["stages_ms"].items():
        busy, queue = status["busy"].get(name), status["queues"].get(name)
        cells = (
            f"{took_ms:.1f} ms",
            f"{busy:.0%}" if busy is not None else "–",
            f"{queue[0]} of {queue[1]}" if queue else "–",
        )
        pace = " <small>sets the pace</small>" if name == status["bottleneck"] else ""
        columns = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f"<tr><th scope=row>{escape(name)}{pace}</th>{columns}</tr>")
    return "".join(rows) or "<tr><td colspan=4 class=none>Nothing was done yet.</td></tr>"


def _graph(facts: Mapping[str, Any]) -> str:
    """Maps a second over the last two minutes, a bar for each two seconds; the words say the same."""
    pulse: Sequence[float] = facts["pulse"]
    most = max(pulse, default=0.0)
    bars = "".join(
        f'<rect x="{place}" y="{40 - 38 * rate / most:.1f}" width=".8" height="{38 * rate / most:.1f}"/>'
        for place, rate in enumerate(pulse)
        if rate
    )
    said = f"At most {most:g} a second, {sum(pulse) * _SLOT_S:.0f} in all" if most else "None in the last two minutes"
    return (
        f'<svg viewBox="0 0 {len(pulse)} 40" preserveAspectRatio=none role=img aria-label="{said}">{bars}</svg>'
        f"<p class=ends><span>2 minutes ago</span><span>{said}</span><span>now</span></p>"
    )


def _map(entry: Mapping[str, Any]) -> str:
    name, where = escape(entry["name"]), f"/api/thumbnail/{int(entry['id'])}"
    return (
        f'<li><img src="{where}/picture" alt="" width=96 height=72 loading=lazy>'
        f'<img src="{where}/map" alt="Depth map of {name}" width=96 height=72 loading=lazy>'
        f"<span>{name}</span>{_time(entry['when'])}</li>"
    )


def _failure(entry: Mapping[str, Any]) -> str:
    name = escape(entry["name"])
    return (
        f"<tr role=row><td role=cell>{name}</td><td role=cell>{_text(entry['what'])}<br><small>{_text(entry['remedy'])}"
        f"</small></td><td role=cell>{_time(entry['when'])}</td><td role=cell><form method=post action=/api/retry>"
        f'<input type=hidden name=name value="{name}"><button aria-label="Try {name} again">Try again</button>'
        "</form></td></tr>"
    )


def _more(facts: Mapping[str, Any]) -> str:
    """That there are more failures than are shown, and what can be done about all of them."""
    shown, failed = len(facts["failures"]), facts["status"]["counts"]["failed"]
    if failed <= shown:
        return ""
    return f"The newest {shown} of {failed:,}. <code>depth-watcher retry --all</code> brings all of them back."


def _time(stamp: str) -> str:
    return f'<time datetime="{escape(stamp)}">{escape(stamp.replace("T", " ").replace("Z", " UTC"))}</time>'


def _text(text: str) -> str:
    """Escaped; what stands in backticks is a command."""
    return _CODE.sub(r"<code>\1</code>", escape(str(text)))
