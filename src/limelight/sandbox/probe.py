"""The program that runs in a sandbox to check that code in it is confined. It prints `confined`, or what is not."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from limelight.sandbox.launch import read_arguments
from limelight.sandbox.supervisor import start_confined

MAX_PROCESSES = 4
TRIED_PROCESSES = 24
"""Number of processes that the probe tries to create. It exceeds twice MAX_PROCESSES, which RLIMIT_NPROC may allow."""


def main(argv: list[str]) -> None:
    """Check the confinement of a child that may create no processes, then of one that may create some."""
    level, policy, (secret,) = read_arguments(argv)
    for check, processes in ((partial(confinement_problem, secret), False), (process_limit_problem, True)):
        child = start_confined(level, policy, partial(report, check), processes=processes, max_tasks=MAX_PROCESSES)
        if child.wait_for_end(str) != 0:
            return
    sys.stdout.write("confined")


def report(check: Callable[[], str]) -> None:
    """Write the result of a check to standard output, and end the process with an exit code."""
    found = check()
    sys.stdout.write(found)
    sys.stdout.flush()
    os._exit(1 if found else 0)


def confinement_problem(secret: str) -> str:
    """Return what the sandbox fails to prevent, or prevents although it is needed; "" if it confines code properly."""
    try:
        Path(secret).read_bytes()
        return "a file outside of the workspace can be read"
    except OSError:
        pass
    try:
        socket.socket().close()
        return "a socket can be created"
    except OSError:
        pass
    try:
        os._exit(0) if os.fork() == 0 else None
        return "a process can be created"
    except OSError:
        pass
    try:
        Path("probe").write_text("written")
    except OSError as error:
        return f"the workspace cannot be written: {error}"
    return ""


def process_limit_problem() -> str:
    """Return an error message if the sandbox does not limit the number of processes; "" if it does."""
    created: list[int] = []
    try:
        while len(created) < TRIED_PROCESSES:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            created.append(pid)
    except OSError:
        return "" if created else "no process can be created"
    finally:
        for pid in created:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return "the number of processes is not limited"


if __name__ == "__main__":
    main(sys.argv[1:])
