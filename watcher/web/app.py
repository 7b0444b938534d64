"""App: the routes. Knows HTTP and the door; everything else is behind the door."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from watcher.config import Api
from watcher.web import asking, metrics, openapi, page
from watcher.web.door import Answer, Door, Gone, Question, Refused
from watcher.web.gate import Gate
from watcher.web.token import Token

_STREAMS_MOST = 4
_BEAT_S = 1.0
_QUIET_BEATS = 15
_FORM_BYTES = 100_000
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer a form of our own page would come from the origin "null"
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


@dataclass(slots=True)
class Front:
    """What the routes share. ``closed`` ends the streams."""

    door: Door
    live: bool
    scale: asking.Scale
    closed: threading.Event = field(default_factory=threading.Event)
    streams: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(_STREAMS_MOST))

    def ask(self, what: str, facts: Mapping[str, Any] | None = None, data: bytes = b"") -> Answer:
        return self.door.ask(Question(what, facts or {}, data), _still_there(request.environ))


def make_app(api: Api, door: Door, token: Token, *, live: bool = True, closed: threading.Event | None = None) -> Flask:
    """``live``: events may hold a thread for as long as a page is open; else pages poll."""
    app = Flask("watcher.web", static_folder=None, template_folder=None)
    most = api.max_mb * 1_000_000
    app.config["MAX_CONTENT_LENGTH"] = most + _FORM_BYTES
    app.config["MAX_FORM_MEMORY_SIZE"] = _FORM_BYTES
    app.config["MAX_FORM_PARTS"] = 10
    gate = Gate(api, token)
    front = Front(door, live, asking.Scale(most), closed or threading.Event())
    app.before_request(lambda: gate.check(request.method, request.path, dict(request.headers)))
    app.after_request(_safe)
    app.register_error_handler(Refused, _refused)
    app.register_error_handler(Gone, lambda _error: Response(status=499))
    app.register_error_handler(HTTPException, _http)
    _add_pictures(app, front)
    _add_page(app, front)
    _add_views(app, front)
    _add_changes(app, front)
    return app


# -- routes -----------------------------------------------------------------------------------------------------------


def _add_pictures(app: Flask, front: Front) -> None:
    @app.post("/predict")
    def predict() -> Response:
        if not request.content_length and "chunked" not in request.headers.get("Transfer-Encoding", ""):
            answer = front.ask("seed")
            return _json({"done": True, "took_ms": answer.facts["took_ms"]})
        media, facts = asking.media_type(request), asking.wishes(request)
        with front.scale.holding(request.content_length or app.config["MAX_CONTENT_LENGTH"]):
            data = asking.picture(request)
            answer = front.ask("predict", {**facts, "format": asking.TYPES[media]}, data)
        return Response(answer.data, mimetype=media, headers=_about(answer.facts))


def _add_page(app: Flask, front: Front) -> None:
    @app.get("/")
    def index() -> Response:
        nonce = secrets.token_urlsafe(16)
        answer = Response(page.render(front.ask("page").facts, nonce), mimetype="text/html")
        answer.headers["Content-Security-Policy"] = page.policy(nonce)
        return answer

    @app.get("/api/page")
    def api_page() -> Response:
        return _json(front.ask("page").facts)

    @app.get("/api/parts")
    def api_parts() -> Response:
        return _json(page.parts(front.ask("page").facts))

    @app.get("/favicon.ico")
    def favicon() -> Response:
        return Response(status=204)  # browsers ask for it unasked

    @app.get("/api/thumbnail/<int(max=9007199254740991):row>/<any(map,picture):side>")
    def thumbnail(row: int, side: str) -> Response:
        return Response(front.ask("thumbnail", {"id": row, "side": side}).data, mimetype="image/jpeg")

    @app.get("/api/events")
    def events() -> Response:
        if not front.live or not front.streams.acquire(blocking=False):
            return Response(status=204)  # tells the page's event source to stop; it polls then
        stream = Response(_events(front), mimetype="text/event-stream")
        stream.call_on_close(front.streams.release)
        return stream


def _add_views(app: Flask, front: Front) -> None:
    @app.get("/healthz")
    def healthz() -> Response:
        try:
            found = front.ask("status").facts
        except Refused as no:
            return _json({"healthy": False, "state": "stopped", "reason": no.what}, 503)
        healthy = found["state"] == "running"
        return _json({"healthy": healthy, "state": found["state"], "reason": found["reason"]}, 200 if healthy else 503)

    @app.get("/metrics")
    def measures() -> Response:
        return Response(metrics.render(front.ask("metrics").facts), content_type=metrics.CONTENT_TYPE)

    @app.get("/api/status")
    def api_status() -> Response:
        return _json(front.ask("status").facts)

    @app.get("/api/openapi.json")
    def description() -> Response:
        return _json(openapi.description())


def _add_changes(app: Flask, front: Front) -> None:
    @app.post("/api/retry")
    def retry() -> Response:
        name = _body().get("name")
        if not isinstance(name, str) or not name:
            raise Refused(400, "no-name", "the name is missing", 'Send {"name": "…"}.')
        facts = dict(front.ask("retry", {"name": name}).facts)
        return _back(facts)

    @app.post("/api/pause")
    def pause() -> Response:
        return _back(dict(front.ask("pause", {"on": True}).facts))

    @app.post("/api/resume")
    def resume() -> Response:
        return _back(dict(front.ask("pause", {"on": False}).facts))


def _body() -> Mapping[str, Any]:
    """JSON for programs, a plain form for pages without JavaScript."""
    if request.mimetype == "application/x-www-form-urlencoded":
        return request.form.to_dict()
    found = request.get_json(silent=True)
    return found if isinstance(found, dict) else {}


def _back(facts: dict[str, Any]) -> Response:
    if request.mimetype == "application/x-www-form-urlencoded":
        return Response(status=303, headers={"Location": "/"})
    return _json(facts)


# -- answers ----------------------------------------------------------------------------------------------------------


def _json(facts: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(facts), status=status, mimetype="application/json")


def _about(facts: Mapping[str, Any]) -> dict[str, str]:
    """What a client should know about a map, as headers."""
    made = facts["made"]
    shown = {
        "Model": made["model"],
        "Provider": made["provider"],
        "Raw-Min": f"{made['raw_min']:.9g}",
        "Raw-Max": f"{made['raw_max']:.9g}",
        "Near": made["near"],
    }
    headers = {f"X-Depth-{key}": str(value).encode("ascii", "replace").decode() for key, value in shown.items()}
    headers["Server-Timing"] = f"total;dur={facts['took_ms']}"
    return headers


def _safe(response: Response) -> Response:
    for name, value in _SAFE.items():
        response.headers.setdefault(name, value)
    return response


def _refused(no: Refused) -> Response:
    answer = _json({"error": {"code": no.code, "what": no.what, "remedy": no.remedy}}, no.status)
    if no.after_s:
        answer.headers["Retry-After"] = str(no.after_s)
    if no.status == 401:
        # Only the page asks people; in answer to its scripts' requests, or to a program's, no window is to open.
        answer.headers["WWW-Authenticate"] = 'Basic realm="depth-watcher"' if request.path == "/" else "Bearer"
    return answer


def _http(error: HTTPException) -> Response:
    status = error.code or 500
    answer = _json({"error": {"code": error.name.lower().replace(" ", "-"), "what": error.name, "remedy": ""}}, status)
    for name, value in error.get_headers():
        if name in ("Allow", "Location"):
            answer.headers[name] = value
    return answer


def _events(front: Front) -> Iterator[str]:
    """The parts of the page that changed; a comment now and then shows a dead connection for what it is."""
    last: dict[str, str] = {}
    quiet = 0
    while not front.closed.is_set():
        try:
            parts = page.parts(front.door.ask(Question("page"), lambda: True).facts)
        except (Refused, Gone):
            return
        changed = {name: text for name, text in parts.items() if last.get(name) != text}
        quiet = 0 if changed else quiet + 1
        last = parts
        if changed:
            yield f"data: {json.dumps(changed)}\n\n"
        elif quiet % _QUIET_BEATS == 0:
            yield ":\n\n"
        front.closed.wait(_BEAT_S)


def _still_there(environ: Mapping[str, Any]) -> Callable[[], bool]:
    """Whether the client still waits, where the server can tell: waitress says so, gunicorn gives its socket."""
    gone = environ.get("waitress.client_disconnected")
    if callable(gone):
        return lambda: not gone()
    line = environ.get("gunicorn.socket")
    if not isinstance(line, socket.socket):
        return lambda: True

    def look() -> bool:
        try:
            return bool(line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    return look
