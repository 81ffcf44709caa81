"""Confines the current process. The programs inside a sandbox call this before they run any code of a model."""

import ctypes
import os
import resource
import signal
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

from limelight.sandbox import landlock, seccomp
from limelight.sandbox.policy import MB, Level, Policy

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
CAPABILITY_VERSION = 0x20080522
LAST_CAPABILITY = 63
MAX_THREADS = 256
"""How many threads a worker may have, where the kernel can count them."""


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. Only Linux can do this."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def become_subreaper() -> None:
    """Make this process the parent of all processes below it whose own parent has ended. Only Linux can do this."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def confine(level: Level, policy: Policy, *, processes: bool) -> None:
    """Confine this process and its children. `processes` says whether it may create any. Raises OSError."""
    set_limits(policy)
    lower_priority(processes=processes)
    if level == "none":
        return
    if _libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError("the kernel refuses no_new_privs")
    drop_capabilities()
    tasks = policy.limits.processes if processes else MAX_THREADS
    if level == "bubblewrap":
        _limit(resource.RLIMIT_NPROC, tasks)
    if level == "landlock":
        _limit(resource.RLIMIT_NPROC, tasks_of_user() + tasks)  # without a namespace, the limit counts all of the user
        landlock.restrict(policy.read_only, [policy.workspace], network=policy.network)
    seccomp.install(seccomp.Rules(policy.network, processes, namespaces=level == "bubblewrap"))


def set_limits(policy: Policy) -> None:
    """Set the resource limits of this process and its children."""
    limits = policy.limits
    _limit(resource.RLIMIT_AS, limits.memory_mb * MB)
    _limit(resource.RLIMIT_CPU, limits.cpu_seconds)
    _limit(resource.RLIMIT_FSIZE, limits.file_mb * MB)
    _limit(resource.RLIMIT_NOFILE, limits.open_files)
    _limit(resource.RLIMIT_CORE, 0)


def lower_priority(*, processes: bool) -> None:
    """Lower the priority of this process and its children.

    A process that may create others gets the idle class: its runner, which counts and kills them, would not get the
    processor in time among thousands of processes of a fork bomb.
    """
    os.nice(10)
    if processes and hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with suppress(ValueError, OSError) if sys.platform != "linux" else nullcontext():  # macOS refuses some limits
        resource.setrlimit(kind, (value, value))


def tasks_of_user() -> int:
    """Return the number of processes and threads of this process's user."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if entry.stat().st_uid == os.getuid():
                count += len(list((entry / "task").iterdir()))
    return count


def drop_capabilities() -> None:
    """Drop all capabilities, so that root in a sandbox has no more rights than other users."""
    libc = _libc()
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for unknown ones, and without CAP_SETPCAP
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError("the kernel refuses to drop capabilities")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
