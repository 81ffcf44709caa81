"""The server process: a socket, uvicorn, and an end in good order. `limelight serve` and the tests use it."""

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from limelight.errors import SetupError, TryLater
from limelight.server.process.connection import Connection, Socket
from limelight.server.process.executor import AgentThreads
from limelight.server.process.fd_limit import Descriptors
from limelight.server.process.forced_exit import end_process_after
from limelight.server.runtime import Parts

log = logging.getLogger(__name__)
WORKERS = 1024
"""Threads for what agents do with `asyncio.to_thread`, made when they are needed; with the usual six, a few slow tools
would hold up everybody. No run gets more than its share of them."""
MAX_FRAME = 16 * 1024 * 1024
"""Larger messages close their socket; what is over the limit but below this gets an answer."""
PING_SECONDS = 20
PONG_SECONDS = 60
CLOSING_SECONDS = 5
"""How long connections may take to close once their streams have ended."""
ENDING_SECONDS = 20
"""How long the end may take in all, after the time that runs have; every part of it has a shorter bound of its own."""
HURRY_SECONDS = 2
"""The same for somebody who has said it twice."""


class LimelightServer(uvicorn.Server):
    """uvicorn, with three differences: it says where it is once it can work, it ends runs before it closes sockets, and
    it ends by a time that is set.

    The first SIGTERM or SIGINT gives runs their time, the second ends them now, the third is the system's.
    """

    def __init__(self, app: Starlette, listener: socket.socket, say: Callable[[str], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws=Socket,
                log_config=None,
                lifespan="off",
                access_log=False,
                timeout_graceful_shutdown=CLOSING_SECONDS,
                server_header=False,
                ws_max_size=MAX_FRAME,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PONG_SECONDS,
                ws_per_message_deflate=False,
            )
        )
        self.parts: Parts = app.state.parts
        self._root: str = app.state.root
        self._listener = listener
        self._say = say
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{port}{self._root}"

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            loop = runner.get_loop()
            serving = loop.create_task(self.serve([self._listener]))
            try:
                while not serving.done():
                    self._run_loop(loop, serving)
            finally:
                if self._captured_signals:  # what is left now are threads and tasks of agents
                    end_process_after(HURRY_SECONDS)

    def _run_loop(self, loop: asyncio.AbstractEventLoop, serving: "asyncio.Task[None]") -> None:
        """Until the server ends. `exit()` in a task of an agent's framework stops the loop, which then goes on: the
        task has ended, and whoever awaits it gets the error."""
        try:
            loop.run_until_complete(serving)
        except (SystemExit, KeyboardInterrupt) as error:
            if serving.done() or not self.started:
                raise
            log.error("%r in a task of an agent: its run ends, the server goes on", error)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(AgentThreads(WORKERS, "limelight-work"))
        await self.parts.start()
        await super().startup(sockets or [self._listener])
        self._watching = asyncio.create_task(Descriptors().watch(), name="watching open files")
        agents = ", ".join(agent.name for agent in self.parts.agents)
        data = self.parts.settings.store.data
        self._tell(f"Limelight serves {agents} on {self.url}  (data in {data}, Ctrl-C ends it)")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self._captured_signals:
            end_process_after(self._grace_seconds + ENDING_SECONDS)
        elif not self.force_exit:
            self.force_exit = True
            end_process_after(HURRY_SECONDS)
            signal.signal(sig, signal.SIG_DFL)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.parts.hurry)  # which also wakes it
        self._captured_signals.append(sig)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        grace_seconds = self._grace_seconds if self._captured_signals else 0
        self._tell(_farewell(self.parts.sessions.at_work, grace_seconds))
        await self.parts.drain(grace_seconds)
        await super().shutdown(sockets or [self._listener])
        await self.parts.stop()
        if self._watching is not None:
            self._watching.cancel()

    @property
    def _grace_seconds(self) -> float:
        return self.parts.settings.server.grace_seconds

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # whoever read this has gone (`limelight serve | head -1`), and the server goes on
            self._say(line)


def _farewell(runs: int, seconds: float) -> str:
    if not runs:
        return "Limelight is stopping."
    if not seconds:
        return "Limelight is stopping: runs are sealed, streams are closed."
    one = runs == 1
    has = f"{runs} run{'' if one else 's'} {'has' if one else 'have'} {seconds:g} s to end"
    return f"Limelight is stopping: {has}. Once more ends {'it' if one else 'them'} now."


def bind(host: str, port: int) -> socket.socket:
    """Take the port now, so that a wrong one is one line and not a traceback in the middle of the start."""
    family = socket.AF_INET6 if ":" in resolve(host) else socket.AF_INET
    # With the protocol named, asyncio turns Nagle's algorithm off: else the second piece of an answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # a port that another program listens on is refused here at the latest
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            other = f"make run PORT={port + 1}, or limelight serve --port {port + 1}"
            raise TryLater(f"port {port} is taken: end the program that uses it, or choose another: {other}") from error
        raise SetupError(f"{host}:{port} cannot be used: {error}") from error
    return listener


def resolve(host: str) -> str:
    """The numeric address of a host name."""
    try:
        return str(socket.getaddrinfo(host, None)[0][4][0])
    except OSError as error:
        raise SetupError(f"the address {host!r} is not known here: {error.strerror}") from error
