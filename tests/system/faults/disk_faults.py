"""Faults for a real server: full disks, read-only files, and programs that hold a lock.

With the necessary rights, a small file system is mounted, and files are made immutable. Without them, a resource limit
keeps the files of the server from growing, which fails at the same places.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from tests.system.processes.server_process import ServerProcess

BLOCK = 64 * 1024
LOG_ROOM = 128 * 1024
"""Maximum size of the server's files: enough for its log, and less than the database's own log."""


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Generator[bool]:
    """Mount a small file system at this folder. Yields False, with an ordinary folder, if mounting is not permitted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk: Path, mounted: bool, server: ServerProcess) -> Generator[None]:
    """Fill the disk completely."""
    if not mounted:
        with growing_forbidden(server):
            yield
        return
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (BLOCK, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    yield
    ballast.unlink()


def started_when_full(disk: Path, mounted: bool, server: ServerProcess) -> "subprocess.CompletedProcess[str]":
    """Start the command of an ended server on a full disk."""

    def forbid_growing() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    def start(before: Callable[[], None] | None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(server.command, capture_output=True, text=True, timeout=60, preexec_fn=before)

    if not mounted:
        return start(forbid_growing)
    with full(disk, mounted, server):
        return start(None)


@contextmanager
def growing_forbidden(server: ServerProcess) -> Generator[None]:
    """Forbid the server to write beyond the first bytes of any file."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (LOG_ROOM, before[1]))
    yield
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def unwritable(data: Path, server: ServerProcess) -> Generator[None]:
    """Make the database read-only, also for open handles."""
    files = [str(data / "limelight.db"), str(data / "limelight.db-wal")]
    if subprocess.run(["chattr", "+i", *files], capture_output=True).returncode:
        with growing_forbidden(server):
            yield
        return
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *files], check=True)


@contextmanager
def locked_by_another(database: Path, seconds: float) -> Generator["subprocess.Popen[bytes]"]:
    """A program that locks the database for some seconds."""
    program = (
        "import sqlite3, sys, time\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)\n"
        "db.execute('BEGIN EXCLUSIVE')\n"
        "print('locked', flush=True)\n"
        "time.sleep(float(sys.argv[2]))\n"
        "db.execute('ROLLBACK')\n"
    )
    command = [sys.executable, "-c", program, str(database), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}) as other:
        assert other.stdout is not None and other.stdout.readline() == b"locked\n"
        try:
            yield other
        finally:
            other.kill()
