"""Memory: how much of it this process holds, and how much the machine has. Asked of the system, without a child."""

from __future__ import annotations

import ctypes
import os
import sys

_MAC: bool = sys.platform == "darwin"
_PROC_PIDTASKINFO = 4  # libproc.h
_TASK_INFO_BYTES = 96
_RESIDENT_AT = 8  # struct proc_taskinfo: pti_virtual_size, pti_resident_size, …


def resident_bytes() -> int:
    """Bytes of this process that are in memory now; 0 where the system does not tell."""
    if _MAC:
        return _darwin_resident()
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def physical_bytes() -> int:
    """Bytes of memory in the machine; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def _darwin_resident() -> int:
    buffer = ctypes.create_string_buffer(_TASK_INFO_BYTES)
    library = ctypes.CDLL(None)
    if not hasattr(library, "proc_pidinfo"):
        return 0
    filled = library.proc_pidinfo(os.getpid(), _PROC_PIDTASKINFO, ctypes.c_uint64(0), buffer, _TASK_INFO_BYTES)
    if filled < _RESIDENT_AT + 8:
        return 0
    return int.from_bytes(buffer.raw[_RESIDENT_AT : _RESIDENT_AT + 8], sys.byteorder)


def give_back() -> None:
    """Return to the system what was freed: allocators keep it in case it is wanted again."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):  # glibc
        library.malloc_trim(ctypes.c_size_t(0))
    elif hasattr(library, "malloc_zone_pressure_relief"):  # macOS: all zones, as much as there is
        library.malloc_zone_pressure_relief(ctypes.c_void_p(None), ctypes.c_size_t(0))
