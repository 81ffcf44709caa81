"""Starts sandboxed processes from the server, exchanges messages with a worker, and kills them."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from limelight.sandbox.launch import Launch
from limelight.sandbox.message_framing import FrameReader, InvalidFrame, Message, encode_frame
from limelight.sandbox.supervisor import all_processes, descendants
from limelight.sandbox.worker_messages import WorkerMessage, parse_message

READ_BYTES = 256 * 1024
SEND_SECONDS = 10.0
"""Time limit for a worker to read a message. A worker that exceeds it is killed."""
MAX_ERROR_BYTES = 4096
BYTES_AT_ONCE, BYTES_PER_SECOND = 32 * 1024 * 1024, 4 * 1024 * 1024
MESSAGES_AT_ONCE, MESSAGES_PER_SECOND = 10_000, 5_000
"""What the server reads from a worker. Beyond it the worker waits."""


class WorkerLost(Exception):
    """Raised if a worker has ended or was killed. Its variables are lost."""


class ReadBudget:
    """How much the server may read from a worker: token buckets of bytes and of messages.

    What was read is subtracted afterwards, so a bucket may be overdrawn. Nothing is read until it has recovered.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._filled_at = clock()
        self._bytes: float = BYTES_AT_ONCE
        self._messages: float = MESSAGES_AT_ONCE

    def spend(self, size: int, messages: int) -> None:
        """Subtract bytes and messages that were read."""
        self._fill()
        self._bytes -= size
        self._messages -= messages

    def delay(self) -> float:
        """Return the seconds until the server may read again; 0 if it may read now."""
        self._fill()
        return max(0.0, -self._bytes / BYTES_PER_SECOND, -self._messages / MESSAGES_PER_SECOND)

    def _fill(self) -> None:
        now = self._clock()
        seconds, self._filled_at = now - self._filled_at, now
        self._bytes = min(BYTES_AT_ONCE, self._bytes + seconds * BYTES_PER_SECOND)
        self._messages = min(MESSAGES_AT_ONCE, self._messages + seconds * MESSAGES_PER_SECOND)


@cache
def _spawner() -> ThreadPoolExecutor:
    """Return the thread that starts all sandboxes.

    It never ends, because the kernel kills a sandbox when the thread that has started it ends."""
    return ThreadPoolExecutor(1, thread_name_prefix="limelight-sandbox")


def spawn(
    launch: Launch, *, stdin: int = subprocess.PIPE, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> "subprocess.Popen[bytes]":
    """Start a process in a new process session, without access to the files that the server has open."""

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            launch.argv, env=launch.env, cwd="/", start_new_session=True, stdin=stdin, stdout=stdout, stderr=stderr
        )

    return _spawner().submit(start).result()


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and its process group, and wait for its end. Does nothing if the process has ended."""
    if process.poll() is not None:  # another process may have its id by now
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    kill_session(process.pid)


def kill_session(session: int) -> None:
    """Kill all processes of a process session that `spawn` or a command has begun. Does nothing without `/proc`.

    A command has a process group of its own, and its runner kills it. If the runner itself was killed, as by the
    kernel for lack of memory, this finds what the command has left. At the level `landlock` no process can leave its
    session or, without the runner, create another one.
    """
    for process in all_processes():
        if process.session == session:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)


class WorkerProcess:
    """A worker process, which runs Python code in a sandbox, and the pipes to it. One thread receives; any may send."""

    def __init__(self, launch: Launch, on_killed: Callable[[], None]) -> None:
        """Start the worker. It is not ready yet: its imports take half a second. `on_killed` is called at its end."""
        self._process = spawn(launch)
        self._on_killed = on_killed
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._input, False)
        self._reader = FrameReader()
        self._messages: deque[WorkerMessage] = deque()
        self._budget = ReadBudget()
        self._sending = threading.RLock()
        self._receiving = threading.RLock()
        """A lock that is held while the pipes are used, because the number of a closed file may be reused at once."""
        self._killing = threading.Lock()
        self._is_killed = False

    def send(self, message: Message) -> None:
        """Send a message. Raises WorkerLost, also if the worker does not read in time, and InvalidFrame."""
        data = memoryview(encode_frame(message))
        deadline = time.monotonic() + SEND_SECONDS
        with self._sending:
            while data:
                if self._is_killed:
                    raise WorkerLost("the sandbox was killed")
                try:
                    data = data[os.write(self._input, data) :]
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise self._lost("the sandbox does not read") from None
                    _is_ready(self._input, select.POLLOUT, 0.1)
                except OSError:
                    raise self._lost(self._end()) from None

    def receive(self, seconds: float) -> WorkerMessage | None:
        """Return the next message, or None if there is none within that time. Raises WorkerLost.

        A worker that sends more than its budget has to wait.
        """
        with self._receiving:
            if not self._messages and not self._is_killed:
                delay = self._budget.delay()
                time.sleep(min(delay, seconds))
                if delay <= seconds and _is_ready(self._output, select.POLLIN, seconds - delay):
                    self._read()
            if self._is_killed:
                raise WorkerLost("the sandbox was killed")
            return self._messages.popleft() if self._messages else None

    def _read(self) -> None:
        try:
            data = os.read(self._output, READ_BYTES)
            if not data:
                raise self._lost(self._end())
            for message in self._reader.feed(data):
                self._messages.append(parse_message(message))
        except InvalidFrame as error:
            raise self._lost(f"the sandbox has sent an invalid message: {error}") from error
        self._budget.spend(len(data), len(self._messages))

    def pause(self) -> None:
        """Stop all threads of the worker until `resume`. Its variables stay. Code cannot prevent this."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a paused worker. Does nothing if it is not paused."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        """Send a signal to the worker and to the processes that have started and supervise it."""
        with self._killing:
            if self._is_killed or self._process.poll() is not None:
                return
            for pid in (self._process.pid, *(process.pid for process in descendants(self._process.pid))):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def kill(self) -> None:
        """Kill the worker. Can be called more than once, by any thread."""
        with self._killing:
            if self._is_killed:
                return
            self._is_killed = True
        kill(self._process)
        self._on_killed()
        for lock, pipe in (
            (self._sending, self._process.stdin),
            (self._receiving, self._process.stdout),
            (self._receiving, self._process.stderr),
        ):
            with lock, contextlib.suppress(OSError):
                pipe.close()  # pyright: ignore[reportOptionalMemberAccess]

    def _lost(self, reason: str) -> WorkerLost:
        self.kill()
        return WorkerLost(reason)

    def _end(self) -> str:
        """End the worker. Return an error message with its exit code or signal, and the last line of its output."""
        kill(self._process)
        code = self._process.returncode
        output = b""
        if self._process.stderr:
            os.set_blocking(self._process.stderr.fileno(), False)
            output = self._process.stderr.read(MAX_ERROR_BYTES) or b""
        last = output.decode("utf-8", "replace").strip().rpartition("\n")[2]
        outcome = _signal_name(-code) if code < 0 else f"exit code {code}"
        return f"the sandbox ended ({outcome})" + (f": {last}" if last else "")


def _is_ready(file: int, event: int, seconds: float) -> bool:
    """Wait until a file is ready for reading or writing. Unlike `select`, this works with any file number."""
    poll = select.poll()
    poll.register(file, event)
    return bool(poll.poll(seconds * 1000))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
