"""Shell commands in a sandbox: what they cannot reach, their limits, and their end."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from limelight.sandbox.command_runner import (
    KILLED_EXIT_CODE,
    exceeded_limit,
)
from limelight.sandbox.policy import MB, Level, Limits, Policy
from limelight.sandbox.process import kill, spawn
from limelight.sandbox.supervisor import MAX_SOCKET_PAIRS, ProcessInfo, descendants
from tests.sandbox.attacker import Outside, processes_in, run_patched_runner
from tests.support.wait import DEADLINE, wait_for


class Ended(NamedTuple):
    code: int
    output: str


def run(outside: Outside, level: Level, command: str, **options: Any) -> Ended:
    """Run a command in a sandbox, as the backend of `deep` does, until it ends."""
    with running(outside, level, command, **options) as process:
        output = process.communicate(timeout=DEADLINE)[0].decode("utf-8", "replace")
        return Ended(process.returncode, output)


@contextlib.contextmanager
def running(outside: Outside, level: Level, command: str, **options: Any) -> Any:
    """Start a command. Its runner is killed at the end."""
    launch = outside.sandbox(level, **options).command(outside.workspace, command)
    read_end, write_end = os.pipe()  # `communicate` would close the input at once
    process = subprocess.Popen(
        launch.argv,
        env=launch.env,
        cwd="/",
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    os.close(read_end)
    process.write_end = write_end  # type: ignore[attr-defined]
    try:
        yield process
    finally:
        with contextlib.suppress(OSError):
            os.close(write_end)
        process.kill()
        process.communicate()


def is_gone(outside: Outside) -> bool:
    return not processes_in(outside.workspace)


@pytest.fixture(autouse=True)
def nothing_is_left(outside: Outside, level: Level) -> Any:
    """After each test, nothing outside has changed and no process of the command runs."""
    before = outside.state()
    yield
    wait_for("the end of all processes", lambda: is_gone(outside))
    assert outside.state() == before


# What a command cannot reach


@pytest.mark.requirement("sandbox-confines")
@pytest.mark.parametrize(
    "command",
    [
        "cat {database}",
        "cat {config}",
        "cat {home}/.ssh/id_rsa ~/.ssh/id_rsa",
        "cat ../outside/config.toml",
        "cat /proc/{server_pid}/environ /proc/{victim_pid}/environ /proc/1/environ /proc/$PPID/environ",
        "cat /proc/self/root{database} /proc/1/root{database} /proc/$PPID/root{database}",
        "cat /proc/{server_pid}/fd/{server_fd} /proc/$PPID/fd/{server_fd} <&{server_fd}",
        "env; set; export",
        "ln -s {database} link; cat link; rm link",
        "ln {database} hard; cat hard",
        "cp -r {outside} copy; cat copy/config.toml",
        "tar cf - {outside} | tr -d '\\0'",
        "find / -name config.toml -exec cat {{}} + 2>/dev/null",
        "su -c 'cat {database}'; su nobody -c id",
        "unshare -Ur cat {database}; unshare -m cat {database}",
        "mount --bind {outside} . && cat config.toml",
        "chroot . /bin/sh; nsenter -t {server_pid} -a cat {database}",
        "dd if=/proc/{server_pid}/mem count=1",
        "strings /dev/mem | head",
        "ipcs -m; ipcrm -m {shared_memory}",
        "cat /dev/shm/*",
    ],
)
def test_command_does_not_read_outside_of_its_workspace(command: str, level: Level, outside: Outside) -> None:
    ended = run(outside, level, f"({command.format(**outside.target(level))}); echo done")
    assert outside.secret not in ended.output
    assert "done" in ended.output


@pytest.mark.requirement("sandbox-confines")
@pytest.mark.parametrize(
    "command",
    [
        "echo x > {outside}/new",
        "rm -rf {outside}",
        "mv {config} .",
        "chmod 777 {config}; chown 1 {config}; touch {config}; truncate -s 0 {config}",
        "echo x > {library}/planted; echo x > /usr/planted; echo x > /etc/planted",
        "setfattr -n user.x -v y {config}",
        "kill -9 {victim_pid}; kill -9 -{victim_pid}",
        "kill -USR1 {server_pid}",
        "renice 19 -p {victim_pid}; ionice -c 3 -p {victim_pid}; taskset -p 1 {victim_pid}; chrt -i -p 0 {victim_pid}",
        "prlimit --pid {victim_pid} --nofile=1:1; prlimit --pid {server_pid} --cpu=100000:100000",
        "exec 3<>/dev/tcp/127.0.0.1/{tcp_port}",
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {tcp_port}))'",
        "logger -u {unix_datagram} hello; logger hello",
        "ping -c 1 -W 1 127.0.0.1",
        "echo x > /proc/sys/kernel/core_pattern",
        "hostname taken",
    ],
)
def test_command_changes_nothing_outside_of_its_workspace(command: str, level: Level, outside: Outside) -> None:
    """`nothing_is_left` compares everything outside."""
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    ended = run(outside, level, f"({command.format(**outside.target(level))}) 2>&1; echo done")
    assert "done" in ended.output
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("export GIT_CONFIG_NOSYSTEM=1; git init -q repository && cd repository"
         " && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m"
         " && git log --format=%s && cd .. && rm -rf repository", "m"),
        ("echo text > shown && curl -s file://$PWD/shown && rm shown", "text"),
        ("seq 100 | xargs -P 4 -n 1 echo | wc -l", "100"),
        ("tar cf - . | gzip | tar tzf - > /dev/null && echo packed", "packed"),
        (f"{sys.executable} -c 'import asyncio; print(asyncio.run(asyncio.sleep(0, 1)))'", "1"),
    ],
)  # fmt: skip
def test_command_of_every_day_works(command: str, expected: str, level: Level, outside: Outside) -> None:
    assert run(outside, level, command) == (0, f"{expected}\n")


SET_ID = """
import os
for number, make in enumerate((
    lambda name: os.close(os.open(name, os.O_CREAT | os.O_RDWR, 0o4755)),
    lambda name: os.mkdir(name, 0o2755),
    lambda name: os.mknod(name, 0o104755),
    lambda name: (os.close(os.open(name, os.O_CREAT, 0o755)), os.chmod(name, 0o6755)),
)):
    try:
        make(f"made-{number}")
    except PermissionError:
        pass
"""


@pytest.mark.requirement("sandbox-confines")
def test_command_creates_no_file_that_others_run_as_the_user_of_the_server(level: Level, outside: Outside) -> None:
    (outside.workspace / "modes.py").write_text(SET_ID)
    assert run(outside, level, f"{sys.executable} modes.py") == (0, "")
    found = list(outside.workspace.glob("made-*"))
    assert found
    assert not [path for path in found if path.stat().st_mode & 0o6000]


def test_supervisor_has_a_low_priority_too(level: Level, outside: Outside) -> None:
    with running(outside, level, "exec sleep 600") as process:
        own = os.getpriority(os.PRIO_PROCESS, 0)

        def supervisors() -> list[int]:
            below = [process.pid, *(info.pid for info in descendants(process.pid))]
            return [pid for pid in below if b"command_runner" in Path(f"/proc/{pid}/cmdline").read_bytes()]

        wait_for(
            "the priority",
            lambda: (
                os.getpriority(os.PRIO_PROCESS, supervisors()[-1]) == min(19, own + 10) and is_confined(supervisors())
            ),
        )


def is_confined(supervisors: list[int]) -> bool:
    """Whether the child of the supervisor has been started."""
    return bool(descendants(supervisors[-1]))


def test_command_works_in_its_workspace(level: Level, outside: Outside) -> None:
    ended = run(outside, level, 'mkdir -p a && cd a && echo hello > b && cat b && pwd && echo "$HOME" && exit 7')
    folder = str(outside.workspace)
    assert ended == Ended(7, f"hello\n{folder}/a\n{folder}\n")


# Limits


EATER = f"{sys.executable} -c 'import time; kept = bytearray(b\"x\") * (40 * 1024**2); time.sleep(600)'"


FORKS = """
import collections, errno, os, signal
signal.signal(signal.SIGCHLD, lambda *_: None)  # interrupts system calls, as the handlers of some shells do
outcomes = collections.Counter()
for number in range(400):
    try:
        outcomes["forked"] += 1
        os.fork() or os._exit(0)
    except OSError as error:
        outcomes[errno.errorcode[error.errno]] += 1
    try:
        while os.waitpid(-1, os.WNOHANG if number % 6 else 0)[0]:
            pass
    except ChildProcessError:
        pass
print(dict(outcomes))
"""


def test_process_is_created_although_another_one_ends_at_the_same_moment(level: Level, outside: Outside) -> None:
    (outside.workspace / "forks.py").write_text(FORKS)
    assert run(outside, level, f"exec {sys.executable} forks.py") == (0, "{'forked': 400}\n")


@pytest.mark.requirement("sandbox-limits")
@pytest.mark.parametrize("before", ["", "kill -STOP $PPID; kill -STOP 1; ", "kill -INT $PPID 1; "])
def test_memory_of_all_processes_together_is_limited(before: str, level: Level, outside: Outside) -> None:
    """A command cannot stop its runner either, which counts the memory."""
    limits = Limits(memory_mb=200, processes=32)
    command = f"{before} for n in 1 2 3 4 5 6 7 8; do {EATER} & done; wait"
    ended = run(outside, level, command, limits=limits)
    assert "(killed: more than 200 MB of memory)" in ended.output
    assert ended.code == KILLED_EXIT_CODE


@pytest.mark.requirement("sandbox-limits")
def test_size_of_a_file_of_a_command_is_limited(level: Level, outside: Outside) -> None:
    ended = run(outside, level, "head -c 50000000 /dev/zero > large; stat -c %s large; rm large")
    assert int(ended.output.split()[-1]) <= 16 * MB


@pytest.mark.requirement("sandbox-limits")
def test_command_cannot_raise_its_limits(level: Level, outside: Outside) -> None:
    ended = run(outside, level, "ulimit -v unlimited; ulimit -H -n 100000; ulimit -v; ulimit -n")
    assert ended.output.split()[-2:] == [str(768 * 1024), "256"]


# The end


@pytest.mark.requirement("sandbox-ends")
@pytest.mark.parametrize(
    "command",
    [
        "sleep {s} &",
        "nohup sleep {s} >/dev/null 2>&1 &",
        "setsid sleep {s} &",
        "(setsid sh -c 'sleep {s} & sleep {s}' &) &",
        "trap '' TERM INT HUP; sleep {s} &",
        "sleep {s} > /dev/null & disown",
        "sh -c 'sh -c \"sleep {s} &\" &' &",
    ],
)
def test_background_process_ends_with_its_command(command: str, level: Level, outside: Outside) -> None:
    seconds = f"600.{uuid4().int % 10**9}"
    ended = run(outside, level, f"{command.format(s=seconds)}\necho started")
    assert "started" in ended.output
    wait_for("the end of the background process", lambda: not is_running(seconds))


def test_command_without_a_namespace_cannot_leave_its_process_group(outside: Outside) -> None:
    ended = run(outside, "landlock", "setsid true; echo $?")
    assert "Operation not permitted" in ended.output


@pytest.mark.requirement("sandbox-ends")
@pytest.mark.parametrize(
    "command", ["sleep {s}", "(sleep {s} &); wait; sleep {s}", "trap '' TERM HUP INT; sleep {s}; sleep {s}"]
)
def test_command_ends_when_the_server_closes_its_input(command: str, level: Level, outside: Outside) -> None:
    seconds = f"600.{uuid4().int % 10**9}"
    with running(outside, level, f"{command.format(s=seconds)}") as process:
        wait_for("the command", lambda: is_running(seconds))
        os.close(process.write_end)
        assert process.wait(DEADLINE) == KILLED_EXIT_CODE
        assert not is_running(seconds)
        process.write_end = os.open(os.devnull, os.O_RDONLY)


SERVER = """
import subprocess, sys, time
from pathlib import Path
from limelight.sandbox.sandbox import Sandbox
launch = Sandbox(choice=sys.argv[1]).command(Path(sys.argv[2]), sys.argv[3])
subprocess.Popen(launch.argv, env=launch.env, cwd="/", stdin=subprocess.PIPE, start_new_session=True)
time.sleep(600)
"""


@pytest.mark.requirement("sandbox-ends")
def test_command_ends_when_the_server_is_killed(level: Level, outside: Outside) -> None:
    seconds = f"600.{uuid4().int % 10**9}"
    command = f"setsid sleep {seconds} & sleep {seconds}"
    server = subprocess.Popen([sys.executable, "-c", SERVER, level, str(outside.workspace), command])
    try:
        wait_for("the command", lambda: is_running(seconds))
    finally:
        server.kill()
        server.wait()
    wait_for("the end of the command", lambda: not is_running(seconds))


NAMED = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, bytes.fromhex("fffe20290a"))
if os.fork() == 0:
    os.execvp("sleep", ["sleep", sys.argv[1]])
print("named", flush=True)
time.sleep(600)
"""


@pytest.mark.requirement("sandbox-ends")
def test_name_of_a_process_may_have_any_bytes(level: Level, outside: Outside) -> None:
    """Every runner reads the names of all processes, also those of other sandboxes."""
    seconds = f"600.{uuid4().int % 10**9}"
    (outside.workspace / "named.py").write_text(NAMED)
    with running(outside, level, f"{sys.executable} named.py {seconds}; true") as process:
        assert process.stdout.readline() == b"named\n"
        assert run(outside, level, "for i in 1 2 3; do /bin/echo $i; done") == (0, "1\n2\n3\n")
        assert is_running(seconds)
        os.close(process.write_end)
        assert process.wait(DEADLINE) == KILLED_EXIT_CODE
        assert not is_running(seconds)
        process.write_end = os.open(os.devnull, os.O_RDONLY)


FAILING = """
import sys
from limelight.sandbox import command_runner
begun = []
def fail(*_):
    begun.append(1)
    if len(begun) > 10:
        raise ValueError("broken")
    return ""
command_runner.exceeded_limit = fail
command_runner.main(sys.argv[1:])
"""


@pytest.mark.requirement("sandbox-ends")
def test_runner_that_fails_leaves_no_process_of_its_command(outside: Outside) -> None:
    seconds = f"600.{uuid4().int % 10**9}"
    launch = outside.sandbox("landlock").command(outside.workspace, f"sleep {seconds} & sleep {seconds}; true")
    done = run_patched_runner(FAILING, launch)
    assert b"ValueError: broken" in done.stderr
    assert not is_running(seconds)


@pytest.mark.requirement("sandbox-ends")
def test_command_whose_runner_is_killed_ends_when_the_server_ends_the_runner(level: Level, outside: Outside) -> None:
    """The kernel may kill a runner for lack of memory."""
    seconds = f"600.{uuid4().int % 10**9}"
    process = spawn(outside.sandbox(level).command(outside.workspace, f"(sleep {seconds} &); sleep 600; true"))
    try:
        wait_for("the command", lambda: is_running(seconds))
    finally:
        kill(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
    wait_for("the end of the command", lambda: not is_running(seconds))


def is_running(seconds: str) -> bool:
    wanted = f"sleep\0{seconds}\0".encode()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has ended
            if entry.read_bytes() == wanted:
                return True
    return False


# Parts


def test_exceeded_limit_names_the_limit() -> None:
    policy = Policy(workspace="/w", limits=Limits(memory_mb=10, processes=2))
    assert exceeded_limit([ProcessInfo(1, 0, MB)] * 2, policy) == ""
    assert exceeded_limit([ProcessInfo(1, 0, MB)] * 3, policy) == "more than 2 processes"
    assert exceeded_limit([ProcessInfo(1, 0, 6 * MB)] * 2, policy) == "more than 10 MB of memory"


# Memory that no limit of the kernel counts


@pytest.mark.requirement("sandbox-limits")
@pytest.mark.parametrize("hides", ["", "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"], ids=["open", "hidden"])
def test_command_has_a_limited_number_of_socket_pairs(hides: str, level: Level, outside: Outside) -> None:
    code = f"""
import ctypes, os, socket
{hides}
pairs = []
try:
    while True:
        pairs.append(socket.socketpair())
except OSError as error:
    print(error.strerror, len(pairs))
"""
    reason, _, count = run(outside, level, f"{sys.executable} -c '{code}'").output.rpartition(" ")
    assert reason == "Too many open files"
    assert int(count) <= 2 * MAX_SOCKET_PAIRS
    assert hides or int(count)  # the supervisor cannot see the files of a process that hides them


@pytest.mark.requirement("sandbox-limits")
def test_command_with_too_many_files_in_memory_is_killed(level: Level, outside: Outside) -> None:
    """At the level landlock, a command cannot create files in memory."""
    code = 'for n in range(10**9): os.close(os.open(f"/tmp/planted-{n}", os.O_CREAT))'
    ended = run(outside, level, f"{sys.executable} -c 'import os\n{code}'")
    if level == "bubblewrap":
        assert (ended.code, ended.output) == (137, "\n(killed: more than 16384 temporary files)\n")
    else:
        assert "Permission denied" in ended.output
