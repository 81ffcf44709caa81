"""The measured user of the flood benchmark: starts and stops runs, pings a socket and reads `/health`.

It is a separate process with normal priority (`python -m benchmarks.floods.measured_user`). It executes the orders of
its standard input, one after another. Its three loops run side by side; each sends the next request after a pause that
follows the response.
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import uvloop
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from benchmarks.floods.server import USER_ADDRESS, UserOrder, UserReport
from benchmarks.http_stream import FRAME, chat_body, request_bytes

FIRST_EVENT, STOP, PING, HEALTH, CLIENT = "first event", "Stop", "ping", "/health", "client"
"""What is measured. `CLIENT` is how late a timer of this process was, which the machine delays and not the server."""
PAUSES = {STOP: 0.1, PING: 0.05, HEALTH: 0.05, CLIENT: 0.01}
"""Seconds between two measurements."""
WARM_UP_RUNS = 5
PATIENCE_SECONDS = 10
"""Time limit of one request. A request that takes longer has failed, and counts with this time."""


class Unexpected(Exception):
    """The error for a response that the user does not expect."""


class User:
    """Executes one order: sends the requests of the measured user, and collects latencies and failures."""

    def __init__(self, order: UserOrder) -> None:
        self._order = order
        self._until = 0.0
        self._runs = 0
        self._awaited = FIRST_EVENT
        """What the current run waits for: its first event, or its end."""
        self.report = UserReport()

    async def warm_up(self) -> None:
        for _ in range(WARM_UP_RUNS):
            await self._run_and_stop()
            await self._health()
        self.report = UserReport()

    async def measure(self) -> None:
        self._until = time.perf_counter() + self._order.seconds
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(STOP, self._run_and_stop))
            tasks.create_task(self._repeat(HEALTH, self._health))
            tasks.create_task(self._ping())
            tasks.create_task(self._watch_timers())

    async def _repeat(self, what: str, request: Callable[[], Awaitable[None]]) -> None:
        while time.perf_counter() < self._until:
            began = time.perf_counter()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await request()
            except (OSError, Unexpected, TimeoutError, WebSocketException) as error:
                for late in {what, self._awaited} if what == STOP else {what}:
                    self._add(late, began)
                self.report.failures.append(f"{what}: {str(error) or type(error).__name__}")
            await asyncio.sleep(PAUSES[what])

    def _add(self, what: str, began: float) -> float:
        now = time.perf_counter()
        self.report.latencies.setdefault(what, []).append((now - began) * 1000)
        return now

    async def _health(self) -> None:
        began = time.perf_counter()
        async with self._request("GET", "/health", b"") as reader:
            expect(await reader.read(), b" 200 ")
        self._add(HEALTH, began)

    async def _run_and_stop(self) -> None:
        """Start a run, wait for its first event, stop it, and wait for its end."""
        self._runs += 1
        self._awaited = FIRST_EVENT
        content = msgspec.json.encode(chat_body("endless", "go", f"run-{self._runs}"))
        began = time.perf_counter()
        async with self._request("POST", "/chat/stream?format=records", content) as reader:
            head = await reader.readuntil(FRAME)
            expect(head, b" 200 ")
            began = self._add(FIRST_EVENT, began)
            self._awaited = STOP
            run_id = head.partition(b"x-run-id: ")[2].partition(b"\r\n")[0].decode()
            address = self._order.stop_address
            async with self._request("POST", f"/runs/{run_id}/cancel", b"", address) as stop:
                expect(await reader.read(), b"run_cancelled")
                self._add(STOP, began)
                expect(await stop.read(), b" 200 ")

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, content: bytes, address: str = USER_ADDRESS
    ) -> AsyncGenerator[asyncio.StreamReader]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._order.port, local_addr=(address, 0))
        try:
            close = "connection: close\r\n"
            writer.write(request_bytes(self._order.port, method, path, content, self._order.key, close))
            yield reader
        except asyncio.IncompleteReadError as error:
            raise Unexpected(f"{method} {path}: {error.partial[:200]!r}") from error
        finally:
            writer.close()

    async def _ping(self) -> None:
        """Ping on one socket. If the socket is closed, count it as a failure and open another one."""

        async def ping() -> None:
            nonlocal socket
            socket = socket or await self._connect()
            began = time.perf_counter()
            try:
                await socket.send('{"type":"ping"}')
                while b'"pong"' not in await socket.recv(decode=False):
                    pass
            except BaseException:
                socket = None
                raise
            self._add(PING, began)

        socket: ClientConnection | None = None
        try:
            await self._repeat(PING, ping)
        finally:
            if socket is not None:
                socket.transport.abort()

    async def _connect(self) -> ClientConnection:
        url = f"ws://127.0.0.1:{self._order.port}/api/v2/ws/pings?agent_type=short"
        headers = {"authorization": f"Bearer {self._order.key}"}
        return await connect(url, proxy=None, additional_headers=headers, ping_interval=None, open_timeout=None)

    async def _watch_timers(self) -> None:
        while time.perf_counter() < self._until:
            due_at = time.perf_counter() + PAUSES[CLIENT]
            await asyncio.sleep(PAUSES[CLIENT])
            self._add(CLIENT, due_at)


def expect(response: bytes, text: bytes) -> None:
    if text not in response:
        raise Unexpected(f"no {text.decode()!r} in {response[:200]!r}")


async def execute(order: UserOrder) -> UserReport:
    user = User(order)
    if order.seconds:
        await user.measure()
    else:
        await user.warm_up()
    return user.report


def main() -> None:
    for line in sys.stdin.buffer:
        report = uvloop.run(execute(msgspec.json.decode(line, type=UserOrder)))
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
