"""Fetching a model: resumable, checked, placed whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from urllib.parse import quote, urlsplit

from watcher import durable
from watcher.catalog.fetch import BrokenOff, Job, Progress, another_file, fetch, host
from watcher.catalog.find import digest, judge, place, record_path, recorded
from watcher.catalog.spec import Spec, by_name
from watcher.errors import AnotherInstance, CannotCreate, ModelError, Unavailable, UsageError, explain

_MOST_BREAKS = 5
_MIRROR = "DEPTH_WATCHER_MIRROR"


def pull(
    model: str | Spec,
    models_dir: Path,
    *,
    mirror: str | None = None,
    accept_noncommercial: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Fetch a model of the catalogue into ``models_dir`` and return its verified file.

    Where it is already there and verified nothing is fetched. A transfer that broke off goes on where it ended, also
    in a later call. ``mirror``: a base address that serves the catalogue's file names (also from the environment
    variable DEPTH_WATCHER_MIRROR); proxies come from the environment. ``progress(done_bytes, total_bytes)``.

    Raises ``UsageError`` (non-commercial licence not accepted, a mirror that is not http), ``Unavailable``
    (offline, refused, stalled, truncated: try again), ``ModelError`` (the bytes are not this model), ``CannotCreate``
    (disk), ``AnotherInstance`` (another pull of it is under way). Whatever is raised, no unverified file is placed.
    """
    spec = by_name(model) if isinstance(model, str) else model
    target = place(spec, models_dir)
    if spec.embedded:
        return target
    _check_licence(spec, accept_noncommercial)
    job = Job(spec, _address(spec, mirror), target)
    try:
        durable.make_folder(models_dir)
        lock = durable.Lock(models_dir / f".{spec.file}.lock")
        if not lock.take(str(os.getpid())):
            raise AnotherInstance(f"{spec.name} is being pulled by another process", "Wait for it to end.")
        try:
            return _pull(job, progress or (lambda done, total: None))
        finally:
            lock.give_back()
    except OSError as error:
        what, _ = explain(error)
        raise CannotCreate(
            f"{spec.name} cannot be kept: {what}", f"Check the folder {models_dir}, or set model.dir."
        ) from error


def _check_licence(spec: Spec, accepted: bool) -> None:
    if not spec.commercial and not accepted:
        raise UsageError(
            f"{spec.name} is licensed {spec.licence}: not for commercial use",
            "If that is right for you, say so: --accept-non-commercial.",
        )


def _address(spec: Spec, mirror: str | None) -> str:
    base = mirror or os.environ.get(_MIRROR)
    url = f"{base.rstrip('/')}/{quote(spec.file)}" if base else spec.url
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"{url!r} is not a web address", "A mirror looks like https://mirror.example/models.")
    return url


def _pull(job: Job, progress: Progress) -> Path:
    if judge(job.spec, job.target).state == "ok":
        return job.target
    if _is_whole(job):
        return _place(job)
    _check_room(job)
    begun = job.have() > 0
    in_pieces = _fetch_all(job, progress) or begun
    if in_pieces and job.spec.sha256 and digest(job.part) != job.spec.sha256:
        job.discard()  # the pieces are not of one file, whatever the server said; a whole one may still be right
        _fetch_all(job, progress)
    return _place(job)


def _is_whole(job: Job) -> bool:
    """A part that was complete when its process ended needs no server; one that is too long is no beginning."""
    if not job.spec.bytes or job.have() < job.spec.bytes:
        return False
    if job.spec.sha256 and digest(job.part) == job.spec.sha256:
        return True
    job.discard()
    return False


def _fetch_all(job: Job, progress: Progress) -> bool:
    """As many transfers as it takes, as long as each brings the file further; True when it took more than one."""
    for breaks in range(_MOST_BREAKS):
        before = job.have()
        try:
            fetch(job, progress)
        except BrokenOff as error:
            if job.have() != job.spec.bytes and (job.have() <= before or breaks == _MOST_BREAKS - 1):
                raise Unavailable(
                    f"the download of {job.spec.name} broke off after {job.have()} bytes: {error}",
                    "Pull it again: it goes on where it ended.",
                ) from error
            if job.have() != job.spec.bytes:
                continue
        return breaks > 0
    raise AssertionError("unreachable: the last break raises")


def _check_room(job: Job) -> None:
    missing = max(0, job.spec.bytes - job.have())
    free = shutil.disk_usage(job.target.parent).free
    if free < missing:
        raise CannotCreate(
            f"{job.spec.name} needs {missing >> 20} MiB, {free >> 20} MiB are free in {job.target.parent}",
            "Make room, or set model.dir to another disk.",
        )


def _place(job: Job) -> Path:
    """Check what is on the disk, not what went by; then let it appear."""
    spec, size, found = job.spec, job.have(), digest(job.part)
    if spec.bytes and size != spec.bytes:
        job.discard()
        raise another_file(job, size)
    wanted = spec.sha256 or recorded(job.target)
    if wanted and found != wanted:
        job.discard()
        raise ModelError(
            f"what {host(job.url)} sent is not {spec.name}: its SHA-256 is {found} instead of {wanted}",
            "Nothing was kept. Pull it again, or from another mirror.",
        )
    if not spec.sha256:
        durable.write_whole(record_path(job.target), f"{found}  {job.target.name}\n".encode("ascii"))
    os.replace(job.part, job.target)
    durable.sync_folder(job.target.parent)
    with contextlib.suppress(OSError):
        job.note.unlink()
    return job.target
