"""What /predict gives back, in every kind; what the service never does: listen unasked, open a path of a request."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import tifffile
from conftest import PROJECT, Home, make_picture
from living import Life
from prometheus_client.parser import text_string_to_metric_families
from serving import ask, photo, served

from watcher.config import Settings
from watcher.web.app import make_app
from watcher.web.desk import Desk
from watcher.web.token import Token

ANSWERS = [f"image/{kind}" for kind in ("png", "jpeg", "tiff", "x-exr")]


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    one = Life(home, tmp_path)
    yield one
    one.bury()


def test_every_kind_of_answer(life: Life) -> None:
    """PNG, TIFF, JPEG, EXR and NumPy give one and the same map; near, size and range do what they say."""
    data = photo(life, "a.jpg", (90, 60))
    with served(life) as port:

        def sent(query: str, accept: str) -> tuple[dict[str, str], bytes]:
            status, headers, body = ask(port, "POST", f"/predict{query}", data, Accept=accept)
            assert (status, headers["content-type"]) == (200, accept), body
            return headers, body

        headers, raw = sent("?range=0,1000", "application/x-npy")
        depth = np.load(io.BytesIO(raw))
        assert (depth.shape, depth.dtype) == ((60, 90), np.float32)
        low, high = float(headers["x-depth-raw-min"]), float(headers["x-depth-raw-max"])
        assert low < high
        maps = {kind: sent("", kind)[1] for kind in ANSWERS}
        png = cv2.imdecode(np.frombuffer(maps["image/png"], np.uint8), cv2.IMREAD_UNCHANGED)
        assert png is not None
        assert png.dtype == np.uint16
        assert (png.shape, png.min(), png.max()) == ((60, 90), 0, 65535)
        assert np.array_equal(tifffile.imread(io.BytesIO(maps["image/tiff"])), png)
        jpeg = cv2.imdecode(np.frombuffer(maps["image/jpeg"], np.uint8), cv2.IMREAD_GRAYSCALE)
        assert jpeg is not None
        assert np.abs(jpeg - png / 257).mean() < 3
        assert maps["image/x-exr"][:4] == b"\x76\x2f\x31\x01"
        fixed = cv2.imdecode(np.frombuffer(sent("?range=0,1e9", "image/png")[1], np.uint8), cv2.IMREAD_UNCHANGED)
        assert fixed is not None
        assert fixed.max() < png.max() / 100
        black = cv2.imdecode(np.frombuffer(sent("?near=black", "image/png")[1], np.uint8), cv2.IMREAD_UNCHANGED)
        assert black is not None
        assert np.abs(black.astype(int) - (65535 - png.astype(int))).max() <= 1
        small = cv2.imdecode(np.frombuffer(sent("?size=model", "image/png")[1], np.uint8), cv2.IMREAD_UNCHANGED)
        assert small is not None
        assert small.shape != png.shape
        assert ask(port, "POST", "/predict", data, Accept="image/webp, */*;q=0.1")[1]["content-type"] == "image/png"
        assert ask(port, "POST", "/predict", data, Accept="image/webp")[0] == 406
        measured = ask(port, "GET", "/metrics")[2].decode()
    assert {family.type for family in text_string_to_metric_families(measured)} == {"gauge", "counter", "histogram"}


def test_the_line_of_the_readme(life: Life) -> None:
    """The curl line of the README, run as it stands there, gives the map that the folder gives."""
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    (line,) = {line[2:] for line in text.splitlines() if line.startswith("$ curl") and "/predict" in line}
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    shutil.copy(PROJECT / "examples" / "inbox" / "coffee.jpg", life.place / "photo.jpg")
    with served(life) as port:
        assert ":8765/" in line
        subprocess.run(line.replace(":8765/", f":{port}/"), shell=True, cwd=life.place, check=True, timeout=60)
        shutil.copy(life.place / "photo.jpg", life.inbox / "photo.jpg")
        life.await_done(1)
    sent = cv2.imread(str(life.place / "photo_depth.png"), cv2.IMREAD_UNCHANGED)
    dropped = cv2.imread(str(life.outbox / "photo_depth.png"), cv2.IMREAD_UNCHANGED)
    assert sent is not None
    assert dropped is not None
    assert np.array_equal(sent, dropped)


OFF = """
import json, sys
from pathlib import Path
from watcher import config, daemon
code = daemon.Daemon(config.load(Path(sys.argv[1]))).run()
print(json.dumps([code, [name for name in ("flask", "waitress", "werkzeug", "socketserver") if name in sys.modules]]))
"""


def named_sockets(pid: int) -> list[str]:
    """The lines of the system's tables for those sockets of a process that have an address; a pair has none."""
    held = set()
    for place in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            named = os.readlink(place)
            held |= {named[8:-1]} if ":[" in named else set()
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6", "unix"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            inode = words[6] if table == "unix" else words[9]
            if inode in held and (table != "unix" or len(words) > 7):
                found.append(line)
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at the open sockets in /proc")
def test_off_while_it_works(life: Life) -> None:
    """A daemon that makes maps with api.enabled false has no socket with an address, and never meets flask."""
    with served(life):
        assert life.process is not None
        assert len(named_sockets(life.process.pid)) == 2, "the port and the local socket"
    life.settle()
    words = [sys.executable, "-c", OFF, str(life.file)]
    with subprocess.Popen(words, env=life.home.env, stdout=subprocess.PIPE, text=True) as process:
        try:
            make_picture(life.inbox / "a.jpg")
            life.await_done(1)
            assert named_sockets(process.pid) == []
            process.terminate()
            assert json.loads(process.communicate(timeout=20)[0]) == [0, []]
        finally:
            process.kill()


class Empty:
    """An intake without any place, so that no picture goes further than the desk."""

    paused = suspicious = False

    class work:  # noqa: N801
        waiting_aside = 0

        @staticmethod
        def offer(_frame: object) -> bool:
            return False

        @staticmethod
        def withdraw(_frame: object) -> bool:
            return False

    def pause(self, _on: bool) -> None: ...


_opened: list[str] | None = None


_HEARD = ("open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.link", "os.mkdir", "sqlite3.connect")


def _listen(event: str, details: tuple[Any, ...]) -> None:
    if _opened is not None and event in _HEARD:
        _opened.extend(os.fsdecode(detail) for detail in details if isinstance(detail, str | bytes | os.PathLike))


sys.addaudithook(_listen)


def test_no_path_of_a_request_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are paths, wherever a request can carry one, are neither opened nor listed nor moved."""
    secret = tmp_path / "secret-place" / "key.png"
    make_picture(secret)
    settings = Settings.model_validate(
        {"folders": [{"inbox": str(tmp_path / "in")}], "state_dir": str(tmp_path / "state"), "api": {"enabled": True}}
    )
    (tmp_path / "state").mkdir()
    from watcher.journal import JOURNAL_FILE, Journal

    journal = Journal(tmp_path / "state" / JOURNAL_FILE)
    journal.create()
    journal.close()
    token = Token(tmp_path / "state")
    token.make()
    desk = Desk(settings, Empty(), lambda: {"licence": "", "pulse": [0.0] * 60})  # type: ignore[arg-type]
    ours = make_app(settings.api, desk, token, live=False).test_client()
    data = secret.read_bytes()
    up = f"../../../../../../../../../..{secret}"
    found: list[str] = []
    monkeypatch.setattr(sys.modules[__name__], "_opened", found)
    statuses = []
    for path in (str(secret), up, f"file://{secret}"):
        statuses.append(ours.post("/predict", query_string={"name": path}, data=data).status_code)
        form = {"file": (io.BytesIO(data), path)}
        statuses.append(ours.post("/predict", data=form, content_type="multipart/form-data").status_code)
        statuses.append(ours.post("/predict", data={"file": path}, content_type="multipart/form-data").status_code)
        statuses.append(ours.post("/predict", query_string={"path": path, "map_file": path}, data=data).status_code)
        statuses.append(ours.post("/api/retry", json={"name": path}).status_code)
        statuses.append(ours.get(f"/api/thumbnail/1/{path}").status_code)
        statuses.append(ours.get(f"/api/thumbnail/{path}/map").status_code)
        statuses.append(ours.get(path if path.startswith("/") else f"/{path}").status_code)
    monkeypatch.setattr(sys.modules[__name__], "_opened", None)
    assert statuses == [429, 429, 422, 400, 404, 404, 404, 404] * 3
    assert str(settings.folders[0].failed) in found, "the listener hears nothing"
    assert [path for path in found if "secret-place" in path] == []
