"""The program that runs a shell command in a sandbox, and ends all processes of the command.

It starts the command as a confined child process, and is not confined by Landlock and seccomp itself; namespaces
enclose both. The kernel asks it before the command creates a process. It kills the command if its processes together
exceed the limits, or when the server closes its standard input. Orphaned processes of the command become its children,
so none survives.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from functools import partial

from limelight.sandbox.confinement import max_tasks
from limelight.sandbox.launch import read_arguments
from limelight.sandbox.policy import MB, Level, Policy
from limelight.sandbox.supervisor import ConfinedChild, ProcessInfo, descendants, start_confined, temporary_excess
from limelight.sandbox.workspace_size import WorkspaceWatch

INTERVAL_SECONDS = 0.05
"""Interval at which the processes of the command are compared with the limits."""
KILL_INTERVAL_SECONDS = 0.002
SHELL = "/bin/sh"
KILLED_EXIT_CODE = 137


def main(argv: list[str]) -> None:
    level, policy, (command,) = read_arguments(argv)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would let a command interrupt this process
    watch = WorkspaceWatch(policy.workspace, policy.limits.workspace_bytes)
    run = partial(run_command, command)
    child = start_confined(level, policy, run, processes=True, max_tasks=max_tasks(policy, processes=True))
    with suppress(OSError):  # the child has done it itself, or has ended
        os.setpgid(child.pid, child.pid)
    watch.start()
    sys.exit(supervise(child, level, policy, watch))


def run_command(command: str) -> None:
    """Replace this process by a shell that runs the command."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execv(SHELL, ["sh", "-c", command])


def supervise(child: ConfinedChild, level: Level, policy: Policy, watch: WorkspaceWatch) -> int:
    """Wait until the command has ended, kill all processes that it has left, and return its exit code."""
    try:
        code, excess = wait_for_command(child, level, policy, watch)
    finally:  # also after an error of this program
        kill_descendants(child.pid)
    if excess:
        with suppress(OSError):  # the server has closed the pipe
            os.write(2, f"\n(killed: {excess})\n".encode())
    return KILLED_EXIT_CODE if code is None else code


def wait_for_command(
    child: ConfinedChild, level: Level, policy: Policy, watch: WorkspaceWatch
) -> tuple[int | None, str]:
    """Wait until the command ends or has to be killed. Return its exit code, and the limit that it exceeds."""
    code, excess, next_count = None, "", 0.0
    while code is None and not excess:
        ready = child.wait([0], INTERVAL_SECONDS)
        if 0 in ready:  # closed by the server, or by its end
            code = KILLED_EXIT_CODE
            break
        code = reap(child.pid)
        if child.listener in ready and child.answer() == "too many processes":
            excess = too_many(policy)
        if time.monotonic() >= next_count:
            excess = excess or exceeded_limit(descendants(os.getpid()), policy) or temporary_excess(level)
            excess = excess or watch.excess
            next_count = time.monotonic() + INTERVAL_SECONDS
    return code, excess


def too_many(policy: Policy) -> str:
    return f"more than {policy.limits.processes} processes"


def exceeded_limit(processes: list[ProcessInfo], policy: Policy) -> str:
    """Return a description of the limit that the processes of the command exceed; "" if they exceed none."""
    if len(processes) > policy.limits.processes:
        return too_many(policy)
    if sum(process.resident_bytes for process in processes) > policy.limits.memory_mb * MB:
        return f"more than {policy.limits.memory_mb} MB of memory"
    return ""


def reap(child: int) -> int | None:
    """Collect the exit status of child processes that have ended. Return that of the command, None while it runs."""
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
    """Kill all processes of the command, and those that they create during the call. `group` is its process group.

    One signal kills a whole process group or namespace, so that no process can create another one in between. At the
    level `none`, processes are listed and killed one by one, and a list may miss a process whose parent ends at that
    moment. Such a process becomes a child of this one, so all have ended when this one has no children left.
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


if __name__ == "__main__":
    main(sys.argv[1:])
