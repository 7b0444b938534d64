"""What a user would run instead, each written by us from its published description.

Every function returns the moments (``time.perf_counter``) at which its frames were finished.
"""

from __future__ import annotations

import http.client
import http.server
import threading
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from watcher.session import runtime


def session(model: Path, threads: int = 0) -> Any:
    """An ONNX Runtime session on the CPU as anybody opens it: all defaults, or with so many threads."""
    ort = runtime.runtime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def bare(model: Path, frames: int, lanes: int = 1) -> list[float]:
    """The session run in a loop on a prepared tensor; with more ``lanes``, so many threads run it at once.

    With one lane the runtime takes a thread a core for every run; with more, each run is left to the thread it is in.
    """
    opened = session(model, 0 if lanes == 1 else 1)
    entry = opened.get_inputs()[0]
    tensor = np.random.default_rng(0).random(entry.shape, np.float32)
    moments, left, order = list[float](), iter(range(frames)), threading.Lock()

    def run() -> None:
        while True:
            with order:
                if next(left, None) is None:
                    return
            opened.run(None, {entry.name: tensor})
            with order:
                moments.append(time.perf_counter())

    helpers = [threading.Thread(target=run) for _ in range(lanes - 1)]
    for helper in helpers:
        helper.start()
    run()
    for helper in helpers:
        helper.join()
    return moments


class Published:
    """The published MiDaS procedure for one file, step by step."""

    def __init__(self, model: Path, pause_s: float = 0.0) -> None:
        self._session = session(model)
        self._pause_s = pause_s
        entry = self._session.get_inputs()[0]
        self._name, (_, _, self._height, self._width) = entry.name, entry.shape

    def pixels_to_png(self, bgr: Any) -> bytes:
        """From (H, W, 3) uint8 BGR to a 16-bit PNG of the same size."""
        rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB) / 255.0
        small = cv2.resize(rgb, (self._width, self._height), interpolation=cv2.INTER_CUBIC)
        tensor = np.transpose(small, (2, 0, 1))[np.newaxis].astype(np.float32)
        (result,) = self._session.run(None, {self._name: tensor})
        if self._pause_s:
            time.sleep(self._pause_s)
        size = (bgr.shape[1], bgr.shape[0])
        depth = cv2.resize(np.squeeze(result), size, interpolation=cv2.INTER_CUBIC)
        low, high = depth.min(), depth.max()
        scaled = 65535 * (depth - low) / (high - low) if high - low > np.finfo(float).eps else np.zeros_like(depth)
        return bytes(cv2.imencode(".png", scaled.astype(np.uint16))[1])

    def file_to_file(self, source: Path, target: Path) -> None:
        target.write_bytes(self.pixels_to_png(cv2.imread(str(source))))


def loop(model: Path, files: list[Path], outbox: Path, pause_s: float = 0.0) -> list[float]:
    """One file after the other, nothing beside anything."""
    outbox.mkdir(parents=True, exist_ok=True)
    published = Published(model, pause_s)
    moments = []
    for file in files:
        published.file_to_file(file, outbox / f"{file.stem}.png")
        moments.append(time.perf_counter())
    return moments


def seed(model: Path, files: list[Path]) -> list[float]:
    """One HTTP request a frame, to a server of one thread that does everything inside the request."""
    published = Published(model)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = published.pixels_to_png(cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    moments = []
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            client = http.client.HTTPConnection("127.0.0.1", server.server_port)
            for file in files:
                client.request("POST", "/", body=file.read_bytes())
                client.getresponse().read()
                moments.append(time.perf_counter())
            client.close()
        finally:
            server.shutdown()
            thread.join()
    return moments


def callback_watch(model: Path, picture: Path, count: int, folder: Path) -> list[float]:
    """The nearest watching tool: everything inside the observer's callback, when a file has been closed."""
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    inbox, outbox = folder / "inbox", folder / "outbox"
    inbox.mkdir(parents=True)
    outbox.mkdir()
    published, moments, done = Published(model), list[float](), threading.Event()

    class Handler(FileSystemEventHandler):
        def on_closed(self, event: FileSystemEvent) -> None:
            source = Path(str(event.src_path))
            published.file_to_file(source, outbox / f"{source.stem}.png")
            moments.append(time.perf_counter())
            if len(moments) == count:
                done.set()

    observer = Observer()
    observer.schedule(Handler(), str(inbox))
    observer.start()
    try:
        data = picture.read_bytes()
        for number in range(count):
            (inbox / f"shot-{number:05}{picture.suffix}").write_bytes(data)
        done.wait(300)
    finally:
        observer.stop()
        observer.join()
    return moments
