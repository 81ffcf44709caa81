"""The filters of system calls, interpreted here as the kernel does, for both architectures."""

import fcntl
import struct
from itertools import product

import pytest

from limelight.sandbox import seccomp
from limelight.sandbox.seccomp import NUMBERS, Rules, make_filter

ALLOW, REFUSE, IGNORE, ASK, UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050000, 0x7FC00000, 0x00050026
NOT_SUPPORTED = 0x0005005F
KILL = 0x80000000
PID = 77
THREAD, FORK = 0x00010000 | 0x100, 17
CONFINED, COMMAND = Rules(), Rules(processes=True)


def decision(machine: str, rules: Rules, call: str | int, *arguments: int, arch: int | None = None) -> int:
    """Run the filter for one system call, and return what the kernel does."""
    return decision_of(make_filter(machine, rules, PID), machine, call, *arguments, arch=arch)


def decision_of(
    code: list[seccomp.Instruction], machine: str, call: str | int, *arguments: int, arch: int | None = None
) -> int:
    """Run a filter for one system call, and return what the kernel does."""
    number = NUMBERS[machine].get(call, -1) if isinstance(call, str) else call
    words = [argument & (2**64 - 1) for argument in (*arguments, *[0] * 6)[:6]]
    arch = seccomp.AUDIT_ARCH[machine] if arch is None else arch
    data = struct.pack("=iIQ6Q", number, arch, 0, *words)
    place, loaded = 0, 0
    while True:
        one = code[place]
        place += 1
        if one.code == 0x20:
            loaded = struct.unpack_from("=I", data, one.operand)[0]
        elif one.code == 0x06:
            return one.operand
        else:
            holds = {
                0x15: loaded == one.operand,
                0x35: loaded >= one.operand,
                0x45: bool(loaded & one.operand),
            }[one.code]
            place += one.if_true if holds else one.if_false


@pytest.fixture(params=sorted(NUMBERS))
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


def test_every_filter_is_short_enough_for_the_kernel_and_ends_in_a_decision(machine: str) -> None:
    for flags in product((False, True), repeat=4):
        code = make_filter(machine, Rules(*flags), PID)
        assert len(code) < 4096
        assert all(one.if_true < 256 and one.if_false < 256 for one in code)
        assert code[-1].code == 0x06


def test_all_rules_refuse_administration_shared_memory_and_new_calls(machine: str) -> None:
    for rules in (CONFINED, COMMAND, Rules(True, True, True)):
        for name in (*seccomp.ADMINISTRATION, *seccomp.SHARED_MEMORY, *seccomp.PRIORITY):
            if name in NUMBERS[machine]:
                assert decision(machine, rules, name) == REFUSE, name
        for number in (424, 425, 434, 435, 438, 442, 463, 600):
            assert decision(machine, rules, number) == UNKNOWN, number
        assert decision(machine, rules, 0, arch=0x40000003) == KILL
        assert decision(machine, rules, 63) == ALLOW, "`uname` or `read`"


def test_calls_of_the_x32_abi_are_unknown() -> None:
    assert decision("x86_64", COMMAND, 0x40000000 | 57) == UNKNOWN


@pytest.mark.requirement("sandbox-processes")
def test_supervisor_is_asked_before_each_process_and_thread(machine: str) -> None:
    assert decision(machine, CONFINED, "clone", THREAD) == ASK
    assert decision(machine, CONFINED, "clone", FORK) == REFUSE
    assert decision(machine, CONFINED, "clone", FORK | 1 << 40) == REFUSE
    assert decision(machine, COMMAND, "clone", THREAD) == ASK
    assert decision(machine, COMMAND, "clone", FORK) == ASK
    for name in ("fork", "vfork"):
        if name in NUMBERS[machine]:
            assert decision(machine, COMMAND, name) == ASK
            assert decision(machine, CONFINED, name) == REFUSE
    for namespace in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert decision(machine, COMMAND, "clone", FORK | namespace) == REFUSE


def test_filter_without_a_supervisor_asks_nothing(machine: str) -> None:
    for rules in (Rules(asks_supervisor=False), Rules(processes=True, asks_supervisor=False)):
        assert decision(machine, rules, "clone", THREAD) == ALLOW
        assert ASK not in [one.operand for one in make_filter(machine, rules, PID) if one.code == 0x06]


def test_signals_reach_only_processes_of_the_sandbox(machine: str) -> None:
    for name in ("kill", "tgkill"):
        assert decision(machine, CONFINED, name, PID) == ALLOW
        assert decision(machine, CONFINED, name, PID + 1) == REFUSE
        assert decision(machine, CONFINED, name, -1) == REFUSE
        assert decision(machine, COMMAND, name, 1) == ASK
        assert decision(machine, Rules(processes=True, namespaces=True), name, 1) == ALLOW
    for name in seccomp.SIGNALS:
        assert decision(machine, CONFINED, name, PID) == REFUSE
        assert decision(machine, COMMAND, name, PID) == ASK


def test_programs_are_executed_only_where_processes_are_allowed(machine: str) -> None:
    for name in ("execve", "execveat"):
        assert decision(machine, CONFINED, name) == REFUSE
        assert decision(machine, COMMAND, name) == ALLOW


def test_sockets_are_of_the_internet_and_only_with_network(machine: str) -> None:
    for family in (1, 2, 10, 16, 17, 38, 40):
        assert decision(machine, CONFINED, "socket", family) == REFUSE
        wanted = ALLOW if family in (2, 10) else REFUSE
        assert decision(machine, Rules(network=True), "socket", family) == wanted
    assert decision(machine, CONFINED, "socketpair", 1, 1) == ASK
    assert decision(machine, Rules(network=True), "socketpair", 1, 1) == ALLOW
    assert decision(machine, CONFINED, "socketpair", 1, 2) == REFUSE


def test_second_filter_refuses_to_send_files_and_nothing_else(machine: str) -> None:
    for rules in (COMMAND, Rules(network=True, processes=True)):
        code = seccomp.make_second_filter(machine, rules)
        for name, number in NUMBERS[machine].items():
            is_refused = name in ("sendmsg", "sendmmsg") and not rules.network
            assert decision_of(code, machine, number) == (REFUSE if is_refused else ALLOW)
    assert decision(machine, CONFINED, "sendmsg") == ALLOW, "the listener has to be sent"


def test_bits_of_other_users_are_refused_in_modes(machine: str) -> None:
    for rules in (Rules(namespaces=True), Rules(processes=True, namespaces=True), CONFINED, COMMAND):
        for name, place in seccomp.MODES.items():
            if name not in NUMBERS[machine] or (name in seccomp.METADATA and not rules.namespaces):
                continue
            for mode, expected in ((0o4755, REFUSE), (0o2755, REFUSE), (0o1777, ALLOW)):
                assert decision(machine, rules, name, *[0] * place, mode) == expected, name
        for name, place in seccomp.OPEN_FLAGS.items():
            if name in NUMBERS[machine]:
                for flags in (0o101, 0o20200002):
                    assert decision(machine, rules, name, *[0] * place, flags, 0o4755) == REFUSE
                    assert decision(machine, rules, name, *[0] * place, flags, 0o755) == ALLOW
                assert decision(machine, rules, name, *[0] * place, 0, 0o4755) == ALLOW, "no mode is given"
        assert decision(machine, rules, 437) == UNKNOWN


def test_attributes_of_files_are_refused_without_namespaces(machine: str) -> None:
    for number in seccomp.FILE_ATTRIBUTES:
        assert decision(machine, COMMAND, "ioctl", 3, number) == REFUSE
        assert decision(machine, Rules(namespaces=True), "ioctl", 3, number) == ALLOW
    assert decision(machine, COMMAND, "ioctl", 3, 0x5401) == ALLOW


def test_reads_of_attributes_without_namespaces_fail_as_on_a_file_system_without_attributes(machine: str) -> None:
    for name in seccomp.READ_ATTRIBUTES:
        assert decision(machine, CONFINED, name) == NOT_SUPPORTED
        assert decision(machine, Rules(namespaces=True), name) == ALLOW


def test_leases_and_notifications_of_files_are_refused(machine: str) -> None:
    for rules in (CONFINED, COMMAND, Rules(True, True, True)):
        assert decision(machine, rules, "fcntl", 3, fcntl.F_SETLEASE) == REFUSE
        assert decision(machine, rules, "fcntl", 3, fcntl.F_NOTIFY) == REFUSE
        assert decision(machine, rules, "fcntl", 3, fcntl.F_SETFL) == ALLOW


def test_metadata_is_ignored_without_namespaces_and_changed_with_them(machine: str) -> None:
    for name in seccomp.METADATA:
        if name in NUMBERS[machine]:
            assert decision(machine, CONFINED, name) == IGNORE
            assert decision(machine, Rules(namespaces=True), name) == ALLOW


def test_limits_terminal_input_and_death_signal_cannot_be_changed(machine: str) -> None:
    second = seccomp.make_second_filter(machine, CONFINED)
    assert decision_of(second, machine, "setrlimit") == REFUSE
    assert decision_of(second, machine, "prlimit64", 0, 0, 0x1000) == REFUSE
    assert decision_of(second, machine, "prlimit64", 0, 0, 1 << 32) == REFUSE
    assert decision_of(second, machine, "prlimit64", 0, 0, 0) == ALLOW
    assert decision(machine, COMMAND, "prlimit64", 5, 0, 0) == REFUSE
    assert decision(machine, CONFINED, "ioctl", 0, 0x5412) == REFUSE
    assert decision(machine, CONFINED, "ioctl", 0, 1 << 32 | 0x5412) == REFUSE
    assert decision(machine, CONFINED, "prctl", 1) == REFUSE
    assert decision(machine, CONFINED, "prctl", 15) == ALLOW
