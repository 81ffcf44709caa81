"""The server process: the listening socket, uvicorn, an orderly shutdown, and a forced exit if that hangs."""

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from limelight.errors import SetupError, TryLater
from limelight.server.middleware.client_address import ForwardedMiddleware, TrustedProxies
from limelight.server.process.acceptor import Acceptor
from limelight.server.process.fd_limit import FdMonitor
from limelight.server.process.heap_trimmer import HeapTrimmer, find_trim, keep_mmap_threshold
from limelight.server.process.thread_pool import AgentThreadPool
from limelight.server.process.uvicorn_protocols import HttpConnection, WebSocketConnection
from limelight.server.runtime import Runtime
from limelight.server.signal_requests import SignalRecognizer
from limelight.stores.base import EXIT_LOCK

log = logging.getLogger(__name__)
THREADS = 1024
"""Size of the thread pool for `asyncio.to_thread` in agents. Threads are created on demand. With asyncio's small
default, a few slow tools would block all agents. `AgentThreadPool` limits the threads of each run."""
MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Size limit of a WebSocket message. A larger message closes the socket. A message between the setting
`limits.message_bytes` and this limit is answered with an error."""
PING_SECONDS = 20
"""Interval at which uvicorn pings each WebSocket. `server/open_streams.py` sends heartbeats only to SSE streams."""
PONG_SECONDS = 60
"""Time that a client has to answer a WebSocket ping. Without a pong, uvicorn closes the socket with code 1011."""
CONNECTION_CLOSE_SECONDS = 5
"""Time limit of a shutdown for closing connections, after their streams have ended."""
SHUTDOWN_SECONDS = 20
"""Time limit of the whole shutdown, after the grace period of runs. Each step of the shutdown has a shorter limit."""
FAST_SHUTDOWN_SECONDS = 2
"""Time limit of the complete shutdown after a second signal."""
EXIT_STATUS = 1
"""Exit status of a forced exit. An orderly shutdown exits by the received signal."""
MAX_NAMED_THREADS = 5
"""Maximum number of running threads that the log line of a forced exit names."""


class LimelightServer(uvicorn.Server):
    """The uvicorn server of Limelight.

    It prints its URL when it is ready, ends runs before it closes connections, and has a time limit for its shutdown.
    The first SIGTERM or SIGINT starts the grace period of runs, the second ends them at once, and the third kills the
    process. SIGHUP is ignored, unless the terminal of the server was closed: this has the effect of SIGTERM.
    """

    def __init__(self, app: Starlette, listener: socket.socket, announce: Callable[[str], None]) -> None:
        self.runtime: Runtime = app.state.runtime
        self._proxies = TrustedProxies.from_settings(self.runtime.settings)
        super().__init__(
            uvicorn.Config(
                ForwardedMiddleware(app, self._proxies),
                proxy_headers=False,
                http=HttpConnection,
                ws=WebSocketConnection,
                log_config=None,
                lifespan="off",
                access_log=False,
                timeout_graceful_shutdown=CONNECTION_CLOSE_SECONDS,
                server_header=False,
                ws_max_size=MAX_FRAME_BYTES,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PONG_SECONDS,
                ws_per_message_deflate=False,
            )
        )
        self._root: str = app.state.root
        self._listener = listener
        self._announce = announce
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fd_monitor: asyncio.Task[None] | None = None
        self._terminals = _open_terminals()
        self._owns_process = False
        """Whether the process runs nothing but this server, so that process-wide settings may be changed."""
        self._freezing: asyncio.Task[None] | None = None
        self._heap_trimmer: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{port}{self._root}"

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            loop = runner.get_loop()
            self._handle_sighup()
            self._owns_process = True
            serving = loop.create_task(self.serve([self._listener]))
            try:
                while not serving.done():
                    self._run_loop(loop, serving)
            finally:
                if self._captured_signals:  # only threads and tasks of agents are left
                    force_exit_after(FAST_SHUTDOWN_SECONDS)

    def _run_loop(self, loop: asyncio.AbstractEventLoop, serving: "asyncio.Task[None]") -> None:
        """Run the event loop until the server ends, or until a task of an agent calls `exit()`.

        `exit()` stops the loop; `run` then calls this method again. The task has ended, and the code that awaits it
        gets the error.
        """
        try:
            loop.run_until_complete(serving)
        except (SystemExit, KeyboardInterrupt) as error:
            if serving.done() or not self.started:
                raise
            log.error("%r in a task of an agent: its run ends, the server continues", error)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(AgentThreadPool(THREADS, "limelight-work"))
        await self.runtime.start()
        await super().startup(sockets=[])  # the acceptor takes the connections
        is_signal = SignalRecognizer(self.runtime.control, self.runtime.queues)
        acceptor = Acceptor(self._listener, self.runtime.connections, self._proxies, self._make_protocol, is_signal)
        acceptor.start()
        self.servers = [acceptor]  # pyright: ignore[reportAttributeAccessIssue]
        self._fd_monitor = asyncio.create_task(FdMonitor().run(), name="limelight-fd-monitor")
        if self._owns_process:
            self._freezing = asyncio.create_task(self._freeze_loaded_objects(), name="limelight-gc-freeze")
            self._trim_heap()
        agents = ", ".join(agent.name for agent in self.runtime.agents)
        data = self.runtime.settings.store.data
        self._print(f"Limelight serves {agents} on {self.url}  (data in {data}, Ctrl-C ends it)")

    def _make_protocol(self) -> HttpConnection:
        return HttpConnection(self.config, self.server_state, self.lifespan.state)

    def _trim_heap(self) -> None:
        if trim := find_trim():
            keep_mmap_threshold()
            self._heap_trimmer = asyncio.create_task(HeapTrimmer(trim).run(), name="limelight-heap-trimmer")

    async def _freeze_loaded_objects(self) -> None:
        """Exclude the objects of the frameworks from garbage collection, when all agents are loaded.

        Frameworks have hundreds of thousands of objects that live as long as the process. A full collection examines
        them all; that takes up to a second, during which no Stop and no other request is handled.
        """
        await asyncio.gather(*(agent.source.loaded() for agent in self.runtime.agents))
        gc.freeze()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self._captured_signals:
            force_exit_after(self._grace_seconds + SHUTDOWN_SECONDS)
        elif not self.force_exit:
            self.force_exit = True
            force_exit_after(FAST_SHUTDOWN_SECONDS)
            signal.signal(sig, signal.SIG_DFL)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.runtime.end_grace_period)  # the call also wakes the loop
        self._captured_signals.append(sig)
        self.should_exit = True

    def _handle_sighup(self) -> None:
        """Install the SIGHUP handler, unless this is not the main thread, or the signal is ignored, as under nohup."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._on_sighup)

    def _on_sighup(self, sig: int, frame: FrameType | None) -> None:
        if self._terminals - _open_terminals():
            self.handle_exit(signal.SIGTERM, frame)
        elif self._loop is not None:  # not logged here: the signal may have interrupted code that writes to the log
            with suppress(RuntimeError):  # the loop is closed, because the process ends
                self._loop.call_soon_threadsafe(log.warning, "SIGHUP is ignored: SIGTERM ends the server")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        grace_seconds = self._grace_seconds if self._captured_signals else 0
        self._print(_shutdown_message(self.runtime.sessions.working_count, grace_seconds))
        await self.runtime.drain(grace_seconds)
        await super().shutdown(sockets or [self._listener])
        await self.runtime.stop()
        for task in (self._fd_monitor, self._freezing, self._heap_trimmer):
            if task is not None:
                task.cancel()

    @property
    def _grace_seconds(self) -> float:
        return self.runtime.settings.server.grace_seconds

    def _print(self, line: str) -> None:
        with suppress(OSError):  # the output is a closed pipe, as in `limelight serve | head -1`
            self._announce(line)


def _open_terminals() -> set[int]:
    """Return those standard streams of the process that are terminals and have not been closed."""
    return {fd for fd in (0, 1, 2) if os.isatty(fd)}


def _shutdown_message(runs: int, seconds: float) -> str:
    if not runs:
        return "Limelight is stopping."
    if not seconds:
        return "Limelight is stopping: runs are sealed, streams are closed."
    if runs == 1:
        return f"Limelight is stopping: 1 run has {seconds:g} s to end. Once more ends it now."
    return f"Limelight is stopping: {runs} runs have {seconds:g} s to end. Once more ends them now."


def force_exit_after(seconds: float) -> None:
    """Start a timer that exits the process after `seconds`, even if a thread, the database or the event loop hangs."""
    timer = threading.Timer(seconds, _force_exit)
    timer.daemon = True  # a normal exit does not wait for the timer
    timer.start()


def _force_exit() -> None:
    try:
        log.error("shutdown timed out, forcing exit; threads still running: %s", "; ".join(_running_threads()))
    finally:
        with EXIT_LOCK:
            os._exit(EXIT_STATUS)  # without waiting for threads and exit handlers


def _running_threads() -> Iterator[str]:
    """Yield a description of each thread that prevents the exit: its name and its current line of code."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    threads = [thread for thread in threading.enumerate() if thread.ident in frames and not thread.daemon]
    for thread in threads[:MAX_NAMED_THREADS]:
        place = traceback.extract_stack(frames[thread.ident or 0], limit=1)[-1]
        yield f"{thread.name} in {place.name} ({place.filename}:{place.lineno})"
    if len(threads) > MAX_NAMED_THREADS:
        yield f"and {len(threads) - MAX_NAMED_THREADS} more"


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the port. Raises SetupError if the port is taken or the address is invalid."""
    family = socket.AF_INET6 if ":" in resolve(host) else socket.AF_INET
    # With IPPROTO_TCP asyncio disables Nagle's algorithm, which would delay the second part of an answer by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # raises EADDRINUSE if another program listens on the port and `bind` has not
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            other = f"make run PORT={port + 1}, or limelight serve --port {port + 1}"
            raise TryLater(f"port {port} is taken: end the program that uses it, or choose another: {other}") from error
        raise SetupError(f"{host}:{port} cannot be used: {error}") from error
    return listener


def resolve(host: str) -> str:
    """Return the numeric address of a host name. Raises SetupError if it is unknown."""
    try:
        return str(socket.getaddrinfo(host, None)[0][4][0])
    except OSError as error:
        raise SetupError(f"the address {host!r} is not known here: {error.strerror}") from error
