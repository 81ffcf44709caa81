"""Confinement under a service manager that forbids some system calls, as the filter of a systemd unit does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from limelight.sandbox.seccomp import NUMBERS, machine

UNIT = (Path(__file__).parents[2] / "deploy" / "systemd" / "limelight.service").read_text()
CAPSET = {"x86_64": 126, "aarch64": 91}
"""The number of `capset` on each machine."""
NEEDED = ("capset", "setpriority", "sched_setscheduler")

PROBE = """
import ctypes, errno, struct, sys
from limelight.sandbox.confinement import drop_capabilities
from limelight.sandbox.levels import availability

LOAD_NUMBER, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000
code = struct.pack("=HBBI", LOAD_NUMBER, 0, 0, 0)
for number in map(int, sys.argv[1].split(",")):
    code += struct.pack("=HBBI", IF_EQUAL, 0, 1, number) + struct.pack("=HBBI", RETURN, 0, 0, REFUSE)
code += struct.pack("=HBBI", RETURN, 0, 0, ALLOW)
libc, instructions = ctypes.CDLL(None), ctypes.create_string_buffer(code)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
if sys.argv[2] == "drop":
    drop_capabilities()
program = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(instructions))
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, FILTER, program) == 0
print(availability("landlock").reason or "works")
"""
"""Drops the capabilities of root if asked to, refuses system calls, and prints whether Landlock confines a sandbox."""


def availability_without(*names: str, drop: bool) -> str:
    numbers = ",".join(str({**NUMBERS[machine()], "capset": CAPSET[machine()]}[name]) for name in names)
    command = [sys.executable, "-c", PROBE, numbers, "drop" if drop else ""]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.mark.requirement("sandbox-confines")
@pytest.mark.parametrize("name", NEEDED)
def test_landlock_works_without_capabilities_if_a_system_call_is_forbidden(name: str) -> None:
    assert availability_without(name, drop=True) == "works"


def test_landlock_does_not_work_for_root_if_capabilities_cannot_be_dropped() -> None:
    assert "capabilities" in availability_without("capset", drop=False)


def test_systemd_unit_allows_what_a_sandbox_needs() -> None:
    allowed = set(re.findall(r"[a-z_]+", re.findall(r"^SystemCallFilter=([a-z].*)$", UNIT, re.MULTILINE)[0]))
    assert {*NEEDED, "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"} <= allowed
