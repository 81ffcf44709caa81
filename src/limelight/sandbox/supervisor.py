"""Starts a confined child process, and allows or refuses the processes and signals that the child wants to create.

The programs inside a sandbox call this. `RLIMIT_NPROC` cannot limit the processes of a sandbox: the kernel does not
apply it to root, and counts all processes of a user together. Instead, the seccomp filter of the child makes the kernel
ask this process, the supervisor, before it creates a process or a thread. The kernel also asks it before it creates a
pair of sockets. The supervisor itself is not confined; no code of a model runs in it.
"""

import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from limelight.sandbox.confinement import (
    become_subreaper,
    confine,
    confine_files,
    end_with_parent,
    raise_nice_value,
    set_dumpable,
)
from limelight.sandbox.policy import Level, Policy
from limelight.sandbox.seccomp import ALL_SIGNALS, CLONE_THREAD, NUMBERS, machine

PAGE = os.sysconf("SC_PAGE_SIZE")
RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
"""The ioctls of a seccomp listener, which Linux names SECCOMP_IOCTL_NOTIF_RECV, …_SEND and …_ID_VALID."""
SA_RESTART = 0x10000000
FLAGS_OFFSET = 8
FLAGS_SIZE = 8
"""Offset and size of `sa_flags` in the kernel's `struct sigaction`."""
REQUEST_BYTES = 80
INTERVAL_SECONDS = 0.25
"""Interval at which a worker is compared with the limits that the kernel does not enforce."""
CONTINUE = 1
REFUSAL_SECONDS = 0.01
"""Delay before a new process or thread is refused, so that code which retries in a loop does not keep this one busy."""

MAX_SOCKET_PAIRS = 32
"""Maximum number of pairs of sockets in a sandbox. No limit of the kernel counts their buffers, about 1 MB each."""
REQUESTS_PER_SECOND = 1000
REQUEST_BURST = 2000
"""Limit of the requests of the kernel that are answered without delay, so that code in a loop does not keep the
supervisor busy, whose CPU time is not limited."""
MAX_TEMPORARY_FILES = 16_384
"""Maximum number of files and folders in TEMPORARY_FOLDERS. The size of these folders does not limit it, because names
and empty files need memory of the kernel only."""
TEMPORARY_FOLDERS = ("/tmp", "/dev/shm")
"""The folders in memory of a sandbox with the level `bubblewrap`."""

Answer = Literal["allowed", "refused", "too many processes"]


class ProcessInfo(NamedTuple):
    """What `/proc` says about a process. `tasks` is the number of its threads, `session` that of its session."""

    pid: int
    parent: int
    resident_bytes: int
    tasks: int = 1
    session: int = 0


class ConfinedChild:
    """A confined child process of this one, whose system calls this process allows or refuses when the kernel asks.

    A signal with a handler interrupts a system call that waits for the answer of this process. So `fork` of a shell
    would fail with EINTR, which shells do not expect, if another process of it ends in that moment. The supervisor
    therefore adds SA_RESTART to handlers of SIGCHLD: the kernel then repeats the system call.
    """

    def __init__(self, pid: int, channel: socket.socket | None, max_tasks: int) -> None:
        """Receive from the child, through `channel`, the listener on which the kernel's requests arrive."""
        self.pid = pid
        self.listener = _received_listener(channel) if channel is not None else None
        self._max_tasks = max_tasks
        self._may_create = 0
        """Number of processes and threads that the child may create before they have to be counted again."""
        self._may_pair = 0
        """Number of pairs of sockets that the child may create before they have to be counted again."""
        self._paid_until = 0.0
        """Time until which the requests of the kernel use up their rate."""

    def answer(self) -> Answer:
        """Wait for a request of the kernel, and allow or refuse the system call that it is about."""
        assert self.listener is not None
        request = bytearray(REQUEST_BYTES)
        try:
            fcntl.ioctl(self.listener, RECEIVE, request)
        except OSError:  # the task was killed
            return "allowed"
        self._wait_for_rate()
        number, *arguments = struct.unpack_from("=i12x6Q", request, 16)
        if number == NUMBERS[machine()]["rt_sigaction"]:
            self._add_restart(request, arguments[1])
            answer: Answer = "allowed"
        else:
            answer = self._decide(number, arguments)
        reply = (0, CONTINUE)
        if answer != "allowed":
            reply = (-_refusal(number), 0)
            time.sleep(REFUSAL_SECONDS)
        with suppress(OSError):  # the task was killed
            fcntl.ioctl(self.listener, SEND, request[:8] + struct.pack("=qiI", 0, *reply))
        return answer

    def _wait_for_rate(self) -> None:
        now = time.monotonic()
        self._paid_until = max(self._paid_until, now - REQUEST_BURST / REQUESTS_PER_SECOND) + 1 / REQUESTS_PER_SECOND
        time.sleep(max(0.0, self._paid_until - now))

    def _add_restart(self, request: bytearray, address: int) -> None:
        """Add SA_RESTART to the flags of the signal handler at `address` in the memory of the process that sets it."""
        assert self.listener is not None
        (pid,) = struct.unpack_from("=I", request, 8)
        with suppress(OSError):  # the task was killed
            flags = _copy_memory("process_vm_readv", pid, address + FLAGS_OFFSET, bytes(FLAGS_SIZE))
            changed = struct.pack("=Q", struct.unpack("=Q", flags)[0] | SA_RESTART)
            fcntl.ioctl(self.listener, IS_VALID, bytes(request[:8]))  # `pid` is still the task, and not a later process
            _copy_memory("process_vm_writev", pid, address + FLAGS_OFFSET, changed)

    def wait(self, other_files: Iterable[int], seconds: float) -> list[int]:
        """Wait at most `seconds` for a request of the kernel or one of `other_files`. Return the files that are ready.

        Closes the listener, and sets it to None, when all processes of the child have ended.
        """
        poll = select.poll()
        for file in (*other_files, *(() if self.listener is None else (self.listener,))):
            poll.register(file, select.POLLIN)
        ready = dict(poll.poll(seconds * 1000))
        if self.listener is not None and ready.get(self.listener, 0) & ~select.POLLIN:
            os.close(self.listener)
            ready.pop(self.listener)
            self.listener = None
        return list(ready)

    def wait_for_end(self, excess: Callable[[], str]) -> int:
        """Answer requests of the kernel until the child ends, and return the exit status of the child.

        The child is killed when `excess` returns a description of a limit that it exceeds.
        """
        end, next_count = os.pidfd_open(self.pid), 0.0
        while end not in (ready := self.wait([end], INTERVAL_SECONDS)):
            if self.listener in ready:
                self.answer()
            if time.monotonic() >= next_count:
                if found := excess():
                    with suppress(OSError):  # the server has closed the pipe
                        os.write(2, f"killed: {found}\n".encode())
                    os.kill(self.pid, signal.SIGKILL)
                next_count = time.monotonic() + INTERVAL_SECONDS
        os.close(end)
        return os.waitpid(self.pid, 0)[1]

    def _decide(self, number: int, arguments: list[int]) -> Answer:
        if number == NUMBERS[machine()]["socketpair"]:
            return self._decide_on_pair()
        if _is_signal(number):
            return "allowed" if self._may_signal(_signed(arguments[0])) else "refused"
        if self._may_create <= 0:
            # The count may miss tasks that were just allowed, so up to twice as many tasks can exist.
            self._may_create = self._max_tasks - sum(process.tasks for process in descendants(os.getpid()))
        if self._may_create > 0:
            self._may_create -= 1
            return "allowed"
        is_thread = number == NUMBERS[machine()]["clone"] and arguments[0] & CLONE_THREAD
        return "refused" if is_thread else "too many processes"

    def _decide_on_pair(self) -> Answer:
        if self._may_pair <= 0:  # as with tasks, twice as many can exist
            self._may_pair = MAX_SOCKET_PAIRS - open_sockets(descendants(os.getpid())) // 2
        self._may_pair -= 1
        return "allowed" if self._may_pair >= 0 else "refused"

    def _may_signal(self, target: int) -> bool:
        """Whether the target of a system call such as `kill` is a process of the child, or its process group."""
        return target in (0, -self.pid) or is_descendant(target, os.getpid())


def start_confined(
    level: Level, policy: Policy, program: Callable[[], None], *, processes: bool, max_tasks: int
) -> ConfinedChild:
    """Start a confined child process that calls `program`. `processes`: whether it may create processes.

    Returns only in the parent; the child ends with `program`. The child's working folder is the workspace.
    """
    become_subreaper()
    set_dumpable(False)  # with the same user, the child could use the memory of this process otherwise
    parent_end, child_end = (None, None) if level == "none" else socket.socketpair()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        if parent_end is not None:
            parent_end.close()
        _run(level, policy, program, processes=processes, channel=child_end, parent=parent)
    raise_nice_value()  # code causes work of this process, too, in a class with precedence over that of commands
    if child_end is not None:
        child_end.close()
    return ConfinedChild(pid, parent_end, max_tasks)


def _run(
    level: Level,
    policy: Policy,
    program: Callable[[], None],
    *,
    processes: bool,
    channel: socket.socket | None,
    parent: int,
) -> None:
    try:
        end_with_parent()
        if os.getppid() != parent:  # it has ended before
            os._exit(1)
        set_dumpable(True)
        if processes:
            os.setpgid(0, 0)
        os.chdir(policy.workspace)
        listener = confine(level, policy, processes=processes)
        if channel is not None:
            if listener is not None:
                socket.send_fds(channel, [b"listener"], [listener])
                os.close(listener)  # with it, code could allow everything to itself
            channel.close()
        confine_files(level, policy, processes=processes)
    except BaseException as error:
        os.write(2, f"the sandbox could not be set up: {error}\n".encode())
        os._exit(126)
    program()
    os._exit(0)


def _received_listener(channel: socket.socket) -> int | None:
    """Return the listener that a child sends; None if the kernel does not support one, or if the child has failed."""
    with channel:
        files = socket.recv_fds(channel, 100, 1)[1]
    return files[0] if files else None


def _is_signal(number: int) -> bool:
    numbers = NUMBERS[machine()]
    return number in [numbers[name] for name in ALL_SIGNALS]


def _refusal(number: int) -> int:
    """Return the error number with which a system call is refused."""
    if number == NUMBERS[machine()]["socketpair"]:
        return errno.EMFILE
    return errno.ESRCH if _is_signal(number) else errno.EAGAIN


def temporary_excess(level: Level) -> str:
    """Return a description of the limit if there are too many temporary files in memory; "" if there are not."""
    if level != "bubblewrap":
        return ""
    found = [os.statvfs(folder) for folder in TEMPORARY_FOLDERS]
    files = sum(each.f_files - each.f_ffree for each in found)
    return f"more than {MAX_TEMPORARY_FILES} temporary files" if files > MAX_TEMPORARY_FILES else ""


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _copy_memory(function: str, pid: int, address: int, data: bytes) -> bytes:
    """Read or write the memory of another process with the named system call. Return the data. Raises OSError."""
    buffer = ctypes.create_string_buffer(data, len(data))
    local = _Vector(ctypes.addressof(buffer), len(data))
    remote = _Vector(address, len(data))
    call = getattr(ctypes.CDLL(None, use_errno=True), function)
    one, no_flags = ctypes.c_ulong(1), ctypes.c_ulong(0)
    if call(pid, ctypes.byref(local), one, ctypes.byref(remote), one, no_flags) != len(data):
        raise OSError(ctypes.get_errno(), function)
    return buffer.raw


def _signed(value: int) -> int:
    return struct.unpack("=i", struct.pack("=I", value & 0xFFFFFFFF))[0]


def is_descendant(pid: int, root: int) -> bool:
    """Whether a process or thread is a descendant of a process."""
    while pid > 0:
        if (process := _read(Path(f"/proc/{pid}"))) is None:
            return False
        if process.parent == root:
            return True
        pid = process.parent
    return False


def all_processes() -> list[ProcessInfo]:
    """Return all processes of this system; none on a system without `/proc`.

    They include ended processes whose exit status was not collected, because these occupy the process table too.
    """
    if not Path("/proc").is_dir():
        return []
    return [info for entry in Path("/proc").iterdir() if entry.name.isdecimal() and (info := _read(entry))]


def descendants(root: int) -> list[ProcessInfo]:
    """Return all descendants of a process, as `all_processes` does."""
    children: dict[int, list[ProcessInfo]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process)
    found: list[ProcessInfo] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.pid for process in below]
    return found


def open_sockets(processes: Iterable[ProcessInfo]) -> int:
    """Return the number of sockets that these processes have open; if one hides its files, the maximum."""
    found: set[str] = set()
    for process in processes:
        folder = Path(f"/proc/{process.pid}/fd")
        try:
            found.update(_links(folder))
        except PermissionError:
            return 2 * MAX_SOCKET_PAIRS
    return sum(target.startswith("socket:") for target in found)


def _links(folder: Path) -> Iterator[str]:
    """Yield the targets of the links in a folder. Links and folders that are removed meanwhile are left out."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for link in folder.iterdir():
            with suppress(FileNotFoundError):
                yield str(link.readlink())


def _read(entry: Path) -> ProcessInfo | None:
    try:
        # Any process can have any bytes in its name, which is part of this file.
        fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:  # it has ended
        return None
    parent, session, tasks, pages = int(fields[1]), int(fields[3]), int(fields[17]), int(fields[21])
    return ProcessInfo(int(entry.name), parent, pages * PAGE, max(1, tasks), session)
