"""Darwin: what the system says of itself when asked by a call, because asking by a program would start one."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_MAC: bool = sys.platform == "darwin"
# getiopolicy_np(3), sys/resource.h: IOPOL_TYPE_VFS_MATERIALIZE_DATALESS_FILES, IOPOL_SCOPE_PROCESS, IOPOL_SCOPE_THREAD
_MATERIALIZE, _PROCESS, _THREAD, _ON = 3, 0, 1, 2
_TEXT_BYTES = 256


def library() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def sysctl_int(name: str) -> int | None:
    """A number of sysctl(3); ``None`` elsewhere, and where the system does not know the name."""
    if not _MAC:
        return None
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    refused = library().sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return None if refused else value.value


def sysctl_text(name: str) -> str:
    """A text of sysctl(3); empty elsewhere, and where the system does not know the name."""
    if not _MAC:
        return ""
    buffer, size = ctypes.create_string_buffer(_TEXT_BYTES), ctypes.c_size_t(_TEXT_BYTES)
    refused = library().sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if refused else buffer.value.decode("utf-8", "replace")


def boot_s() -> int | None:
    """When the machine started, in seconds since 1970 (``kern.boottime``, whose first field that is)."""
    if not _MAC:
        return None
    value, size = (ctypes.c_int64 * 2)(), ctypes.c_size_t(16)
    refused = library().sysctlbyname(b"kern.boottime", value, ctypes.byref(size), None, ctypes.c_size_t(0))
    return None if refused else int(value[0])


def translated() -> bool:
    """Whether this process runs under Rosetta: made for Intel, on Apple Silicon."""
    return sysctl_int("sysctl.proc_translated") == 1


def download_policy() -> int:
    """Whether this process's reads download files from iCloud: 0 the system's default, 1 off, 2 on; -1 unknown."""
    return int(library().getiopolicy_np(_MATERIALIZE, _PROCESS)) if _MAC else -1


def allow_downloads() -> bool:
    """Let this thread's reads download; a process that launchd did not start may have that switched off."""
    return bool(_MAC and library().setiopolicy_np(_MATERIALIZE, _THREAD, _ON) == 0)
