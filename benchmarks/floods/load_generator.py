"""The load generator of the floods (`python -m benchmarks.floods.load_generator`): executes one flood after another.

Each order is executed by a fork of this process, so that its connections end with it and modules are loaded only once.
The fork creates the objects that the flood names, writes an empty line, and starts the flood at the next line of its
input. It writes an empty line when the connections are open, and its report at the next line of its input. It has a low
priority, so that it does not delay the measured user, and on Linux an address of its own.
"""

import asyncio
import itertools
import os
import re
import socket
import struct
import sys
import traceback
from typing import cast

import msgspec
import uvloop

from benchmarks.floods.catalog import FLOODS, KB, NUMBER, Flood, Message, Request
from benchmarks.floods.server import FAILED, FLOOD_ADDRESS, FloodOrder, FloodReport
from benchmarks.http_stream import request_bytes
from benchmarks.server_process import raise_fd_limit

NICENESS = 19
BLOCK = 64 * KB
"""Number of bytes that a client without a window writes at once."""
SLOW_BYTES = 4 * KB
SLOW_SECONDS = 0.2
"""A client that reads slowly has a receive buffer of this size, and reads once in this time."""
MAX_OPENING = 200
"""Maximum number of connections that are being opened at the same time."""
OPENING_SECONDS = 3.0
"""Time after which the flood counts as begun, even if the server has not accepted all connections."""
RECONNECT_SECONDS = 0.25
"""Delay before the client opens a connection again that the server has closed."""
SETUP_SECONDS = 60
STATUS = b"HTTP/1.1 "
APPROVAL = re.compile(rb'"approval_id":"([^"]+)"')
RUN_ID = re.compile(rb'x-run-id: (\S+)|"run_id":"([^"]+)"')
PAGE_FILE = re.compile(rb'src="(?:\./|/)?(assets/[^"]+)"|(</html>)')
ARTIFACT = re.compile(rb'"artifact_id":"([^"]+)"')
_numbers = iter(range(10_000_000, 100_000_000))


class Piece:
    """Bytes that a connection sends in one write. Each `{number}` in them is replaced by a different number."""

    def __init__(self, data: bytes) -> None:
        self._parts = data.split(NUMBER.encode())

    def next(self) -> bytes:
        if len(self._parts) == 1:
            return self._parts[0]
        pieces = [piece for part in self._parts for piece in (b"%d" % next(_numbers), part)]
        return b"".join(pieces[1:])


class Script:
    """The bytes that each connection of a flood sends: `opening` once, then `pieces` in turn."""

    def __init__(self, flood: Flood, port: int, key: str, values: dict[str, str]) -> None:
        self._host = f"127.0.0.1:{port}"
        self._key = key
        self._values = values
        requests = [self._request(request) for request in flood.requests]
        opening, pieces = b"", requests
        if flood.is_socket:
            opening, pieces = requests[0], [self._frame(message) for message in flood.messages]
        elif flood.unsent or flood.rest:
            opening, pieces = requests[0][: max(0, len(requests[0]) - flood.unsent)], [flood.rest]
        if flood.window == 0 and not flood.interval:  # without waiting, larger writes are cheaper
            joined = b"".join(pieces)
            pieces = [joined * max(1, BLOCK // len(joined))]
        self.opening = Piece(opening)
        self.pieces = [Piece(piece) for piece in pieces if piece]

    def _request(self, request: Request) -> bytes:
        content = b"" if request.body is None else self._fill(request.body.encode())
        authorization = f"Bearer {self._key}" if self._key else ""
        if request.authorization is not None:
            authorization = request.authorization
        head = f"{request.method} {request.path} HTTP/1.1\r\nhost: {self._host}\r\n{request.headers}"
        head += f"authorization: {authorization}\r\n" if authorization else ""
        if request.is_chunked:
            head += "transfer-encoding: chunked\r\n"
        elif request.body is not None:
            head += f"content-length: {len(content) if request.announced is None else request.announced}\r\n"
        return self._fill(f"{head}\r\n".encode()) + content

    def _frame(self, message: Message) -> bytes:
        """Return a frame with a mask of zeros, which does not change the message."""
        content = self._fill(message.body.encode())
        size = len(content)
        first = (0x80 if message.is_final else 0) | message.opcode
        if size < 126:
            head = struct.pack("!BB", first, 0x80 | size)
        elif size < 2**16:
            head = struct.pack("!BBH", first, 0xFE, size)
        else:
            head = struct.pack("!BBQ", first, 0xFF, size)
        return head + bytes(4) + content

    def _fill(self, data: bytes) -> bytes:
        for name, value in self._values.items():
            data = data.replace(f"{{{name}}}".encode(), value.encode())
        return data


class Connection(asyncio.Protocol):
    """One connection of a flood, until the client or the server closes it."""

    def __init__(self, flood: Flood, script: Script, report: FloodReport) -> None:
        self._flood = flood
        self._script = script
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._pieces = itertools.cycle(script.pieces)
        self._is_paused = False
        self._pump_handle: asyncio.Handle | None = None
        self._outstanding = 0
        self._received = 0
        self._has_left = False
        self.closed: asyncio.Future[bool] = self._loop.create_future()
        """Done when the connection is closed, with whether the client has closed it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._report.opened += 1
        if self._flood.reads != "all":
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BYTES)
        if self._flood.reads == "nothing" and not self._flood.is_socket:
            self._transport.pause_reading()
        self._write(self._script.opening)
        if not self._flood.is_socket:
            self._begin()

    def _begin(self) -> None:
        """Start to send the pieces: at once, or after the handshake if the flood is on a WebSocket."""
        if self._flood.leaves_after == 0:
            if self._script.pieces:
                self._write(next(self._pieces))
            self._has_left = True
            self._transport.close()
        else:
            self._pump()

    def _pump(self) -> None:
        """Send the next piece if the window allows it, and continue after the interval, or soon."""
        self._pump_handle = None
        if self._transport.is_closing() or self._is_paused or not self._script.pieces:
            return
        window = self._flood.window
        while window and self._outstanding < window and not self._is_paused:
            self._outstanding += 1
            self._write(next(self._pieces))
        if not window:
            self._write(next(self._pieces))
            self._pump_later()

    def _pump_later(self) -> None:
        if self._pump_handle is None:
            interval = self._flood.interval
            self._pump_handle = (
                self._loop.call_later(interval, self._pump) if interval else self._loop.call_soon(self._pump)
            )

    def _write(self, piece: Piece) -> None:
        data = piece.next()
        self._report.sent += len(data)
        self._transport.write(data)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._pump_later()

    def data_received(self, data: bytes) -> None:
        is_first = not self._received
        self._received += len(data)
        self._report.received += len(data)
        if is_first or not self._flood.is_socket:
            self._count_answers(data)
        if is_first and self._flood.is_socket:
            if self._flood.reads == "nothing":
                self._transport.pause_reading()
            if data.startswith(b"HTTP/1.1 101"):
                self._begin()
        if self._flood.leaves_after and self._received >= self._flood.leaves_after:
            self._has_left = True
            self._transport.abort()
        elif self._flood.reads == "slowly":
            self._transport.pause_reading()
            self._loop.call_later(SLOW_SECONDS, self._read_again)

    def _count_answers(self, data: bytes) -> None:
        answers = data.split(STATUS)[1:]  # one that is split between two reads is missed
        for answer in answers:
            self._report.count(answer[:3].decode("latin-1"))
        self._outstanding = max(0, self._outstanding - len(answers))
        if answers and self._flood.window and self._outstanding <= self._flood.window // 2:
            self._pump_later()

    def _read_again(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._report.closed += not self._has_left
        self.closed.set_result(self._has_left)


class FloodClient:
    """Opens the connections of one flood, and opens them again when they are closed."""

    def __init__(self, flood: Flood, script: Script, port: int) -> None:
        self._flood = flood
        self._script = script
        self._port = port
        self._opening = asyncio.Semaphore(MAX_OPENING)
        self._waiting = flood.connections
        """Number of connections that have not been opened yet."""
        self.is_open = asyncio.Event()
        self.report = FloodReport()

    async def run(self) -> None:
        """Keep all connections open, until this task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._flood.connections):
                tasks.create_task(self._keep())

    async def _keep(self) -> None:
        is_first = True
        while True:
            connection = await self._connect()
            if is_first and connection is not None:
                is_first = False
                self._waiting -= 1
                if not self._waiting:
                    self.is_open.set()
            if connection is None or not await connection.closed:
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _connect(self) -> Connection | None:
        """Open a connection. Returns None if this is not possible, for example because no port is free."""
        loop = asyncio.get_running_loop()
        async with self._opening:
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(self._flood, self._script, self.report),
                    "127.0.0.1",
                    self._port,
                    local_addr=(FLOOD_ADDRESS, 0),
                )
            except OSError:
                self.report.count("no connection")
                return None
            return connection


class Setup:
    """Creates the sessions, runs and files of the flooding user to which the requests of a flood refer."""

    def __init__(self, order: FloodOrder, flood: Flood) -> None:
        self._order = order
        self._flood = flood
        self.values: dict[str, str] = {"key": order.key, "asset": ""}

    async def run(self) -> None:
        if self._uses("asset"):
            page = found(PAGE_FILE, await self._exchange("GET", "/", b"", PAGE_FILE))
            self.values["asset"] = f"/{page}" if page.startswith("assets") else "/assets/none.js"
        if self._uses("run", "session", "long"):
            run = await self._ask("/chat", "long", "flooded")
            live = await self._ask("/chat/stream", "endless", "flooded")
            self.values |= {"session": "flooded", "long": found(RUN_ID, run), "run": found(RUN_ID, live)}
        if self._uses("made", "artifact"):
            made = found(RUN_ID, await self._ask("/chat", "maker", "made"))
            records = await self._exchange("GET", f"/runs/{made}/stream?format=records", b"", ARTIFACT)
            self.values |= {"made": made, "artifact": found(ARTIFACT, records)}
        if self._uses("asking", "approval"):
            asking = await self._ask("/chat/stream?format=records", "asker", "asking", APPROVAL)
            self.values |= {"asking": found(RUN_ID, asking), "approval": found(APPROVAL, asking)}

    def _uses(self, *placeholders: str) -> bool:
        return any(self._flood.uses(placeholder) for placeholder in placeholders)

    async def _ask(self, path: str, agent: str, session_id: str, until: re.Pattern[bytes] = RUN_ID) -> bytes:
        body = {"agent": agent, "session_id": session_id, "messages": [{"role": "user", "content": "go"}]}
        return await self._exchange("POST", path, msgspec.json.encode(body), until)

    async def _exchange(self, method: str, path: str, content: bytes, until: re.Pattern[bytes]) -> bytes:
        """Send a request and return the response up to the first match. Then leave: runs continue without a viewer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._order.port, local_addr=(FLOOD_ADDRESS, 0))
        writer.write(request_bytes(self._order.port, method, path, content, self._order.key))
        response = b""
        async with asyncio.timeout(SETUP_SECONDS):
            while not until.search(response) and (data := await reader.read(BLOCK)):
                response += data
        writer.close()
        if not until.search(response):
            raise RuntimeError(f"{method} {path} was not answered as expected: {response[:500]!r}")
        return response


def found(pattern: re.Pattern[bytes], response: bytes) -> str:
    match = pattern.search(response)
    assert match is not None
    return next(group for group in match.groups() if group).decode()


async def next_line(reader: asyncio.StreamReader) -> bytes:
    print(flush=True)
    return await reader.readline()


async def execute(order: FloodOrder) -> FloodReport:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    flood = FLOODS[order.flood]
    setup = Setup(order, flood)
    await setup.run()
    script = Script(flood, order.port, order.key if order.has_key else "", setup.values)
    await next_line(reader)
    client = FloodClient(flood, script, order.port)
    work = asyncio.create_task(client.run())
    if flood.connections:
        opened = asyncio.create_task(client.is_open.wait())
        await asyncio.wait({work, opened}, timeout=OPENING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    await next_line(reader)
    if work.done():
        work.result()
    return client.report


def execute_in_fork(order: FloodOrder) -> bool:
    """Execute an order in a forked process, whose end drops all connections. Return whether it succeeded."""
    pid = os.fork()
    if pid:
        is_done = os.waitpid(pid, 0)[1] == 0
        os.set_blocking(sys.stdin.fileno(), True)  # the event loop of the fork has changed the shared pipe
        return is_done
    try:
        report = asyncio.Runner(loop_factory=uvloop.new_event_loop).run(execute(order))
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    os.nice(NICENESS)
    raise_fd_limit()
    for line in sys.stdin.buffer:
        if line.startswith(b"{") and not execute_in_fork(msgspec.json.decode(line, type=FloodOrder)):
            print(FAILED, flush=True)


if __name__ == "__main__":
    main()
