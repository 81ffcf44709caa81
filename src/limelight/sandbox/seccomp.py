"""Seccomp filters for sandboxed processes: which system calls the kernel refuses.

There is no maintained package that works without libseccomp, so the filters are written here as programs of classic
BPF. A filter refuses listed system calls and all system calls that are newer than this list. It cannot be removed, and
child processes inherit it.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable
from typing import NamedTuple

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The architectures for which the system call numbers are known."""
X32_BIT = 0x40000000
"""Set in the number of a system call of the x32 ABI, which would bypass the comparisons."""
FIRST_COMMON = 424
"""From this number on, all architectures have the same system call numbers."""

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
    "setpgid": 109, "setsid": 112, "ioprio_set": 251, "sched_setattr": 314, "memfd_create": 319,
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
    "setpgid": 154, "setsid": 157,
}  # fmt: skip
NUMBERS = {"x86_64": _X86_64, "aarch64": _AARCH64}

COMMON_ALLOWED = {
    "close_range": 436, "openat2": 437, "faccessat2": 439, "epoll_pwait2": 441, "landlock_create_ruleset": 444,
    "landlock_add_rule": 445, "landlock_restrict_self": 446, "futex_waitv": 449, "map_shadow_stack": 453,
    "futex_wake": 454, "futex_wait": 455, "futex_requeue": 456, "mseal": 462,
}  # fmt: skip
"""The system calls from FIRST_COMMON on that a filter allows. All others answer ENOSYS."""
FCHMODAT2 = 452

ADMINISTRATION = (
    "acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init",
    "fanotify_mark", "finit_module", "init_module", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl",
    "lookup_dcookie", "migrate_pages", "modify_ldt", "mount", "move_pages", "name_to_handle_at", "nfsservctl",
    "open_by_handle_at", "perf_event_open", "personality", "pivot_root", "process_vm_readv", "process_vm_writev",
    "ptrace", "quotactl", "reboot", "request_key", "setns", "settimeofday", "swapoff", "swapon", "sysfs", "syslog",
    "umount2", "unshare", "uselib", "userfaultfd", "vhangup",
)  # fmt: skip
"""Refused in every sandbox: changes of the system, and access to other processes."""
SHARED_MEMORY = (
    "memfd_create", "mq_open", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop",
    "semtimedop", "shmat", "shmctl", "shmget",
)  # fmt: skip
"""Refused in every sandbox: memory that no limit counts, and that other processes of the same user may share."""
PRIORITY = ("sched_setattr", "sched_setparam", "sched_setscheduler")
"""Refused in every sandbox: code keeps the low priority that it starts with."""
OTHER_PROCESSES = ("inotify_add_watch", "ioprio_set", "sched_setaffinity", "setpriority")
"""Refused where no namespace separates the sandbox from other files, and from other processes of the same user."""
NEW_GROUPS = ("setpgid", "setsid")
"""Refused to commands without namespaces: all processes of a command stay in one process group, which one signal kills.
Signals to single processes would lose against a fork bomb."""
METADATA = (
    "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr", "fsetxattr",
    "removexattr", "lremovexattr", "fremovexattr", "utime", "utimes", "utimensat", "futimesat",
)  # fmt: skip
"""Ignored where Landlock protects files, because Landlock does not cover them. They report success, so that tools
which copy files with their modes work."""
NEW_PROCESSES = ("fork", "vfork", "execve", "execveat")
SIGNALS = ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")

CLONE_THREAD = 0x00010000
CLONE_NAMESPACES = 0x7E020000
AF_INET, AF_INET6 = 2, 10
PR_SET_PDEATHSIG = 1
TERMINAL_INPUT = (0x5412, 0x541C)
"""The ioctls TIOCSTI and TIOCLINUX, which type into a terminal."""
SIGNAL_OWNERS = (0x8901, 0x8902)
"""The ioctls FIOSETOWN and SIOCSPGRP: they choose a process that gets a signal when a file is ready."""
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15
"""The commands of fcntl that do the same."""
NOT_STREAM = 0b1110
"""The bits of a socket type that SOCK_STREAM does not have."""

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _JUMP = 0x15, 0x35, 0x45, 0x05
_RETURN = 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
"""Offsets in `struct seccomp_data`."""


class Rules(NamedTuple):
    """What a filter refuses, besides ADMINISTRATION."""

    network: bool = False
    """Whether sockets of the internet families may be created. Sockets of other families may not."""
    processes: bool = False
    """Whether processes may be created and signalled. Threads may always be created."""
    namespaces: bool = False
    """Whether namespaces separate the sandbox from other processes and files. Otherwise OTHER_PROCESSES and METADATA
    apply."""


class Instruction(NamedTuple):
    """An instruction of classic BPF. Jumps count the instructions to skip."""

    code: int
    operand: int
    if_true: int = 0
    if_false: int = 0

    def encode(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.operand)


def is_supported() -> bool:
    """Whether a filter can be made for this machine's architecture."""
    return platform.machine() in NUMBERS and platform.architecture()[0] == "64bit"


def program(machine: str, rules: Rules, pid: int) -> list[Instruction]:
    """Return the filter for an architecture. `pid` is the only process that may be signalled without `processes`."""
    numbers = NUMBERS[machine]

    def known(names: Iterable[str]) -> list[int]:
        return [numbers[name] for name in names if name in numbers]

    code = [
        _load(_ARCH),
        Instruction(_JUMP_EQUAL, AUDIT_ARCH[machine], 1, 0),
        Instruction(_RETURN, _KILL_PROCESS),
        _load(_NUMBER),
    ]
    if machine == "x86_64":
        code += [Instruction(_JUMP_GREATER_EQUAL, X32_BIT, 0, 1), Instruction(_RETURN, _ERRNO | errno.ENOSYS)]
    for number in COMMON_ALLOWED.values():
        code += _when(number, [Instruction(_RETURN, _ALLOW)])
    if not rules.namespaces:
        code += _when(FCHMODAT2, [Instruction(_RETURN, _ERRNO)])
    code += [
        Instruction(_JUMP_GREATER_EQUAL, FIRST_COMMON, 0, 1),
        Instruction(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for number in known(ADMINISTRATION + SHARED_MEMORY + PRIORITY) + (
        [] if rules.namespaces else known(OTHER_PROCESSES)
    ):
        code += _when(number, [_refuse()])
    if not rules.namespaces:
        for number in known(METADATA):
            code += _when(number, [Instruction(_RETURN, _ERRNO)])
    code += _when(numbers["socket"], _socket_rule(rules.network))
    code += _when(numbers["socketpair"], _socket_pair_rule())
    code += _when(numbers["prctl"], _refuse_values(0, PR_SET_PDEATHSIG))
    code += _when(numbers["ioctl"], _refuse_values(1, *TERMINAL_INPUT, *SIGNAL_OWNERS))
    code += _when(numbers["fcntl"], _refuse_values(1, F_SETOWN, F_SETSIG, F_SETOWN_EX))
    code += _when(numbers["clone"], _clone_rule(rules.processes))
    if not rules.processes:
        for number in known(NEW_PROCESSES) + known(SIGNALS) + [numbers["setrlimit"]]:
            code += _when(number, [_refuse()])
        for name in ("kill", "tgkill"):
            code += _when(numbers[name], _only_value(0, pid))
        code += _when(numbers["prlimit64"], _refuse_pointer(2))
    elif not rules.namespaces:
        code += _when(numbers["prlimit64"], _only_value(0, 0))  # the process itself
        for number in known(NEW_GROUPS):
            code += _when(number, [_refuse()])
    return [*code, Instruction(_RETURN, _ALLOW)]


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, offset)


def _refuse() -> Instruction:
    return Instruction(_RETURN, _ERRNO | errno.EPERM)


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """Return code that runs `body` for one system call. The body always returns. The number stays loaded otherwise."""
    return [Instruction(_JUMP_EQUAL, number, 0, len(body)), *body]


def _low(argument: int) -> Instruction:
    return _load(_ARGUMENTS + 8 * argument)


def _high(argument: int) -> Instruction:
    return _load(_ARGUMENTS + 8 * argument + 4)


def _refuse_values(argument: int, *values: int) -> list[Instruction]:
    """Refuse the call if the lower half of an argument has one of these values, otherwise allow it."""
    refusals = [code for value in values for code in (Instruction(_JUMP_EQUAL, value, 0, 1), _refuse())]
    return [_low(argument), *refusals, Instruction(_RETURN, _ALLOW)]


def _only_value(argument: int, value: int) -> list[Instruction]:
    """Allow the call if the lower half of an argument has this value, otherwise refuse it."""
    return [_low(argument), Instruction(_JUMP_EQUAL, value, 1, 0), _refuse(), Instruction(_RETURN, _ALLOW)]


def _refuse_pointer(argument: int) -> list[Instruction]:
    """Allow the call if an argument is a null pointer, otherwise refuse it."""
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


def _socket_pair_rule() -> list[Instruction]:
    """Refuse pairs other than streams: a datagram socket can be connected again, to a socket of another process."""
    return [_low(1), Instruction(_JUMP_SET, NOT_STREAM, 0, 1), _refuse(), Instruction(_RETURN, _ALLOW)]


def _clone_rule(processes: bool) -> list[Instruction]:
    """Refuse new namespaces, and new processes unless they are allowed."""
    code = [_low(0), Instruction(_JUMP_SET, CLONE_NAMESPACES, 0, 1), _refuse()]
    if not processes:
        code += [Instruction(_JUMP_SET, CLONE_THREAD, 1, 0), _refuse()]
    return [*code, Instruction(_RETURN, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install(rules: Rules) -> None:
    """Install a filter in this process, for all its threads. Raises OSError if the kernel refuses it."""
    code = program(platform.machine(), rules, os.getpid())
    encoded = b"".join(instruction.encode() for instruction in code)
    libc = ctypes.CDLL(None, use_errno=True)
    argument = _Program(len(code), encoded)
    seccomp = {"x86_64": 317, "aarch64": 277}[platform.machine()]
    set_mode_filter, all_threads = 1, 1
    libc.syscall.restype = ctypes.c_long
    if libc.syscall(seccomp, set_mode_filter, all_threads, ctypes.byref(argument)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
