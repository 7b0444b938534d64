"""One transfer over HTTP: asked for, continued or started over, and every way in which a server can disappoint."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from watcher import durable
from watcher.catalog.spec import Spec
from watcher.errors import ModelError, Unavailable

Progress = Callable[[int, int | None], None]

STALL_S = 30.0  # a server that sends nothing for so long has stalled
_CHUNK_BYTES = 1 << 17
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_HTTP_RANGE = 416


class BrokenOff(Exception):
    """The transfer ended early; what has arrived is kept and can be continued."""


@dataclass(frozen=True, slots=True)
class Job:
    spec: Spec
    url: str
    target: Path

    @property
    def part(self) -> Path:
        return self.target.with_name(f".{self.target.name}.part")

    @property
    def note(self) -> Path:
        """What the part was fetched from: continued only against the same content."""
        return self.target.with_name(f".{self.target.name}.part.json")

    def discard(self) -> None:
        for path in (self.part, self.note):
            path.unlink(missing_ok=True)

    def have(self) -> int:
        try:
            return self.part.stat().st_size
        except OSError:
            return 0


def fetch(job: Job, progress: Progress) -> None:
    """One request; returns when the part has all bytes. Starts over where the server cannot or must not continue."""
    with _ask(job) as reply:
        start = _start(job, reply)
        if start is None:  # the server answered with another range than asked for: its word is worth nothing
            job.discard()
        else:
            _store(job, reply, start, progress)
            return
    with _ask(job) as reply:
        if _start(job, reply) is None:
            raise ModelError(
                f"{host(job.url)} answers with a part of the file that nobody asked for", "Try another mirror."
            )
        _store(job, reply, 0, progress)


def _ask(job: Job) -> http.client.HTTPResponse:
    request = urllib.request.Request(job.url, headers={"User-Agent": "depth-watcher", "Accept-Encoding": "identity"})
    have = job.have()
    validator = _validator(job)
    if have and (validator or job.spec.sha256):
        request.add_header("Range", f"bytes={have}-")
        if validator:
            request.add_header("If-Range", validator)
    else:
        job.discard()
    try:
        reply: http.client.HTTPResponse = _opener().open(request, timeout=STALL_S)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _HTTP_RANGE and request.has_header("Range"):
            job.discard()
            return _ask(job)
        raise _refused(job, error) from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _unreachable(job, error) from error
    return reply


def _opener() -> urllib.request.OpenerDirector:
    """Made anew each time: the ready-made one keeps the proxies of its first use."""
    return urllib.request.build_opener()


def _validator(job: Job) -> str:
    """What proves that the server still has the content the part came from; "" where nothing does."""
    try:
        note = json.loads(job.note.read_text(encoding="utf-8"))
        return str(note["validator"]) if note["url"] == job.url else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _start(job: Job, reply: http.client.HTTPResponse) -> int | None:
    """At which byte the reply begins, ``None`` where it is not what was asked for. Refuses a file of another size."""
    have = job.have()
    length = _length(reply)
    if reply.status == http.client.PARTIAL_CONTENT:
        match = _RANGE.fullmatch(reply.headers.get("Content-Range", "").strip())
        if match is None or int(match[1]) != have or have == 0:
            return None
        if match[3] != "*" and job.spec.bytes and int(match[3]) != job.spec.bytes:
            raise another_file(job, int(match[3]))
        return have
    if length is not None and job.spec.bytes and length != job.spec.bytes:
        raise another_file(job, length)
    return 0


def _length(reply: http.client.HTTPResponse) -> int | None:
    text = reply.headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _store(job: Job, reply: http.client.HTTPResponse, start: int, progress: Progress) -> None:
    length = _length(reply)
    total = job.spec.bytes or (None if length is None else start + length)
    if start == 0:
        job.discard()
        validator = _strong(reply)
        durable.write_whole(job.note, json.dumps({"url": job.url, "validator": validator}).encode(), durable=False)
    with job.part.open("ab") as part:
        done = start
        progress(done, total)
        while block := _read(reply):
            part.write(block)
            done += len(block)
            if total is not None and done > total:
                break
            progress(done, total)
        part.flush()
        durable.sync_file(part.fileno())
    if total is not None and done < total:
        raise BrokenOff(f"the server closed the connection, {total - done} bytes are missing")
    if total is not None and done > total:
        job.discard()
        raise ModelError(f"{host(job.url)} sends more than the {total} bytes of {job.spec.name}", "Try another mirror.")


def _strong(reply: http.client.HTTPResponse) -> str:
    """An entity tag that promises equal bytes, else the date; weak tags may not be used to continue a file."""
    tag = reply.headers.get("ETag", "")
    return tag if tag.startswith('"') else reply.headers.get("Last-Modified", "")


def _read(reply: http.client.HTTPResponse) -> bytes:
    try:
        return reply.read1(_CHUNK_BYTES)  # what has arrived; ``read`` would lose it when the rest stalls
    except TimeoutError as error:
        raise BrokenOff(f"the server has sent nothing for {STALL_S:g} s") from error
    except (http.client.HTTPException, OSError) as error:
        raise BrokenOff(f"the connection was lost ({error})") from error


# -- what went wrong, for a person --------------------------------------------------------------------------------


def host(url: str) -> str:
    return urlsplit(url).netloc


def another_file(job: Job, size: int) -> ModelError:
    job.discard()
    return ModelError(
        f"{host(job.url)} has a file of {size} bytes under that name, {job.spec.name} has {job.spec.bytes}",
        "Nothing was kept. Try another mirror.",
    )


def _refused(job: Job, error: urllib.error.HTTPError) -> Unavailable:
    remedy = {
        401: "The server wants to know who you are; try a mirror.",
        403: "The server, or a proxy on the way, does not let you; try a mirror.",
        404: "The file is not there (any more); check the mirror's address.",
        407: "The proxy wants a name and a password: https_proxy=http://name:password@host:port.",
        429: "Too many requests; try again in some minutes.",
    }.get(error.code, "Try again later, or from a mirror.")
    return Unavailable(f"{host(job.url)} answers {error.code} {error.reason} for {job.spec.name}", remedy)


def _unreachable(job: Job, error: Exception) -> Unavailable:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, ssl.SSLCertVerificationError):
        remedy = "This Python does not trust the server: run its `Install Certificates.command`, or set SSL_CERT_FILE."
    elif isinstance(reason, TimeoutError):
        return Unavailable(
            f"{host(job.url)} does not answer within {STALL_S:g} s", "Try again later, or from a mirror."
        )
    else:
        remedy = (
            "Check the connection. Behind a proxy set https_proxy; without a way out use a mirror, "
            f"or fetch the file elsewhere and put it into the models folder as {job.spec.file}."
        )
    return Unavailable(f"{host(job.url)} cannot be reached: {reason}", remedy)
