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

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
CAPABILITY_VERSION = 0x20080522
LAST_CAPABILITY = 63
NICE = 10
"""How much lower the priority of a sandbox and of its supervisor is than that of the server."""
MAX_THREADS = 256
"""Maximum number of threads of a worker, which runs Python code."""


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. Only Linux can do this."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def become_subreaper() -> None:
    """Make this process the new parent of its descendants whose own parent has ended. Only Linux can do this."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def set_dumpable(value: bool) -> None:
    """Set whether other processes of the same user may access the memory of this process. Only Linux can do this."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_DUMPABLE, int(value), 0, 0, 0)


def max_tasks(policy: Policy, *, processes: bool) -> int:
    """Return the maximum number of processes and threads of a sandbox."""
    return policy.limits.processes if processes else MAX_THREADS


def confine(level: Level, policy: Policy, *, processes: bool) -> int | None:
    """Confine this process and its children irrevocably. `processes`: whether it may create processes. Raises OSError.

    Returns the *listener*: the file descriptor on which the kernel asks before it creates a process or a thread; None
    at the level `none`, or if the kernel cannot ask. Without a listener only RLIMIT_NPROC limits their number. That
    limit has no effect on root, so for root a missing listener is an error. `confine_files` completes the confinement.
    """
    set_limits(policy)
    lower_priority(processes=processes)
    if level == "none":
        return None
    if _libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError("the kernel refuses no_new_privs")
    drop_capabilities()
    # The supervisor notices more than `max_tasks` first, unless the kernel cannot ask it.
    tasks = 2 * max_tasks(policy, processes=processes)
    if level == "bubblewrap":
        _limit(resource.RLIMIT_NPROC, tasks)
    if level == "landlock":
        _limit(resource.RLIMIT_NPROC, tasks_of_user() + tasks)  # without a namespace, the limit counts all of the user
        landlock.restrict(policy.read_only, [policy.workspace], network=policy.network)
    return seccomp.install(
        seccomp.Rules(policy.network, processes, namespaces=level == "bubblewrap"), needs_listener=os.getuid() == 0
    )


def set_limits(policy: Policy) -> None:
    """Set the resource limits of this process and its children."""
    limits = policy.limits
    _limit(resource.RLIMIT_AS, limits.memory_mb * MB)
    _limit(resource.RLIMIT_CPU, limits.cpu_seconds)
    _limit(resource.RLIMIT_FSIZE, limits.file_mb * MB)
    _limit(resource.RLIMIT_CORE, 0)


def confine_files(level: Level, policy: Policy, *, processes: bool) -> None:
    """Complete the confinement by `confine`, after its listener was sent to the supervisor. Raises OSError.

    Limits the open files, and refuses to send them and to change limits. The limit of open files is also that of the
    files which all processes of the user have sent and no process has received. So it must not hold yet while this
    process sends the listener: other sandboxes might have reached it.
    """
    _limit(resource.RLIMIT_NOFILE, policy.limits.open_files)
    if level != "none":
        seccomp.install_second(seccomp.Rules(policy.network, processes))


def lower_priority(*, processes: bool) -> None:
    """Lower the scheduling priority of this process and its children.

    A process that may create others gets the idle class, so that its supervisor can count and kill the thousands of
    processes of a fork bomb in time. A service manager may forbid this, as a filter of system calls in a systemd unit
    does; the code then runs with the priority of the server.
    """
    raise_nice_value()
    if processes and hasattr(os, "SCHED_IDLE"):
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def raise_nice_value() -> None:
    """Lower the priority of this process within its scheduling class, unless a service manager forbids it."""
    with suppress(PermissionError):
        os.nice(NICE)


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
    """Drop all capabilities, so that root in a sandbox has no more rights than other users.

    A service manager may forbid `capset`, which is needed only if the process has capabilities.
    """
    libc = _libc()
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for unknown ones, and without CAP_SETPCAP
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()) != 0 and has_capabilities():
        raise OSError("the kernel refuses to drop capabilities")


def has_capabilities() -> bool:
    """Whether this process has any capability, or can get one by executing a program."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8", "replace").splitlines())
    return any(int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
