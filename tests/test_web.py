"""Room `web` without a daemon: the gate, the routes, the page, the measures, the description."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import PROJECT
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from watcher.config.settings import Api
from watcher.status import Counts, Failure, Snapshot
from watcher.web import metrics, page, wire
from watcher.web.app import make_app
from watcher.web.door import Answer, Question, Refused
from watcher.web.token import Token

EVIL = '<img src=x onerror=alert(1)>".jpg'


def facts() -> dict[str, Any]:
    status = Snapshot(
        running=True,
        pid=1,
        state="running",
        provider="cpu",
        model="starter",
        version="0",
        counts=Counts(done=3, failed=1),
        stages_ms={"load": 1.0, "run": 2.5},
        last_errors=(Failure(EVIL, "it is broken", "now"),),
    )
    return {
        "status": status.as_json(),
        "paused": False,
        "licence": "MIT",
        "pulse": [0.0] * 58 + [0.5, 2.0],
        "calls": {
            "waiting": 0,
            "done": 2,
            "outcomes": {"done": 2, "gone": 1},
            "buckets": [[0.1, 1], [1.0, 2]],
            "seconds": 0.7,
            "answered": 2,
        },
        "waiting": 0,
        "resident_bytes": 1000,
        "maps": [{"id": 1, "name": EVIL, "map": "x.png", "when": "now"}],
        "failures": [{"name": EVIL, "what": "it is broken", "remedy": "Save it again.", "when": "now"}],
    }


class FakeDoor:
    """Answers at once, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def ask(self, question: Question, _wanted: Callable[[], bool]) -> Answer:
        self.asked.append(question)
        if question.what == "predict":
            made = {"model": "m", "provider": "cpu", "raw_min": 0.5, "raw_max": 2, "near": "white"}
            return Answer({"made": made, "took_ms": 1.5}, b"map")
        if question.what == "seed":
            raise Refused(400, "empty", "nothing", "")
        return Answer(facts()["status"] if question.what == "status" else facts(), b"jpeg")


@pytest.fixture
def door() -> FakeDoor:
    return FakeDoor()


def client(door: FakeDoor, state_dir: Path, **api: Any) -> FlaskClient:
    token = Token(state_dir)
    token.make()
    return make_app(Api.model_validate({"enabled": True, **api}), door, token, live=False).test_client()


ATTACKS: list[tuple[str, str, Mapping[str, str], int]] = [
    ("POST", "/api/pause", {"Origin": "http://evil.example"}, 403),
    ("POST", "/api/pause", {"Origin": "null"}, 403),
    ("POST", "/api/pause", {"Origin": "https://localhost"}, 403),
    ("POST", "/api/pause", {"Origin": "http://localhost:1"}, 403),
    ("POST", "/api/pause", {"Sec-Fetch-Site": "cross-site"}, 403),
    ("POST", "/api/pause", {"Sec-Fetch-Site": "same-site"}, 403),
    ("POST", "/predict", {"Origin": "http://evil.example"}, 403),
    ("GET", "/", {"Host": "evil.example"}, 421),
    ("GET", "/healthz", {"Host": "evil.example:8765"}, 421),
    ("GET", "/", {"Host": "localhost.evil.example"}, 421),
    ("GET", "/", {"Host": "127.0.0.1@evil.example"}, 421),
    ("GET", "/", {"Host": ""}, 421),
    ("GET", "/api/status", {"X-Depth-Watcher-Token": "wrong"}, 401),
    ("GET", "/api/thumbnail/../../etc/passwd", {}, 404),
    ("GET", "/api/thumbnail/1/%2e%2e%2fjournal.db", {}, 404),
    ("GET", "/api/thumbnail/-1/map", {}, 404),
    ("GET", "/static/x", {}, 404),
    ("PUT", "/predict", {}, 405),
    ("TRACE", "/", {}, 405),
]


@pytest.mark.parametrize(("method", "path", "headers", "status"), ATTACKS)
def test_attacks(
    door: FakeDoor, tmp_path: Path, method: str, path: str, headers: Mapping[str, str], status: int
) -> None:
    """Each attack of the list gets its refusal, as JSON, without CORS, and never reaches the door."""
    answer = client(door, tmp_path).open(path, method=method, headers=headers)
    assert answer.status_code == status
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert door.asked == []


def test_the_list_of_attacks_is_true() -> None:
    """Every row of the list in docs/server.md names a test that there is."""
    text = (PROJECT / "docs" / "server.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| `(test_\w+)`: `(test_\w+)` \|$", text, re.MULTILINE)
    assert len(rows) >= 25
    for module, name in rows:
        assert f"def {name}(" in (PROJECT / "tests" / f"{module}.py").read_text(encoding="utf-8"), name


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}])
def test_our_own_page_may(door: FakeDoor, tmp_path: Path, headers: Mapping[str, str]) -> None:
    """Programs, and our own page, may change something."""
    assert client(door, tmp_path).post("/api/pause", headers=headers).status_code == 200


def test_exposed_needs_the_token(door: FakeDoor, tmp_path: Path) -> None:
    """Where other machines reach it, only /healthz is open; the token opens the rest, by either header."""
    there = client(door, tmp_path, host="192.0.2.1", expose=True)
    token = (tmp_path / "api-token").read_text().strip()
    host = {"Host": "192.0.2.1:8765"}
    assert there.get("/healthz", headers=host).status_code == 200
    for path in ("/", "/metrics", "/api/status", "/api/openapi.json"):
        assert there.get(path, headers=host).status_code == 401
        assert there.get(path, headers={**host, "Authorization": f"Bearer {token}"}).status_code == 200
        assert there.get(path, headers={**host, "X-Depth-Watcher-Token": token}).status_code == 200


def test_the_token_as_a_password(door: FakeDoor, tmp_path: Path) -> None:
    """A browser asks for the token where it is needed, as a password; it must still be our own page that asks."""
    ours = client(door, tmp_path, require_token=True)
    assert ours.get("/").headers["WWW-Authenticate"].startswith("Basic ")
    assert ours.get("/api/page").headers["WWW-Authenticate"] == "Bearer"
    token = (tmp_path / "api-token").read_text().strip()
    for password, status in ((token, 200), ("wrong", 401), ("", 401)):
        assert ours.get("/", auth=("anybody", password)).status_code == status
    assert ours.get("/", headers={"Authorization": "Basic %%%"}).status_code == 401
    own, other = {"Origin": "http://localhost"}, {"Origin": "http://evil.example"}
    assert ours.post("/api/pause", auth=("", token), headers=own).status_code == 200
    assert ours.post("/api/pause", auth=("", token), headers=other).status_code == 403


def test_predict_passes_on_what_is_asked(door: FakeDoor, tmp_path: Path) -> None:
    """Query, Accept, raw body and form reach the door as checked values; the answer tells about the map."""
    ours = client(door, tmp_path)
    answer = ours.post(
        "/predict?near=black&range=0,5&size=model&name=a%00b", data=b"x", headers={"Accept": "image/jpeg"}
    )
    assert (answer.status_code, answer.data, answer.content_type) == (200, b"map", "image/jpeg")
    assert answer.headers["X-Depth-Raw-Max"] == "2"
    assert door.asked[0].facts == {
        "near": "black",
        "range": [0.0, 5.0],
        "size": "model",
        "name": "a_b",
        "format": "jpg",
    }
    import io

    form = {"file": (io.BytesIO(b"picture"), "a.jpg")}
    assert ours.post("/predict", data=form, content_type="multipart/form-data").status_code == 200
    assert door.asked[1].data == b"picture"


@pytest.mark.parametrize(
    ("query", "accept", "status"),
    [
        ("near=up", "", 400),
        ("range=5,1", "", 400),
        ("range=nan,1", "", 400),
        ("path=/etc", "", 400),
        ("", "text/html", 406),
    ],
)
def test_bad_wishes(door: FakeDoor, tmp_path: Path, query: str, accept: str, status: int) -> None:
    """What cannot be meant is refused with a reason, before the picture is read."""
    answer = client(door, tmp_path).post(f"/predict?{query}", data=b"x", headers={"Accept": accept} if accept else {})
    assert answer.status_code == status
    assert json.loads(answer.data)["error"]["what"]
    assert door.asked == []


def test_names_are_text(door: FakeDoor, tmp_path: Path) -> None:
    """A file name that is HTML is shown as text, and the page's policy lets nothing foreign run."""
    answer = client(door, tmp_path).get("/")
    text = answer.get_data(as_text=True)
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;&quot;.jpg" in text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "@@" not in text


def test_page_is_quick_with_many_rows() -> None:
    """The page renders whatever it is given, 5 000 rows too; what the daemon gives is bounded."""
    many = {**facts(), "failures": facts()["failures"] * 5000}
    assert page.render(many, "n").count("Try again") == 5000


def test_metrics_are_what_prometheus_reads() -> None:
    """Prometheus' own parser reads every line; counters, histogram and labels have the given values."""
    found = {family.name: family for family in text_string_to_metric_families(metrics.render(facts()))}
    assert found["depth_watcher_maps"].samples[0].value == 3
    histogram = found["depth_watcher_call_duration_seconds"]
    assert histogram.type == "histogram"
    assert {s.labels.get("le"): s.value for s in histogram.samples if s.name.endswith("bucket")} == {
        "0.1": 1,
        "1": 2,
        "+Inf": 2,
    }
    assert {s.labels["state"]: s.value for s in found["depth_watcher_state"].samples}["running"] == 1


def test_token_is_kept_and_private(tmp_path: Path) -> None:
    """The token is made once, mode 0600, and only it fits."""
    token = Token(tmp_path)
    token.make()
    first = token.path.read_text()
    token.make()
    assert token.path.read_text() == first
    assert token.path.stat().st_mode & 0o777 == 0o600
    assert token.fits(first.strip())
    assert not token.fits("")
    assert not Token(tmp_path / "none").fits("")


def test_a_long_state_folder_has_a_short_socket(tmp_path: Path) -> None:
    """A path that no socket takes is replaced by a short one of the user's own; a folder of others is refused."""
    long = tmp_path / ("x" * 120)
    assert len(str(wire.place(long))) < 100
    assert wire.place(long) != wire.place(long / "y")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert not wire.is_ours(shared)


def test_a_form_of_our_own_page_has_an_origin(door: FakeDoor, tmp_path: Path) -> None:
    """The page's referrer policy is one with which browsers send a form's origin, so that its buttons pass the gate."""
    assert client(door, tmp_path).get("/").headers["Referrer-Policy"] == "same-origin"


def test_the_graph_is_drawn_without_a_script() -> None:
    """A bar for each slot in which there were maps, as high as its share of the most; the words say the same."""
    made = page.parts(facts())["graph"]
    assert made.count("<rect") == 2
    assert 'x="58" y="30.5" width=".8" height="9.5"' in made
    assert "At most 2 a second, 5 in all" in made
    assert "None in the last two minutes" in page.parts({**facts(), "pulse": [0.0] * 60})["graph"]


def test_a_provider_is_shown_as_proven_or_not() -> None:
    """Which nodes run where, why it is not what was asked for, and what was measured stand beside the provider."""
    status = {**facts()["status"], "nodes": {"coreml": 9, "cpu": 1}, "fallback": "it crashed", "bottleneck": "run"}
    made = page.parts({**facts(), "status": status})
    assert "cpu (proven: 9 nodes on coreml, 1 nodes on cpu). it crashed" in made["facts"]
    assert "sets the pace" in made["stages"]
    assert "not proven" in page.parts(facts())["facts"]


def test_every_route_is_described(door: FakeDoor, tmp_path: Path) -> None:
    """The description has every route of the application with every method, and no other."""
    ours = client(door, tmp_path)
    described = {
        (method.upper(), re.sub("{.*?}", "*", path))
        for path, methods in json.loads(ours.get("/api/openapi.json").data)["paths"].items()
        for method in methods
    }
    there = {
        (method, re.sub("<.*?>", "*", re.sub(r"\(.*?\)", "", rule.rule)))
        for rule in ours.application.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert described == there
