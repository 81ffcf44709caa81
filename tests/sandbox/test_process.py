"""Workers that hostile code has taken over: floods, forged messages, exhausted resources, and their end."""

import base64
import contextlib
import os
import pickle
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.sandbox import process as sandbox_process
from limelight.sandbox.policy import Level, Limits
from limelight.sandbox.process import ReadBudget, WorkerLost
from limelight.sandbox.value_encoding import decode
from limelight.sandbox.worker_messages import Output, Result
from tests.sandbox.attacker import Attacker, Outside, processes_in, receive_end, states_of_threads
from tests.support.wait import wait_for

PIPE = """
import gc, json
connection = [one for one in gc.get_objects() if type(one).__name__ == "Connection"][0]
pipe = connection._outgoing
def forge(body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    data = len(body).to_bytes(4, "big") + body
    while data:
        data = data[os.write(pipe, data):]
"""


def started(attacker: Attacker, code: str) -> None:
    """Start native code in the worker, and do not wait for its end."""
    worker = attacker.start()
    source = f"import os, sys, time\n{PIPE}\n{code}"
    worker.send(
        {"type": "run", "code": f"import timeit\ntimeit.timeit('exec(s, {{}})', number=1, globals={{'s': {source!r}}})"}
    )


def is_gone(outside: Outside) -> bool:
    return not processes_in(outside.workspace)


# Forged messages


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("os.write(pipe, b'\\xff\\xff\\xff\\xff')", "are more than the limit"),
        ("forge(b'not JSON')", "not JSON"),
        ("forge(b'[' * 50000)", "not JSON"),
        ("forge(b'[1]')", "not an object with a type"),
        ("forge({'type': 5})", "not an object with a type"),
        ("forge(b'{\"type\": \"x\", \"v\": [' + b'[],' * 1000000 + b'0]}')", "more than 100000 values"),
        ('forge(b\'{"type": "x", "v": {\' + b\'"k":0,\' * 1000000 + b\'"k":0}}\')', "more than 100000 values"),
        ("forge({'type': 'unknown'})", "Invalid value 'unknown'"),
        ("forge({'type': 'reply', 'id': 77})", "Invalid value 'reply'"),
        ("forge({'type': 'configure'})", "Invalid value 'configure'"),
        ("forge({'type': 'output'})", "missing required field `text`"),
        ("forge({'type': 'output', 'text': 5})", "Expected `str`, got `int`"),
        ("forge({'type': 'output', 'text': '', 'more': 1})", "unknown field `more`"),
        ("forge({'type': 'call', 'id': 1, 'name': 'f'})", "missing required field `arguments`"),
        ("forge({'type': 'call', 'id': 'x', 'name': 'f', 'arguments': [1, 2]})", "Expected `int`"),
        ("forge({'type': 'call', 'id': 1, 'name': 'f', 'arguments': [1]})", "length 2"),
        ("forge({'type': 'result', 'value': 1, 'logs': '', 'is_final_answer': 1})", "Expected `bool`, got `int`"),
        ("forge({'type': 'error', 'logs': ''})", "missing required field `message`"),
        ("forge(b'\\xff\\xfe')", "not JSON"),
        ("forge(b'{\"type\": \"x\", \"v\": ' + b'9' * 21 + b'}')", "not JSON"),
        ("os._exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 9)", ""),
        ("os.kill(os.getpid(), 40)", ""),
        ("import ctypes; ctypes.string_at(0)", ""),
        ("import faulthandler; faulthandler._sigabrt()", ""),
    ],
)
def test_worker_with_an_invalid_message_or_end_is_killed(
    code: str, message: str, fresh: Attacker, outside: Outside
) -> None:
    started(fresh, code)
    worker = fresh.worker
    assert worker is not None
    with pytest.raises(WorkerLost) as lost:
        receive_end(worker)
    assert message in str(lost.value)
    wait_for("the end of the worker", lambda: is_gone(outside))
    with pytest.raises(WorkerLost):
        worker.send({"type": "run", "code": "1"})


def test_pickle_of_a_worker_is_never_loaded(fresh: Attacker, tmp_path: Path) -> None:
    planted = tmp_path / "planted"

    class Evil:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
            return os.mkdir, (str(planted),)

    tag = ["pickle", [base64.b64encode(pickle.dumps(Evil())).decode(), "text"]]
    started(fresh, f"forge({{'type': 'result', 'value': {tag!r}, 'logs': '', 'is_final_answer': True}})")
    assert fresh.worker is not None
    end = receive_end(fresh.worker)
    assert isinstance(end, Result)
    for value in (end.value, ["list", [end.value]], ["dict", [["key", end.value]]]):
        with pytest.raises(ValueError, match="no type 'pickle'"):
            decode(value)
    assert not planted.exists()


def test_value_with_too_many_elements_becomes_text(fresh: Attacker) -> None:
    end = fresh.run("list(range(200_000))")
    assert isinstance(end, Result), end
    assert str(decode(end.value)).startswith("[0, 1, 2, ")


def test_printed_text_with_many_commas_is_sent_in_several_messages(fresh: Attacker) -> None:
    worker = fresh.start()
    worker.send({"type": "run", "code": "print(',' * 300_000)"})
    texts: list[str] = []
    while not isinstance(message := wait_for("a message", lambda: worker.receive(1)), Result):
        assert isinstance(message, Output), message
        texts.append(message.text)
    assert "".join(texts) == "," * 300_000 + "\n"


# Floods


def test_flood_of_messages_does_not_grow_the_memory_of_the_server(fresh: Attacker, outside: Outside) -> None:
    """The pipe is the only buffer: a worker waits until the server reads."""
    started(fresh, "while True:\n    forge({'type': 'output', 'text': 'x' * 1000000})")
    assert fresh.worker is not None
    seen = 0
    while seen < 20:
        seen += fresh.worker.receive(5) is not None
    fresh.close()
    wait_for("the end of the worker", lambda: is_gone(outside))


@pytest.mark.requirement("sandbox-messages")
@pytest.mark.parametrize(
    ("size", "messages", "delay"),
    [(0, 0, 0.0), (10**9, 0, 10.0), (10**6, 10**6, 5.0), (999, 9, 0.0)],
)
def test_budget_delays_reading_until_what_was_read_too_much_is_recovered(
    size: int, messages: int, delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LIMITS.items():
        monkeypatch.setattr(sandbox_process, name, value)
    now = 0.0
    budget = ReadBudget(lambda: now)
    budget.spend(size, messages)
    assert budget.delay() == pytest.approx(delay)
    now = delay / 2
    assert budget.delay() == pytest.approx(delay / 2)
    now = delay + 100
    assert budget.delay() == 0
    budget.spend(10**6 + 1, 0)  # no more than the full bucket was saved up
    assert budget.delay() > 0


LIMITS = {
    "BYTES_AT_ONCE": 10**6,
    "BYTES_PER_SECOND": (10**9 - 10**6) / 10,
    "MESSAGES_AT_ONCE": 10,
    "MESSAGES_PER_SECOND": (10**6 - 10) / 5,
}


@pytest.mark.requirement("sandbox-messages")
def test_worker_that_sends_more_than_its_budget_waits(fresh: Attacker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_process, "MESSAGES_AT_ONCE", 5)
    monkeypatch.setattr(sandbox_process, "MESSAGES_PER_SECOND", 1e-6)
    started(fresh, "number = 0\nwhile True:\n    forge({'type': 'output', 'text': str(number)})\n    number += 1")
    worker = fresh.worker
    assert worker is not None
    texts: list[str] = []

    def receive(seconds: float) -> bool:
        message = worker.receive(seconds)
        if isinstance(message, Output):
            texts.append(message.text)
        return message is not None

    wait_for("more than the budget", lambda: receive(1) and len(texts) > 5)
    while receive(0):  # the rest of what was read before
        pass
    assert texts == [str(number) for number in range(len(texts))]
    assert worker.receive(0.01) is None


def test_worker_that_does_not_read_is_killed(
    fresh: Attacker, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_process, "SEND_SECONDS", 0.2)
    worker = fresh.start()
    worker.send({"type": "run", "code": "import time\ntime.sleep(0)"})
    receive_end(worker)
    # The receiving thread of the worker reads all the time, so it has to be blocked.
    started(fresh, "import signal, threading\nsys.setswitchinterval(600)\nprint\nwhile True:\n    pass")
    worker = fresh.worker
    assert worker is not None
    with pytest.raises(WorkerLost, match="does not read"):
        for _ in range(100):
            worker.send({"type": "unknown", "text": "x" * 1_000_000})
    wait_for("the end of the worker", lambda: is_gone(outside))


# Resources


@pytest.mark.requirement("sandbox-limits")
@pytest.mark.parametrize(
    "code",
    [
        "kept = bytearray(2 * 1024**3)",
        "import mmap; kept = mmap.mmap(-1, 2 * 1024**3)",
        "kept = []\nwhile True:\n    kept.append(bytearray(50 * 1024**2))",
        "kept = open('sparse', 'wb').truncate(10 * 1024**3)",
        "kept = open('large', 'wb').write(bytes(300 * 1024**2)); reached = os.path.getsize('large') > 17 * 1024**2",
        "kept = [os.open('/dev/null', 0) for _ in range(10000)]",
        "syscall('memfd_create', b'memory', 0); reached = 'memory without a limit'",
        "libc.shmget.restype = ctypes.c_int\nif libc.shmget(0, 1 << 40, 0o1600) < 0:\n    raise OSError('shmget')",
        "open('/planted', 'w')",
        "open('/dev/planted', 'w')",
        "open('/proc/planted', 'w')",
        "open('/dev/shm/planted', 'wb', 0).write(bytes(100 * 1024**2)); raise OSError('limited by its file size')",
    ],
)
def test_resource_of_a_worker_is_limited(code: str, fresh: Attacker) -> None:
    report = fresh.attack(code)
    assert not report.reached
    assert {"MemoryError", "OSError"} & set(report.error.split()), report
    assert fresh.attack("reached = 1").reached


@pytest.mark.requirement("sandbox-limits")
def test_files_in_memory_of_a_sandbox_with_namespaces_are_limited_together(fresh: Attacker, level: Level) -> None:
    """At the level landlock, no folder in memory can be written."""
    report = fresh.attack("""
number = 0
while number < 100:
    with open(f"/dev/shm/{number}", "wb", 0) as stream:
        stream.write(bytes(8 * 1024**2))
    number += 1
reached = number
""")
    assert not report.reached
    assert "OSError" in report.error


@pytest.mark.requirement("sandbox-limits")
def test_worker_with_too_many_files_in_memory_is_killed(fresh: Attacker, level: Level) -> None:
    """Their number is limited, because empty files need no space in the folder. At landlock, none can be created."""
    code = "for number in range(10**9):\n    os.close(os.open(f'/tmp/planted-{number}', os.O_CREAT))"
    if level == "bubblewrap":
        with pytest.raises(WorkerLost, match="more than 16384 temporary files"):
            fresh.attack(code)
    else:
        assert "PermissionError" in fresh.attack(code).error


@pytest.mark.requirement("sandbox-limits")
def test_kernel_kills_a_worker_before_the_server_if_memory_is_exhausted(fresh: Attacker, outside: Outside) -> None:
    assert fresh.attack("reached = 1").reached
    scores = set[str]()
    for pid in processes_in(outside.workspace):
        with contextlib.suppress(OSError):  # one of an earlier test, which has ended now
            scores.add(Path(f"/proc/{pid}/oom_score_adj").read_text())
    assert scores == {"1000\n"}


@pytest.mark.requirement("sandbox-ends")
def test_threads_of_a_worker_do_not_outlive_it(fresh: Attacker, outside: Outside) -> None:
    report = fresh.attack("""
import _thread
_thread.stack_size(64 * 1024)
try:
    for _ in range(2000):
        _thread.start_new_thread(time.sleep, (600,))
except RuntimeError:
    pass
""")
    assert not report.error
    assert processes_in(outside.workspace)
    fresh.close()
    wait_for("the end of the worker", lambda: is_gone(outside))


@pytest.mark.requirement("sandbox-limits")
def test_cpu_time_of_a_worker_is_limited(level: Level, outside: Outside) -> None:
    attacker = Attacker(outside.sandbox(level, limits=Limits(cpu_seconds=4)), outside.workspace)
    started(attacker, "while True:\n    pass")
    assert attacker.worker is not None
    with pytest.raises(WorkerLost):
        receive_end(attacker.worker)
    wait_for("the end of the worker", lambda: is_gone(outside))


IN_FLIGHT = """
import array
kept = []
try:
    for _ in range(8):
        one, other = socket.socketpair()
        kept += [one, other]
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [other.fileno()] * 250))])
        reached = "sent"
finally:
    import builtins
    builtins.kept = kept
"""


@pytest.mark.requirement("sandbox-limits")
@pytest.mark.parametrize("network", [False, True])
def test_unreceived_files_that_code_has_sent_do_not_prevent_other_sandboxes(
    network: bool, level: Level, outside: Outside
) -> None:
    """The kernel counts them for each user. Code with network may send some."""
    attacker = Attacker(outside.sandbox(level, network=network), outside.workspace)
    try:
        report = attacker.attack(IN_FLIGHT)
        assert "OSError" in report.error
        assert bool(report.reached) == network
        other = Attacker(outside.sandbox(level), outside.workspace)
        try:
            assert other.attack("reached = 1").reached
        finally:
            other.close()
    finally:
        attacker.close()


# The end


@pytest.mark.requirement("sandbox-ends")
@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    pass",
        "time.sleep(600)",
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32)); time.sleep(600)",
        "os.setsid() if os.getpid() != os.getsid(0) else None\ntime.sleep(600)",
        "import re; re.match('(a+)+$', 'a' * 50 + 'b')",
        "os.setpgid(0, 0) if os.getpid() != os.getsid(0) else None\ntime.sleep(600)",
    ],
)
def test_killed_worker_leaves_no_process(code: str, fresh: Attacker, outside: Outside) -> None:
    started(fresh, f"forge({{'type': 'output', 'text': ''}})\n{code}")
    worker = fresh.worker
    assert worker is not None
    wait_for("the code", lambda: worker.receive(1))
    assert processes_in(outside.workspace)
    begun = time.monotonic()
    worker.kill()
    worker.kill()
    wait_for("the end of the worker", lambda: is_gone(outside), 5)
    assert time.monotonic() - begun < 5


SERVER = """
import sys, time
from pathlib import Path
from limelight.sandbox.sandbox import Sandbox
worker = Sandbox(choice=sys.argv[1]).start_worker(Path(sys.argv[2]))
message = worker.receive(60)
print(type(message).__name__, flush=True)
worker.send({"type": "configure", "imports": ["time"], "max_print": 1, "tools": [], "plain_final_answer": True})
worker.send({"type": "run", "code": "import time\\ntime.sleep(600)"})
time.sleep(600)
"""


@pytest.mark.requirement("sandbox-ends")
def test_worker_ends_when_the_server_is_killed(level: Level, outside: Outside) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER, level, str(outside.workspace)], stdout=subprocess.PIPE)
    assert server.stdout is not None
    with server.stdout:
        assert server.stdout.readline() == b"Ready\n"
        assert processes_in(outside.workspace)
        server.kill()
        server.wait()
    wait_for("the end of the worker", lambda: is_gone(outside))


@pytest.mark.requirement("sandbox-ends")
def test_threads_of_a_paused_worker_stop_and_later_resume(fresh: Attacker, outside: Outside) -> None:
    beats = outside.workspace / "beats"
    report = fresh.attack("""
import _thread, builtins, signal
builtins.kept = "kept"
def beat():
    stream = open("beats", "ab", 0)
    while os.fstat(stream.fileno()).st_size < 1_000_000:
        stream.write(b"x")
        time.sleep(0.001)
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
_thread.start_new_thread(beat, ())
""")
    assert not report.error
    worker = fresh.worker
    assert worker is not None
    wait_for("the thread", lambda: beats.exists() and beats.stat().st_size > 3)
    worker.pause()
    pids = processes_in(outside.workspace)
    assert pids
    wait_for("the stop", lambda: {state for pid in pids for state in states_of_threads(pid)} == {"T"})
    worker.resume()
    size = beats.stat().st_size
    wait_for("the thread", lambda: beats.stat().st_size > size)
    assert fresh.attack("import builtins; reached = builtins.kept").reached == "kept"
    worker.pause()
    fresh.close()
    wait_for("the end of the worker", lambda: is_gone(outside))


@pytest.mark.requirement("sandbox-ends")
def test_paused_worker_ends_when_the_server_is_killed(level: Level, outside: Outside) -> None:
    run = 'worker.send({"type": "run"'
    source = SERVER.replace(run, f'worker.pause(); print("paused", flush=True)\n{run}')
    server = subprocess.Popen([sys.executable, "-c", source, level, str(outside.workspace)], stdout=subprocess.PIPE)
    assert server.stdout is not None
    with server.stdout:
        assert [server.stdout.readline() for _ in range(2)] == [b"Ready\n", b"paused\n"]
        assert processes_in(outside.workspace)
        server.kill()
        server.wait()
    wait_for("the end of the worker", lambda: is_gone(outside))


def test_worker_starts_when_the_server_is_the_first_process_of_a_container(outside: Outside) -> None:
    container = ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--as-pid-1", "--die-with-parent"]
    command = [*container, sys.executable, "-c", SERVER, "landlock", str(outside.workspace)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert server.stdout is not None
    with server.stdout:
        assert server.stdout.readline() == b"Ready\n"
        server.kill()
        server.wait()
    wait_for("the end of the worker", lambda: is_gone(outside))


def test_worker_is_reached_although_the_server_has_a_thousand_open_files(fresh: Attacker) -> None:
    """`select` accepts only smaller numbers of files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 2000, "the test opens more files than this user may open"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert fresh.attack("reached = 1").reached
    finally:
        for number in opened:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_kill_by_one_thread_ends_the_waiting_of_others(fresh: Attacker) -> None:
    worker = fresh.start()
    worker.send({"type": "run", "code": "while True:\n    pass"})
    lost: list[WorkerLost] = []

    def receive() -> None:
        try:
            while True:
                worker.receive(60)
        except WorkerLost as error:
            lost.append(error)

    waiting = threading.Thread(target=receive)
    waiting.start()
    threading.Thread(target=worker.kill).start()
    waiting.join(20)
    assert len(lost) == 1


def test_secret_of_the_server_is_not_in_the_worker(fresh: Attacker, outside: Outside) -> None:
    fresh.start()
    for pid in processes_in(outside.workspace):
        for name in ("environ", "cmdline"):
            assert outside.secret.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        numbers = {int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        targets = [str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in numbers]
        assert not [target for target in targets if target.startswith("/") and not target.startswith("/dev/")]
