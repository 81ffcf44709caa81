"""Landlock: restricts the files that a process and its children may use, enforced by the kernel without privileges.

There is no package for it, so this module makes the three system calls itself. ABI 3 (Linux 6.2) is required, because
older versions do not restrict `truncate`. From ABI 4 on, it can refuse TCP; from ABI 6 on, signals to other processes.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
REQUIRED_ABI = 3
SIGNAL_ABI = 6
"""The first ABI that keeps a process from sending signals to processes outside."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
MAKE_CHARACTER_DEVICE, MAKE_SOCKET, MAKE_BLOCK_DEVICE = 1 << 6, 1 << 9, 1 << 11
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""The access rights that a rule for a file may have; all other rights are for folders only."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def abi() -> int:
    """Return the ABI version of Landlock in this kernel; 0 without Landlock."""
    try:
        version = _libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    except (OSError, AttributeError):
        return 0
    return max(0, int(version))


def restrict(read_only: Iterable[str], writable: Iterable[str], *, network: bool) -> None:
    """Restrict this process irrevocably to these files and folders and the devices in DEVICES. Raises OSError.

    Without `network`, TCP is refused too, if the kernel supports that. Paths that do not exist are left out.
    """
    version = abi()
    if version < REQUIRED_ABI:
        raise OSError(f"Landlock of this kernel is too old: ABI {version}, needed is {REQUIRED_ABI}")
    files = (1 << (16 if version >= 5 else 15)) - 1
    tcp = 0b11 if version >= 4 and not network else 0
    scopes = 0b11 if version >= SIGNAL_ABI else 0
    attributes = struct.pack("=QQQ", files, tcp, scopes)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = _call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        write = files & ~(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE | MAKE_SOCKET | IOCTL_DEVICE)
        for path in read_only:
            _allow(rules, path, READ)
        for path in writable:
            _allow(rules, path, write)
        for path in DEVICES:
            _allow(rules, path, READ_FILE | WRITE_FILE)
        _call(RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it does not exist, so nothing has to be allowed
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= OF_FILES
        _call(ADD_RULE, rules, 1, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc().syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
