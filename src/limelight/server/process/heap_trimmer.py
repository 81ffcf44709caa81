"""Frees unreachable objects, and returns free memory of the C heap to the operating system.

An ended connection is a reference cycle, with its last input. Python collects it only when many new objects have been
created, so an idle server would keep it. glibc keeps the memory of freed buffers for later, if buffers that are still
in use lie behind it. After a flood of large requests both are hundreds of megabytes. Other C libraries have no function
that returns it.
"""

import asyncio
import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path

CHECK_SECONDS = 4.0
GROWTH_BYTES = 24 * 1024 * 1024
"""Growth of the process's resident memory since its start above which the heap is trimmed."""
MMAP_BYTES = 128 * 1024
YOUNG_GENERATION = 1
"""The oldest generation of objects that the trimmer collects. A full collection would pause a server with many runs."""
_M_MMAP_THRESHOLD = -3
_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the resident memory of this process. Linux only."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def find_trim() -> Callable[[int], int] | None:
    """Return glibc's function `malloc_trim`, which returns free heap memory to the system; None without glibc."""
    if not _STATM.exists():
        return None
    try:
        trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except OSError:
        return None
    return trim


def keep_mmap_threshold() -> None:
    """Make glibc allocate every buffer over MMAP_BYTES outside of the heap, so that large inputs do not fragment it.

    Without this, glibc raises the threshold to up to 32 MB as soon as a large buffer is freed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES)


class HeapTrimmer:
    """Collects young garbage and trims the heap, every CHECK_SECONDS while the process has grown by GROWTH_BYTES.

    The size of the process does not show whether a trim would help, because freed buffers still count. A trim that does
    not help costs some milliseconds for a heap of 300 MB.
    """

    def __init__(self, trim: Callable[[int], int], resident: Callable[[], int] = resident_bytes) -> None:
        self._trim = trim
        self._resident = resident
        self._limit = resident() + GROWTH_BYTES

    async def run(self) -> None:
        """Check every CHECK_SECONDS until the task is cancelled. The heap is trimmed in a thread."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if self._resident() > self._limit:
                gc.collect(YOUNG_GENERATION)
                await asyncio.to_thread(self._trim, 0)
