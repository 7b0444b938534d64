"""Files that are whole or absent: write, move, sync and lock.

Nothing here decides what a file means. Errors of the operating system pass through as ``OSError``; whoever called
knows what they are worth.
"""

from watcher.durable.adding import add_whole
from watcher.durable.locking import Lock, holder
from watcher.durable.moving import Replaced, move_aside, numbered, rename_new
from watcher.durable.removing import bring_back, left_out_of_reach, out_of_reach, remove
from watcher.durable.syncing import make_folder, sync_file, sync_folder
from watcher.durable.writing import (
    NAME_BYTES,
    cut_to_bytes,
    is_temporary,
    sweep,
    temporary_name,
    write_new,
    write_whole,
)

__all__ = [
    "NAME_BYTES",
    "Lock",
    "Replaced",
    "add_whole",
    "bring_back",
    "cut_to_bytes",
    "holder",
    "is_temporary",
    "left_out_of_reach",
    "make_folder",
    "move_aside",
    "numbered",
    "out_of_reach",
    "remove",
    "rename_new",
    "sweep",
    "sync_file",
    "sync_folder",
    "temporary_name",
    "write_new",
    "write_whole",
]
