"""Wire: questions and answers on a local socket. Each is a length, a JSON head that tells the length of the data, data.

The socket lies in the state folder, mode 0600. A path that no socket takes is replaced by a short one in a folder of
the user's own below the system's temporary folder; both sides refuse that folder where it belongs to anybody else.
"""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import struct
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOCKET_FILE = "api.sock"
LOOK_S = 0.2  # how often either side looks whether the other one is still there
_PATH_BYTES = 90  # sun_path has 104 bytes on macOS, 108 on Linux; the hidden name before the rename is longer
_HEAD = struct.Struct(">I")
_HEAD_MOST = 1 << 20
_STEP = 1 << 20


class Broken(OSError):
    """What came over the wire is no message of ours, is too long, or ends early."""


def place(state_dir: Path) -> Path:
    """Where the socket is for this state folder."""
    path = state_dir / SOCKET_FILE
    if len(os.fsencode(path)) <= _PATH_BYTES:
        return path
    mark = zlib.crc32(os.fsencode(os.path.realpath(state_dir)))
    return Path(tempfile.gettempdir()) / f"depth-watcher-{os.getuid()}" / f"{mark:08x}.sock"


def is_ours(folder: Path) -> bool:
    """Whether nobody else can put anything into a folder."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def send(to: socket.socket, head: Mapping[str, Any], data: bytes) -> None:
    text = json.dumps({**head, "bytes": len(data)}).encode()
    to.sendall(_HEAD.pack(len(text)) + text)
    to.sendall(data)


def receive(source: socket.socket, most: int) -> tuple[dict[str, Any], bytes]:
    """(head, data). Raises ``Broken`` and other ``OSError``; data of more than ``most`` bytes are not read."""
    (length,) = _HEAD.unpack(_exactly(source, _HEAD.size))
    if length > _HEAD_MOST:
        raise Broken("the head is too long")
    try:
        head = json.loads(_exactly(source, length))
        size = int(head["bytes"])
    except (ValueError, TypeError, KeyError) as error:
        raise Broken(f"the head cannot be read: {error}") from None
    if not 0 <= size <= most:
        raise Broken("the data are too long")
    return head, bytes(_exactly(source, size))


def _exactly(source: socket.socket, size: int) -> bytearray:
    found = bytearray()
    while len(found) < size:
        part = source.recv(min(_STEP, size - len(found)))
        if not part:
            raise Broken("it ends early")
        found += part
    return found


def has_something(peer: socket.socket, wait_s: float) -> bool:
    """Whether there is something to receive, the end included; waits for it. Unlike select(), for any descriptor."""
    poll = select.poll()
    poll.register(peer, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def hung_up(peer: socket.socket, wait_s: float = 0.0) -> bool:
    """Whether the other side has closed; data that it sent do not count."""
    if not has_something(peer, wait_s):
        return False
    try:
        return not peer.recv(1, socket.MSG_PEEK)
    except OSError:
        return True
