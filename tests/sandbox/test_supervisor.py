"""The limit of processes and threads, and signals of commands: what fork bombs reach, as root and as another user.

Every bomb here ends by itself after BOMB processes, far below the size of a process table: a sandbox that does not hold
fails the test and harms nothing.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from limelight.sandbox import seccomp, supervisor
from limelight.sandbox.command_runner import KILLED_EXIT_CODE
from limelight.sandbox.confinement import MAX_THREADS
from limelight.sandbox.launch import readable_paths
from limelight.sandbox.policy import Level
from limelight.sandbox.supervisor import descendants, is_descendant
from tests.sandbox.attacker import Attacker, Outside, processes_in, run_patched_runner
from tests.support.wait import DEADLINE, wait_for

User = Literal["root", "nobody", "this user"]
USERS: tuple[User, ...] = ("root", "nobody") if os.getuid() == 0 else ("this user",)
NOBODY = 65533 - int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""A user without processes in any other test, because at the level landlock the kernel counts those of the user."""
PROCESSES = 32
"""The limit of the commands."""
BOMB = 500
"""How many processes a bomb creates if nothing stops it. Each writes a character to the file `count`."""

FORK_OF_PYTHON = """
import os, time
for _ in range({n}):
    if os.fork() == 0:
        os.write(os.open("count", os.O_WRONLY | os.O_APPEND | os.O_CREAT), b"x")
        time.sleep(5)
        os._exit(0)
time.sleep(5)
"""
SPAWN_OF_PYTHON = """
import os, time
for _ in range({n}):
    os.posix_spawn("/bin/sh", ["sh", "-c", "echo -n x >> count; sleep 5"], {{}})
time.sleep(5)
"""
FUNCTION = "b() {{ echo -n x >> count; [ $1 -gt 0 ] && {{ b $(($1-1)) SIGN b $(($1-1)) & }}; sleep 5; }}; b 7"
LOOP = "i=0; while [ $i -lt {n} ]; do BODY i=$((i+1)); done; sleep 5"
BOMBS = {
    "shell function": FUNCTION.replace("SIGN", "&"),
    "pipes of bash": f"bash -c '{FUNCTION.replace('SIGN', '|')}'",
    "detached": LOOP.replace("BODY", "(setsid sh -c '{count}' 2>&1 || sh -c '{count}') &"),
    "signals ignored": f"trap '' TERM INT HUP QUIT; {LOOP.replace('BODY', '(echo -n x >> count; sleep 5) &')}",
    "fork of perl": "perl -e 'for (1..{n}) {{ if (!fork) {{ {write} sleep 5; exit }} }} sleep 5'",
    "doubling": "perl -e 'for (1..8) {{ if (!fork) {{ {write} }} }} sleep 5'",
    "zombies": "perl -e 'for (1..{n}) {{ if (!fork) {{ {write} exit }} }} sleep 5'",
    "orphans": "perl -e 'for (1..{n}) {{ if (!fork) {{ if (!fork) {{ {write} sleep 5 }} exit }} wait }} sleep 5'",
    "vfork": "perl -e 'for (1..{n}) {{ syscall({vfork}) || syscall({exit}, 0); {write} }} sleep 5'",
    "clone": "perl -e 'for (1..{n}) {{ if (!syscall({clone}, 17, 0, 0, 0, 0)) {{ {write} sleep 5; exit }} }} sleep 5'",
    "fork of python": f"{{python}} -c '{FORK_OF_PYTHON}'",
    "posix_spawn of python": f"{{python}} -c '{SPAWN_OF_PYTHON}'",
}
"""Fork bombs by the way in which they create processes."""


def bomb(name: str) -> str:
    numbers = {"x86_64": {"vfork": 58, "clone": 56, "exit": 60}, "aarch64": {"vfork": 1071, "clone": 220, "exit": 93}}
    return BOMBS[name].format(
        n=BOMB,
        python=sys.executable,
        count="echo -n x >> count; sleep 5",
        write='open(F, ">>", "count"); syswrite(F, "x");',
        **numbers[seccomp.machine()],
    )


class Ended(NamedTuple):
    code: int
    output: str
    created: int
    """How many processes of a bomb have run."""


RUN = """
import json, subprocess, sys
from pathlib import Path
from limelight.sandbox.policy import Limits
from limelight.sandbox.sandbox import Sandbox
level, workspace, processes, command = json.loads(sys.argv[1])
sandbox = Sandbox(choice=level, limits=Limits(processes=processes, memory_mb=768))
launch = sandbox.command(Path(workspace), command)
process = subprocess.Popen(
    launch.argv, env=launch.env, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
)
try:
    output = process.stdout.read()
finally:
    process.stdin.close()
print(json.dumps([process.wait(60), output.decode("utf-8", "replace")]))
"""


RUN_PYTHON = '''
import json, sys
from pathlib import Path
from limelight.sandbox.policy import Limits
from limelight.sandbox.sandbox import Sandbox
from limelight.sandbox.worker_messages import Error, Result
level, workspace = json.loads(sys.argv[1])
worker = Sandbox(choice=level, limits=Limits(memory_mb=2048)).start_worker(Path(workspace))
worker.send({"type": "configure", "imports": ["*"], "max_print": 1000, "tools": [], "plain_final_answer": True})
code = """
import ctypes, os, threading
kinds = []
for create in (os.fork, lambda: os.posix_spawn("/bin/true", ["true"], {})):
    try:
        for _ in range(500):
            if create() == 0:
                os._exit(0)
    except OSError as error:
        kinds.append(type(error).__name__)
threading.stack_size(64 * 1024)
begun = 0
try:
    for _ in range(2000):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        begun += 1
except RuntimeError as error:
    kinds.append(type(error).__name__)
open("threads", "w").write(str(begun))
"""
native = f"""
import timeit
space = {{}}
timeit.timeit("exec(code, space)", number=1, globals={{"code": {code!r}, "space": space}})
' '.join(space["kinds"])
"""
worker.send({"type": "run", "code": native})
while True:
    message = worker.receive(60)
    if isinstance(message, Result | Error):
        print(message.value if isinstance(message, Result) else message)
        break
worker.kill()
'''


def as_user(user: User) -> list[str]:
    """Return the beginning of a command line that runs a program as a user, who can read the interpreter and `src`.

    Both may be below a folder that only root can enter, such as `/root`. For nobody, such folders are covered.
    """
    if user != "nobody":
        return []
    mounts: dict[str, list[str]] = {}
    for path in map(Path, (*readable_paths(), str(Path(__file__).parents[2]))):
        folders = [*reversed(path.parents)]
        private = [number for number, folder in enumerate(folders) if not folder.stat().st_mode & 0o001]
        if private:
            top, *below = map(str, folders[private[0] :])
            mounts.setdefault(top, ["--perms", "0755", "--tmpfs", top])
            mounts[top] += [word for folder in below for word in ("--perms", "0755", "--dir", folder)]
            mounts[top] += ["--ro-bind", str(path), str(path)]
    covered = [word for words in mounts.values() for word in words]
    change_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["bwrap", "--dev-bind", "/", "/", "--die-with-parent", *covered, "--", *change_user]


@pytest.fixture
def workspace() -> Generator[Path]:
    """An empty folder that every user of USERS can reach, unlike pytest's folders."""
    with tempfile.TemporaryDirectory(prefix="limelight-test-") as name:
        Path(name).chmod(0o755)
        folder = Path(name).resolve() / "workspace"
        folder.mkdir()
        yield folder


def run(user: User, level: Level, workspace: Path, command: str, processes: int = PROCESSES) -> Ended:
    """Run a command in a sandbox that a user has started, and wait for the end of all its processes."""
    if user == "nobody":
        os.chown(workspace, NOBODY, NOBODY)
    argument = json.dumps([level, str(workspace), processes, command])
    argv = [*as_user(user), sys.executable, "-c", RUN, argument]
    done = subprocess.run(argv, capture_output=True, timeout=DEADLINE * 2, cwd="/", check=False)
    assert done.stdout, done.stderr.decode()
    code, output = json.loads(done.stdout)
    wait_for("the end of all processes", lambda: not processes_in(workspace))
    count = workspace / "count"
    return Ended(code, output, count.stat().st_size if count.exists() else 0)


@pytest.mark.requirement("sandbox-processes")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", BOMBS)
def test_fork_bomb_is_killed_at_the_limit_of_processes(name: str, user: User, level: Level, workspace: Path) -> None:
    ended = run(user, level, workspace, bomb(name))
    assert f"(killed: more than {PROCESSES} processes)" in ended.output, ended
    assert ended.code == KILLED_EXIT_CODE
    assert ended.created <= 2 * PROCESSES


@pytest.mark.parametrize("user", USERS)
def test_fork_bomb_of_python_code_creates_no_process(user: User, level: Level, workspace: Path) -> None:
    """Python code may not create any process: the kernel refuses the first one."""
    if user == "nobody":
        os.chown(workspace, NOBODY, NOBODY)
    argv = [*as_user(user), sys.executable, "-c", RUN_PYTHON, json.dumps([level, str(workspace)])]
    done = subprocess.run(argv, capture_output=True, timeout=DEADLINE * 2, cwd="/", check=False)
    assert done.stdout.decode().split() == ["PermissionError", "PermissionError", "RuntimeError"], done
    threads = int((workspace / "threads").read_text())
    assert 50 < threads <= 2 * MAX_THREADS
    wait_for("the end of the worker", lambda: not processes_in(workspace))


def test_bomb_without_a_sandbox_passes_the_limit(workspace: Path) -> None:
    """The bombs work: what contains them is the sandbox."""
    counted = 'for (1..100) { if (!fork) { open(F, ">>", "count"); syswrite(F, "x"); exit } } 1 while wait > 0'
    subprocess.run(["perl", "-e", counted], cwd=workspace, check=True)
    assert (workspace / "count").stat().st_size == 100


@pytest.mark.parametrize("user", USERS)
def test_command_may_use_as_many_processes_one_after_the_other_as_it_likes(
    user: User, level: Level, workspace: Path
) -> None:
    loop = f"i=0; while [ $i -lt {4 * PROCESSES} ]; do /bin/true; i=$((i+1)); done; echo done"
    assert run(user, level, workspace, loop) == Ended(0, "done\n", 0)


def test_threads_of_a_command_count_and_are_refused_beyond_the_limit(level: Level, workspace: Path) -> None:
    code = """
import threading
begun = []
try:
    for _ in range(200):
        begun.append(threading.Thread(target=threading.Event().wait, daemon=True))
        begun[-1].start()
except RuntimeError:
    print(len(begun))
"""
    (workspace / "threads.py").write_text(code)
    ended = run(USERS[0], level, workspace, f"{sys.executable} threads.py", processes=10)
    assert ended.code == 0
    assert int(ended.output) == 10 - 1  # the shell is replaced by its last command


def test_listener_of_a_worker_is_not_in_its_code(fresh: Attacker, outside: Outside) -> None:
    """With it, code could allow everything to itself."""
    report = fresh.attack("""
files = [os.readlink(f"/proc/self/fd/{name}") for name in range(100) if os.path.exists(f"/dev/null")
         and os.access(f"/proc/self/fd/{name}", os.F_OK)] if os.access("/proc/self/fd", os.R_OK) else []
reached = [file for file in files if "seccomp" in file]
""")
    assert not report.reached and not report.error, report
    for pid in processes_in(outside.workspace):
        if "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text():
            targets = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
            assert targets and not [target for target in targets if "seccomp" in target]


SIGNALS = """
import sys
from limelight.sandbox import command_runner, landlock
landlock.SIGNAL_ABI = 99
command_runner.main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("kill -9 {victim}; echo $?", "1"),
        ("kill -9 -{victim}; echo $?", "1"),
        ("kill -9 -1; echo $?", "1"),
        ("kill -9 $PPID; echo $?", "1"),
        ("perl -e 'print syscall({tkill}, {victim}, 9)'", "-1"),
        ("perl -e 'print syscall({tgkill}, {victim}, {victim}, 9)'", "-1"),
        ("perl -e '$b = q(0) x 128; print syscall({rt_sigqueueinfo}, {victim}, 9, $b)'", "-1"),
        ("sleep 600 & kill $!; wait $!; echo $?", "143"),
        ("sh -c 'sleep 600 & kill -9 $!; wait; echo $?'", "0"),
        ("trap 'echo caught' TERM; kill $$", "caught"),
        ("trap 'echo caught' TERM; kill 0; true", "caught"),
        ("sh -c 'kill -ABRT $$'; echo $?", "134"),
    ],
)
def test_kernel_without_scopes_of_landlock_lets_a_command_signal_only_its_own_processes(
    command: str, expected: str, outside: Outside
) -> None:
    """Kernels before 6.12 have no such scopes. They are turned off here."""
    numbers = seccomp.NUMBERS[seccomp.machine()]
    launch = outside.sandbox("landlock").command(
        outside.workspace, command.format(victim=outside.victim.pid, **numbers)
    )
    done = run_patched_runner(SIGNALS, launch)
    assert done.stdout.decode().split()[-1] == expected, done
    assert outside.victim.poll() is None
    assert done.returncode in (0, 143)


def test_filter_that_cannot_ask_is_an_error_for_root_and_limited_by_the_kernel_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed: list[tuple[bool, int]] = []

    def install(rules: seccomp.Rules, flags: int) -> int:
        if flags & seccomp.NEW_LISTENER:
            raise OSError("no listener")
        installed.append((rules.asks_supervisor, flags))
        return 0

    monkeypatch.setattr(seccomp, "_install", install)
    with pytest.raises(OSError, match="processes of root cannot be limited"):
        seccomp.install(seccomp.Rules(), needs_listener=True)
    assert not installed
    assert seccomp.install(seccomp.Rules(), needs_listener=False) is None
    assert installed == [(False, seccomp.ALL_THREADS)]


def test_descendants_are_found_below_their_ancestor() -> None:
    process = subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
    try:
        found = wait_for("the process below it", lambda: descendants(process.pid))
        assert {info.parent for info in found} == {process.pid}
        wait_for("the process itself", lambda: process.pid in {info.pid for info in descendants(os.getpid())})
        assert is_descendant(found[0].pid, os.getpid()) and is_descendant(process.pid, os.getpid())
        assert not is_descendant(os.getpid(), process.pid)
        assert not is_descendant(1, process.pid) and not is_descendant(-1, os.getpid())
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_descendants_include_a_zombie_process() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process.pid in {info.pid for info in descendants(os.getpid())}
    process.wait()
    assert process.pid not in {info.pid for info in descendants(os.getpid())}


def test_requests_of_the_kernel_beyond_a_burst_are_answered_at_a_limited_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        now[0] += seconds
        pauses.append(seconds)

    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(supervisor.time, "sleep", sleep)
    child = supervisor.ConfinedChild(1, None, 1)
    for _ in range(supervisor.REQUEST_BURST + 1000):
        child._wait_for_rate()  # pyright: ignore[reportPrivateUsage]
    assert sum(pauses[: supervisor.REQUEST_BURST]) == pytest.approx(0, abs=1e-6)
    assert now[0] - 100 == pytest.approx(1000 / supervisor.REQUESTS_PER_SECOND)
