"""Seccomp filters for sandboxed processes: which system calls the kernel refuses.

There is no maintained package that works without libseccomp, so this module writes the filters as programs of classic
BPF. A filter refuses the listed system calls, and all that are newer than this module. Before some others, such as
those that create a process or a thread, the kernel asks a supervisor process. A filter cannot be removed, and child
processes inherit it.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's ids of the architectures for which this module knows the system call numbers."""
X32_BIT = 0x40000000
"""The bit in the numbers of system calls of the x32 ABI. They are refused, as they would bypass the comparisons."""
FIRST_COMMON = 424
"""The system call number from which on all architectures have the same numbers."""

_X86_64 = {
    "socket": 41, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "semget": 64, "msgget": 68,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101, "shmget": 29, "utime": 132,
    "uselib": 134, "personality": 135, "prctl": 157, "setrlimit": 160, "chroot": 161, "acct": 163, "mount": 165,
    "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175,
    "delete_module": 176, "quotactl": 179, "pivot_root": 155, "settimeofday": 164, "setxattr": 188, "lsetxattr": 189,
    "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "tkill": 200,
    "lookup_dcookie": 212, "clock_settime": 227, "tgkill": 234, "utimes": 235, "mq_open": 240, "kexec_load": 246,
    "add_key": 248, "request_key": 249, "keyctl": 250, "inotify_add_watch": 254, "fchownat": 260, "futimesat": 261,
    "fchmodat": 268, "unshare": 272, "utimensat": 280, "rt_sigqueueinfo": 129, "perf_event_open": 298,
    "rt_tgsigqueueinfo": 297, "fanotify_init": 300, "fanotify_mark": 301, "prlimit64": 302, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "clock_adjtime": 305, "adjtimex": 159, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "execveat": 322,
    "userfaultfd": 323, "ioctl": 16, "sched_setscheduler": 144, "vhangup": 153, "sysfs": 139, "syslog": 103,
    "modify_ldt": 154, "nfsservctl": 180, "migrate_pages": 256, "move_pages": 279, "shmat": 30, "shmctl": 31,
    "semop": 65, "semctl": 66, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "semtimedop": 220, "mq_unlink": 241,
    "socketpair": 53, "fcntl": 72, "setpriority": 141, "sched_setparam": 142, "sched_setaffinity": 203,
    "setpgid": 109, "setsid": 112, "rt_sigaction": 13, "ioprio_set": 251, "sched_setattr": 314, "memfd_create": 319,
    "sendmsg": 46, "sendmmsg": 307, "open": 2, "openat": 257, "creat": 85, "mkdir": 83, "mkdirat": 258, "mknod": 133,
    "mknodat": 259, "io_setup": 206, "getxattr": 191, "lgetxattr": 192, "listxattr": 194, "llistxattr": 195,
}  # fmt: skip
_AARCH64 = {
    "socket": 198, "clone": 220, "execve": 221, "kill": 129, "semget": 190, "msgget": 186, "fchmod": 52, "fchown": 55,
    "ptrace": 117, "shmget": 194, "personality": 92, "prctl": 167, "setrlimit": 164, "chroot": 51, "acct": 89,
    "mount": 40, "umount2": 39, "swapon": 224, "swapoff": 225, "reboot": 142, "init_module": 105, "delete_module": 106,
    "quotactl": 60, "pivot_root": 41, "settimeofday": 170, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7,
    "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "tkill": 130, "lookup_dcookie": 18,
    "clock_settime": 112, "tgkill": 131, "mq_open": 180, "kexec_load": 104, "add_key": 217, "request_key": 218,
    "keyctl": 219, "inotify_add_watch": 27, "fchownat": 54, "fchmodat": 53, "unshare": 97, "utimensat": 88,
    "rt_sigqueueinfo": 138, "perf_event_open": 241, "rt_tgsigqueueinfo": 240, "fanotify_init": 262,
    "fanotify_mark": 263, "prlimit64": 261, "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266,
    "adjtimex": 171, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "finit_module": 273, "kexec_file_load": 294, "bpf": 280, "execveat": 281, "userfaultfd": 282, "ioctl": 29,
    "sched_setscheduler": 119, "vhangup": 58, "syslog": 116, "nfsservctl": 42, "migrate_pages": 238,
    "move_pages": 239, "shmat": 196, "shmctl": 195, "semop": 193, "semctl": 191, "msgsnd": 189, "msgrcv": 188,
    "msgctl": 187, "semtimedop": 192, "mq_unlink": 181, "socketpair": 199, "fcntl": 25, "setpriority": 140,
    "sched_setparam": 118, "sched_setaffinity": 122, "ioprio_set": 30, "sched_setattr": 274, "memfd_create": 279,
    "setpgid": 154, "setsid": 157, "rt_sigaction": 134, "sendmsg": 211, "sendmmsg": 269,
    "openat": 56, "mkdirat": 34, "mknodat": 33, "io_setup": 0, "getxattr": 8, "lgetxattr": 9, "listxattr": 11,
    "llistxattr": 12,
}  # fmt: skip
NUMBERS = {"x86_64": _X86_64, "aarch64": _AARCH64}

COMMON_ALLOWED = {
    "close_range": 436, "faccessat2": 439, "epoll_pwait2": 441, "landlock_create_ruleset": 444,
    "landlock_add_rule": 445, "landlock_restrict_self": 446, "futex_waitv": 449, "map_shadow_stack": 453,
    "futex_wake": 454, "futex_wait": 455, "futex_requeue": 456, "mseal": 462,
}  # fmt: skip
"""The system calls from FIRST_COMMON on that a filter allows. All others fail with ENOSYS, as if they did not exist."""
FCHMODAT2 = 452

ADMINISTRATION = (
    "acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init",
    "fanotify_mark", "finit_module", "init_module", "io_setup", "ioperm", "iopl", "kcmp", "kexec_file_load",
    "kexec_load", "keyctl", "lookup_dcookie", "migrate_pages", "modify_ldt", "mount", "move_pages", "name_to_handle_at",
    "nfsservctl", "open_by_handle_at", "perf_event_open", "personality", "pivot_root", "process_vm_readv",
    "process_vm_writev", "ptrace", "quotactl", "reboot", "request_key", "setns", "settimeofday", "swapoff", "swapon",
    "sysfs", "syslog", "umount2", "unshare", "uselib", "userfaultfd", "vhangup",
)  # fmt: skip
"""Refused in every sandbox: changes of the system, access to other processes, and asynchronous I/O, of whose contexts
the whole system has a fixed number."""
SHARED_MEMORY = (
    "memfd_create", "mq_open", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop",
    "semtimedop", "shmat", "shmctl", "shmget",
)  # fmt: skip
"""Refused in every sandbox: shared memory, which no limit counts and which other processes of the user can open."""
PRIORITY = ("sched_setattr", "sched_setparam", "sched_setscheduler")
"""Refused in every sandbox: changes of the priority, so that code keeps its low priority."""
OTHER_PROCESSES = ("inotify_add_watch", "ioprio_set", "sched_setaffinity", "setpriority")
"""Refused in sandboxes without namespaces: watching other files, and changing the scheduling of other processes."""
NEW_GROUPS = ("setpgid", "setsid")
"""Refused to commands without namespaces: new process groups and sessions. So one signal to its group kills all
processes of a command; signals to single processes would be too slow for a fork bomb."""
METADATA = (
    "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr", "fsetxattr",
    "removexattr", "lremovexattr", "fremovexattr", "utime", "utimes", "utimensat", "futimesat",
)  # fmt: skip
"""Changes of modes, owners, attributes and times of files, which Landlock cannot restrict. In sandboxes without
namespaces they have no effect but report success, so that tools which copy files with their modes work."""
READ_ATTRIBUTES = ("getxattr", "lgetxattr", "listxattr", "llistxattr")
"""Reads of the extended attributes of any file by its path, which Landlock cannot restrict. In sandboxes without
namespaces they fail as on a file system without attributes, which tools that copy files expect."""
SEND_FILES = ("sendmsg", "sendmmsg")
"""Refused in sandboxes without network: what can send open files. The kernel counts files that are sent and not yet
received for each user of the system, so one sandbox could keep all others from sending any. With network, resolvers of
host names need them."""
NEW_PROCESSES = ("fork", "vfork")
NEW_PROGRAMS = ("execve", "execveat")
SIGNALS = ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
ALL_SIGNALS = ("kill", "tgkill", *SIGNALS)
"""Signals. Commands without namespaces may send them to their own processes, so the kernel asks the supervisor."""
NEW_LISTENER, WAIT_KILLABLE, ALL_THREADS = 8, 32, 1
"""The flags of the system call `seccomp`."""

CLONE_THREAD = 0x00010000
CLONE_NAMESPACES = 0x7E020000
AF_INET, AF_INET6 = 2, 10
PR_SET_PDEATHSIG = 1
TERMINAL_INPUT = (0x5412, 0x541C)
"""Refused: the ioctls TIOCSTI and TIOCLINUX, which simulate input to a terminal."""
SIGNAL_OWNERS = (0x8901, 0x8902)
"""Refused: the ioctls FIOSETOWN and SIOCSPGRP, which choose a process that gets a signal when a file is ready."""
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15
"""Refused: the commands of fcntl that choose a process that gets a signal when a file is ready."""
F_SETLEASE, F_NOTIFY = 1024, 1026
"""Refused: the commands of fcntl that make other processes wait when they open a file, and that watch a folder."""
FILE_ATTRIBUTES = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602, 0x40806685, 0x800C6613)
"""Refused without namespaces: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC_ENABLE_VERITY and
FS_IOC_SET_ENCRYPTION_POLICY. These ioctls change files that are open for reading only, which Landlock allows."""
SET_ID = 0o6000
"""The mode bits S_ISUID and S_ISGID. With them, other users of the machine could run a program that code has written as
the server's user. So a filter refuses modes with them; `openat2`, which it cannot check, is unknown."""
MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "creat": 1, "mkdir": 1, "mkdirat": 2, "mknod": 1, "mknodat": 2}
OPEN_FLAGS = {"open": 1, "openat": 2}
"""The number of the argument that is the mode, and of that with the flags; the mode of a new file is the next one."""
CREATES_FILE = 0o20000100
"""The bits of the flags of `open` that create a file: O_CREAT and O_TMPFILE."""
NOT_STREAM = 0b1110
"""The bits of a socket type that are 0 in SOCK_STREAM, by which a filter recognizes other types."""

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _JUMP = 0x15, 0x35, 0x45, 0x05
_RETURN = 0x06
_ALLOW, _KILL_PROCESS, _ERRNO, _ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
"""Offsets of the system call number, the architecture and the arguments in `struct seccomp_data`."""


class Rules(NamedTuple):
    """The options of a filter: what it allows beyond the minimum, and what it has to refuse."""

    network: bool = False
    """Whether internet sockets may be created. Sockets of other families are refused in any case."""
    processes: bool = False
    """Whether the process may create processes and send signals to them. It may create threads in any case."""
    namespaces: bool = False
    """Whether namespaces separate the sandbox from other processes and files. If not, the filter refuses more."""
    asks_supervisor: bool = True
    """Whether the kernel asks the supervisor before it creates a process, a thread or a pair of sockets. If not, it
    creates it at once."""


class Instruction(NamedTuple):
    """An instruction of classic BPF. `if_true` and `if_false` are the numbers of instructions that a jump skips."""

    code: int
    operand: int
    if_true: int = 0
    if_false: int = 0

    def encode(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.operand)


def machine() -> str:
    """Return the name of this machine's architecture, such as `x86_64`."""
    return platform.machine()


def is_supported() -> bool:
    """Whether a filter can be made for this machine's architecture."""
    return machine() in NUMBERS and platform.architecture()[0] == "64bit"


def make_filter(machine: str, rules: Rules, pid: int) -> list[Instruction]:
    """Return the BPF program of a filter. If `rules` forbid processes, only the process `pid` may be sent signals."""
    numbers = NUMBERS[machine]

    def known(names: Iterable[str]) -> list[int]:
        return [numbers[name] for name in names if name in numbers]

    code = [
        _load(_ARCH),
        Instruction(_JUMP_EQUAL, AUDIT_ARCH[machine], 1, 0),
        Instruction(_RETURN, _KILL_PROCESS),
        _load(_NUMBER),
    ]
    allow = Instruction(_RETURN, _ASK if rules.asks_supervisor else _ALLOW)
    if machine == "x86_64":
        code += [Instruction(_JUMP_GREATER_EQUAL, X32_BIT, 0, 1), Instruction(_RETURN, _ERRNO | errno.ENOSYS)]
    for number in COMMON_ALLOWED.values():
        code += _for_system_call(number, [Instruction(_RETURN, _ALLOW)])
    if not rules.namespaces:
        code += _for_system_call(FCHMODAT2, [Instruction(_RETURN, _ERRNO)])
    code += [
        Instruction(_JUMP_GREATER_EQUAL, FIRST_COMMON, 0, 1),
        Instruction(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for number in known(ADMINISTRATION + SHARED_MEMORY + PRIORITY) + (
        [] if rules.namespaces else known(OTHER_PROCESSES)
    ):
        code += _for_system_call(number, [_refuse()])
    if not rules.namespaces:
        for number in known(METADATA):
            code += _for_system_call(number, [Instruction(_RETURN, _ERRNO)])
        for number in known(READ_ATTRIBUTES):
            code += _for_system_call(number, [Instruction(_RETURN, _ERRNO | errno.ENOTSUP)])
    code += _for_system_call(numbers["socket"], _socket_rule(rules.network))
    pair = Instruction(_RETURN, _ALLOW) if rules.network else allow
    code += _for_system_call(numbers["socketpair"], _socket_pair_rule(pair))
    code += _for_system_call(numbers["prctl"], _refuse_values(0, PR_SET_PDEATHSIG))
    attributes = () if rules.namespaces else FILE_ATTRIBUTES
    code += _for_system_call(numbers["ioctl"], _refuse_values(1, *TERMINAL_INPUT, *SIGNAL_OWNERS, *attributes))
    for name, argument in MODES.items():
        if name in numbers:
            code += _for_system_call(numbers[name], _refuse_set_id(argument))
    for name, argument in OPEN_FLAGS.items():
        if name in numbers:
            code += _for_system_call(numbers[name], _open_rule(argument))
    commands = (F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY)
    code += _for_system_call(numbers["fcntl"], _refuse_values(1, *commands))
    code += _for_system_call(numbers["clone"], _clone_rule(rules.processes, allow))
    if not rules.processes:
        for number in known(NEW_PROCESSES + NEW_PROGRAMS + SIGNALS):
            code += _for_system_call(number, [_refuse()])
        for name in ("kill", "tgkill"):
            code += _for_system_call(numbers[name], _only_value(0, pid))
    else:
        for number in known(NEW_PROCESSES + (() if rules.namespaces else ALL_SIGNALS)):
            code += _for_system_call(number, [allow])
        code += _for_system_call(numbers["rt_sigaction"], _child_handler_rule(allow))
    if rules.processes and not rules.namespaces:
        code += _for_system_call(numbers["prlimit64"], _only_value(0, 0))  # the process itself
        for number in known(NEW_GROUPS):
            code += _for_system_call(number, [_refuse()])
    return [*code, Instruction(_RETURN, _ALLOW)]


def make_second_filter(machine: str, rules: Rules) -> list[Instruction]:
    """Return the BPF program of the filter that `install_second` adds to that of `make_filter`."""
    numbers = NUMBERS[machine]
    code = [_load(_NUMBER)]
    if not rules.network:
        for name in SEND_FILES:
            code += _for_system_call(numbers[name], [_refuse()])
    if not rules.processes:
        code += _for_system_call(numbers["setrlimit"], [_refuse()])
        code += _for_system_call(numbers["prlimit64"], _refuse_pointer(2))
    return [*code, Instruction(_RETURN, _ALLOW)]


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, offset)


def _refuse() -> Instruction:
    return Instruction(_RETURN, _ERRNO | errno.EPERM)


def _for_system_call(number: int, body: list[Instruction]) -> list[Instruction]:
    """Return instructions that apply `body` to the system call with this number only. `body` ends with a return."""
    return [Instruction(_JUMP_EQUAL, number, 0, len(body)), *body]


def _low(argument: int) -> Instruction:
    return _load(_ARGUMENTS + 8 * argument)


def _high(argument: int) -> Instruction:
    return _load(_ARGUMENTS + 8 * argument + 4)


def _refuse_values(argument: int, *values: int) -> list[Instruction]:
    """Return instructions that refuse the call if the low 32 bits of an argument are one of these values."""
    refusals = [code for value in values for code in (Instruction(_JUMP_EQUAL, value, 0, 1), _refuse())]
    return [_low(argument), *refusals, Instruction(_RETURN, _ALLOW)]


def _only_value(argument: int, value: int) -> list[Instruction]:
    """Return instructions that refuse the call unless the low 32 bits of an argument have this value."""
    return [_low(argument), Instruction(_JUMP_EQUAL, value, 1, 0), _refuse(), Instruction(_RETURN, _ALLOW)]


def _refuse_set_id(argument: int) -> list[Instruction]:
    """Return instructions that refuse the call if an argument is a mode with bits of SET_ID."""
    return [_low(argument), Instruction(_JUMP_SET, SET_ID, 0, 1), _refuse(), Instruction(_RETURN, _ALLOW)]


def _open_rule(flags: int) -> list[Instruction]:
    """Return instructions that refuse to create a file with bits of SET_ID. Without a new file, the mode is random."""
    exists = [Instruction(_JUMP_SET, CREATES_FILE, 1, 0), Instruction(_RETURN, _ALLOW)]
    return [_low(flags), *exists, *_refuse_set_id(flags + 1)]


def _refuse_pointer(argument: int) -> list[Instruction]:
    """Return instructions that refuse the call unless an argument is a null pointer."""
    return [
        _low(argument),
        Instruction(_JUMP_EQUAL, 0, 0, 2),
        _high(argument),
        Instruction(_JUMP_EQUAL, 0, 1, 0),
        _refuse(),
        Instruction(_RETURN, _ALLOW),
    ]


def _socket_rule(network: bool) -> list[Instruction]:
    if not network:
        return [_refuse()]
    return [
        _low(0),
        Instruction(_JUMP_EQUAL, AF_INET, 2, 0),
        Instruction(_JUMP_EQUAL, AF_INET6, 1, 0),
        _refuse(),
        Instruction(_RETURN, _ALLOW),
    ]


def _socket_pair_rule(allow: Instruction) -> list[Instruction]:
    """Refuse socket pairs other than streams: a datagram socket could be connected to a socket of another process.

    The supervisor limits the number of the others, because no limit counts the memory of their buffers. With network,
    internet sockets have such buffers, too, and nothing is gained.
    """
    return [_low(1), Instruction(_JUMP_SET, NOT_STREAM, 0, 1), _refuse(), allow]


def _clone_rule(processes: bool, allow: Instruction) -> list[Instruction]:
    """Return instructions for `clone` that refuse new namespaces and, unless `processes`, new processes."""
    code = [_low(0), Instruction(_JUMP_SET, CLONE_NAMESPACES, 0, 1), _refuse()]
    if not processes:
        code += [Instruction(_JUMP_SET, CLONE_THREAD, 1, 0), _refuse()]
    return [*code, allow]


def _child_handler_rule(allow: Instruction) -> list[Instruction]:
    """Return instructions that ask the supervisor when a process sets its handler of SIGCHLD.

    The supervisor then adds SA_RESTART to it (`ConfinedChild`).
    """
    return [_low(0), Instruction(_JUMP_EQUAL, signal.SIGCHLD, 0, 1), allow, Instruction(_RETURN, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install(rules: Rules, *, needs_listener: bool) -> int | None:
    """Install a filter in this process, for all its threads. Raises OSError if the kernel refuses it.

    Return the listener: the file on which the kernel asks the supervisor. If the kernel cannot ask (before Linux 5.5,
    or because an outer filter has a listener already), raise OSError with `needs_listener`, otherwise return None.
    """
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER):  # the second one is for kernels before 5.19
        with suppress(OSError):
            return _install(rules, flags)
    if needs_listener:
        raise OSError("the number of processes of root cannot be limited: seccomp notifications do not work here")
    _install(rules._replace(asks_supervisor=False), ALL_THREADS)
    return None


def install_second(rules: Rules) -> None:
    """Add the filter of `make_second_filter` to that of this process, which has no other threads yet. Raises OSError.

    It refuses what a sandbox still needs once it has the first one: to send the listener, and to set its last limit.
    """
    _install_code(make_second_filter(machine(), rules), 0)


def _install(rules: Rules, flags: int) -> int:
    return _install_code(make_filter(machine(), rules, os.getpid()), flags)


def _install_code(code: list[Instruction], flags: int) -> int:
    encoded = b"".join(instruction.encode() for instruction in code)
    libc = ctypes.CDLL(None, use_errno=True)
    argument = _Program(len(code), encoded)
    seccomp = {"x86_64": 317, "aarch64": 277}[machine()]
    set_mode_filter = 1
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(seccomp, set_mode_filter, flags, ctypes.byref(argument)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
    return result
