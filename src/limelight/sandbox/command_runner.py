"""The program that runs a shell command in a sandbox, and ends all processes of the command.

It starts the command as a confined child, and stays outside of the confinement itself (in a sandbox with namespaces,
both are inside). It kills the command if its processes together exceed the limits, and when its standard input, which
the server holds, is closed. Orphaned processes become its children, so none survives.
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from limelight.sandbox.confinement import become_subreaper, confine, end_with_parent
from limelight.sandbox.launch import read_arguments
from limelight.sandbox.policy import MB, Level, Policy

INTERVAL_SECONDS = 0.05
"""How often the processes of the command are counted."""
KILL_INTERVAL_SECONDS = 0.002
SHELL = "/bin/sh"
KILLED_EXIT_CODE = 137
PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessInfo(NamedTuple):
    """A process in `/proc`."""

    pid: int
    parent: int
    resident_bytes: int


def main(argv: list[str]) -> None:
    level, policy, (command,) = read_arguments(argv)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would let a command interrupt this process
    become_subreaper()
    child = os.fork()
    if child == 0:
        run_command(level, policy, command)
    with suppress(OSError):  # the child has done it itself, or has ended
        os.setpgid(child, child)
    sys.exit(supervise(child, policy))


def run_command(level: Level, policy: Policy, command: str) -> None:
    """Confine this process and replace it by the shell."""
    try:
        os.setpgid(0, 0)
        end_with_parent()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.chdir(policy.workspace)
        confine(level, policy, processes=True)
        os.execv(SHELL, ["sh", "-c", command])
    except BaseException as error:
        os.write(2, f"the sandbox could not be set up: {error}\n".encode())
        os._exit(126)


def supervise(child: int, policy: Policy) -> int:
    """Wait for the command, and return its exit code. All its processes have ended then."""
    code, excess = None, ""
    while code is None:
        is_closed = bool(select.select([0], [], [], INTERVAL_SECONDS)[0])  # by the server, or by its end
        excess = exceeded_limit(descendants(os.getpid()), policy)
        code = KILLED_EXIT_CODE if is_closed or excess else reap(child)
    kill_descendants(child)
    if excess:
        with suppress(OSError):  # nobody reads
            os.write(2, f"\n(killed: {excess})\n".encode())
    return code


def exceeded_limit(processes: list[ProcessInfo], policy: Policy) -> str:
    """Return the limit that the processes of the command exceed; "" if they exceed none."""
    if len(processes) > policy.limits.processes:
        return f"more than {policy.limits.processes} processes"
    if sum(process.resident_bytes for process in processes) > policy.limits.memory_mb * MB:
        return f"more than {policy.limits.memory_mb} MB of memory"
    return ""


def reap(child: int) -> int | None:
    """Collect processes that have ended. Return the exit code of the command, None while it runs."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return KILLED_EXIT_CODE
        if pid == 0:
            return None
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def kill_descendants(group: int) -> None:
    """Kill all processes of the command, including those that it creates meanwhile. `group` is its process group.

    One signal reaches a whole group or namespace, so that no process can create others before its turn. A list of
    processes, for the level `none`, can miss one whose parent ends while the list is made. This process becomes the
    parent of such a process, so all have ended once it has no children.
    """
    while True:
        with suppress(OSError):  # all have ended
            if os.getpid() == 1:  # in a namespace: the signal reaches all its other processes
                os.kill(-1, signal.SIGKILL)
            else:
                os.killpg(group, signal.SIGKILL)
        for process in descendants(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(KILL_INTERVAL_SECONDS)


def descendants(root: int) -> list[ProcessInfo]:
    """Return the processes below a process, without those that have ended; none on a system without `/proc`."""
    if not Path("/proc").is_dir():
        return []
    processes = [info for entry in Path("/proc").iterdir() if entry.name.isdecimal() and (info := _read(entry))]
    children: dict[int, list[ProcessInfo]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found: list[ProcessInfo] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.pid for process in below]
    return found


def _read(entry: Path) -> ProcessInfo | None:
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return None
    state, parent, pages = fields[0], int(fields[1]), int(fields[21])
    return None if state in "ZX" else ProcessInfo(int(entry.name), parent, pages * PAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
