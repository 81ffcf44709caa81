"""The server process: a socket, uvicorn, and an end in good order. `limelight serve` and the tests use it."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.applications import Starlette

from limelight.errors import SetupError
from limelight.server.connection import Connection, Socket
from limelight.server.containing import AgentThreads
from limelight.server.parts import Parts

log = logging.getLogger(__name__)
WORKERS = 128
"""Threads for what agents do with `asyncio.to_thread`; with the usual six, a few slow tools would hold up everybody."""
MAX_FRAME = 16 * 1024 * 1024
"""Larger messages close their socket; what is over the limit but below this gets an answer."""
PING_SECONDS = 20
PONG_SECONDS = 60
GRACE_SECONDS = 5
"""How long connections may take to close once their streams have ended."""


class LimelightServer(uvicorn.Server):
    """uvicorn, with two differences: it says where it is once it can work, and ends runs before it closes sockets."""

    def __init__(self, app: Starlette, listener: socket.socket, say: Callable[[str], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws=Socket,
                log_config=None,
                lifespan="off",
                access_log=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
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

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{port}{self._root}"

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            loop = runner.get_loop()
            serving = loop.create_task(self.serve([self._listener]))
            while not serving.done():
                self._run_loop(loop, serving)

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
        asyncio.get_running_loop().set_default_executor(AgentThreads(WORKERS, "limelight-work"))
        await self.parts.start()
        await super().startup(sockets or [self._listener])
        agents = ", ".join(agent.name for agent in self.parts.agents)
        data = self.parts.settings.store.data
        self._tell(f"Limelight serves {agents} on {self.url}  (data in {data}, Ctrl-C ends it)")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._tell("Limelight is stopping: runs are sealed, streams are closed.")
        await self.parts.drain()
        await super().shutdown(sockets or [self._listener])
        await self.parts.stop()

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # whoever read this has gone (`limelight serve | head -1`), and the server goes on
            self._say(line)


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
            raise SetupError(
                f"port {port} is taken: end the program that uses it, or choose another: {other}"
            ) from error
        raise SetupError(f"{host}:{port} cannot be used: {error}") from error
    return listener


def resolve(host: str) -> str:
    """The numeric address of a host name."""
    try:
        return str(socket.getaddrinfo(host, None)[0][4][0])
    except OSError as error:
        raise SetupError(f"the address {host!r} is not known here: {error.strerror}") from error
