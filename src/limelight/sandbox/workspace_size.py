"""Measures the workspace of a sandbox while its code runs, so that the code can be ended when it fills the disk."""

import math
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from limelight.file_trees import open_inside

ENTRY_BYTES = 4096
"""The least size for which a file, a folder or a link counts, because each of them needs space too."""
MAX_DEPTH = 100
"""Depth of nested folders beyond which a workspace counts as full, because measuring it would take too long."""
INTERVAL_SECONDS = 1.0
SHARE = 20
"""The pause between two measurements is at least this many times as long as a measurement."""
MB = 1024 * 1024


def used_bytes(folder: Path, enough: float = math.inf) -> float:
    """Return the size of what is in a folder; not much more than `enough`.

    It is infinite if a folder in it cannot be read, or is nested too deep. No link is followed.
    """
    total, waiting = 0.0, [""]
    while waiting and total <= enough:
        name = waiting.pop()
        try:
            size, folders = _list_sizes(folder, name)
        except PermissionError:
            return math.inf
        except OSError:  # it was removed
            continue
        if folders and name.count("/") >= MAX_DEPTH:
            return math.inf
        total += size
        waiting += folders
    return total


def _list_sizes(root: Path, name: str) -> tuple[int, list[str]]:
    """Return the size of what is in the folder `name` below `root`, and the paths of the folders in it."""
    size, folders = 0, list[str]()
    descriptor = open_inside(root, name)
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)  # blocks may be reserved beyond the end, or come later
                    size += max(ENTRY_BYTES, found.st_size, found.st_blocks * 512)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{name}/{entry.name}")
    finally:
        os.close(descriptor)
    return size, folders


class WorkspaceWatch:
    """Measures a workspace about once per second, in a thread, until the process ends.

    Code in a workspace that is full already may run as long as the workspace does not grow, so that it can delete
    files; but not if it has twice the maximum size.
    """

    def __init__(self, folder: str, max_bytes: int) -> None:
        """Measure the workspace before its code starts. `max_bytes` 0: it has no limit and is not measured."""
        self.excess = ""
        """A description of the limit, once the workspace exceeds it."""
        self._folder = Path(folder)
        self._max_bytes = float(max_bytes)
        self._description = f"more than {max_bytes / MB:g} MB in the workspace"
        if max_bytes:
            size = used_bytes(self._folder, 2 * max_bytes)
            if max_bytes < size <= 2 * max_bytes:
                self._max_bytes = size

    def start(self) -> None:
        if self._max_bytes:
            threading.Thread(target=self._measure, name="workspace-size", daemon=True).start()

    def _measure(self) -> None:
        while not self.excess:
            began = time.monotonic()
            if used_bytes(self._folder, self._max_bytes) > self._max_bytes:
                self.excess = self._description
            time.sleep(max(INTERVAL_SECONDS, SHARE * (time.monotonic() - began)))
