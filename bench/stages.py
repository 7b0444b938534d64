"""Where the time of one frame goes: every stage measured alone, in one thread, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

NAMES = ("read", "decode", "prepare", "run", "finish", "encode", "publish", "journal", "dispose")


def measure(config_file: Path, picture: Path, times: int) -> dict[str, float]:
    """Median milliseconds a stage for one picture, with the network of the settings."""
    from watcher import config
    from watcher.folder import Folder
    from watcher.journal import Journal
    from watcher.network import Network

    settings = config.load(config_file)
    network = Network(settings)
    folder = Folder(0, settings.folders[0], network.name)
    folder.inbox.prepare()
    folder.outbox.prepare()
    state = config.state_dir(settings)
    state.mkdir(parents=True, exist_ok=True)
    journal = Journal(state / "stages.db")
    journal.create()
    took: dict[str, list[float]] = {name: [] for name in NAMES}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        took[name].append((time.perf_counter() - began) * 1000)

    with network.open() as session:
        session.warm_up(2)
        plan = network.plan(session.shape)
        about = network.about(session.report)
        for number in range(times):
            source = folder.inbox.folder / f"shot-{number}{picture.suffix}"
            source.write_bytes(picture.read_bytes())
            _one(stage, (folder, journal, session, plan, about), source)
    journal.close()
    # The journal is written twice a frame: the attempt and the end.
    return {name: median(values) * (2 if name == "journal" else 1) for name, values in took.items()}


def _one(stage: Any, rooms: tuple[Any, ...], path: Path) -> None:
    from watcher import depth, imagefile, rendering
    from watcher.frame import Raw

    folder, journal, session, plan, about = rooms
    sighting = folder.inbox.sight(str(path))
    with stage("journal"):
        frame = folder.attempt(journal, sighting.source, alone=False, patient=True)
    with stage("read"):
        taken = folder.inbox.read(frame.source, 1 << 30)
    with stage("decode"):
        picture = imagefile.decode(taken.data, max_pixels=400_000_000, min_side_px=depth.min_side_px(plan))
    with stage("prepare"):
        tensor = depth.prepare(picture.pixels, plan)
    with stage("run"):
        raw = session.run(tensor)
    with stage("finish"):
        finished = depth.finish(raw, (picture.height_px, picture.width_px))
    facts = {"source_sha256": taken.sha256}
    with stage("encode"):
        imagefile.encode(finished.values, "png16", facts)
    outputs = rendering.render(
        Raw(frame, raw, picture.height_px, picture.width_px, facts), folder.settings.output, about
    )
    with stage("publish"):
        paths = folder.outbox.publish(frame.base, outputs)
    with stage("journal"):
        journal.done(frame, [str(path) for path in paths])
    with stage("dispose"):
        folder.dispose(frame.source)
