"""Accepts connections from the listening socket, within the limits of open and new connections.

A connection beyond these limits waits, unless its first bytes are a Stop or a decision on an approval.

It replaces the accept loop of asyncio, which makes a transport and a protocol for every connection at once: a client
that connects and disconnects in a loop would keep the event loop busy, and all other clients would wait. This loop
needs only three system calls for a connection whose client has disconnected, and yields to other tasks.
"""

import asyncio
import errno
import logging
import select
import socket
import sys
from collections import Counter
from collections.abc import Callable

from limelight.server.middleware.client_address import TrustedProxies, address_group
from limelight.server.process.connection_table import Connection, ConnectionTable
from limelight.server.process.uvicorn_protocols import HttpConnection

BACKLOG = 2048
"""Maximum number of connections that the kernel queues until the server accepts them. If the queue is full, the kernel
drops the packets of new clients, which try again after a second. Python's default is 128."""
ACCEPT_SECONDS = 0.002
"""Maximum time for which connections are accepted before other tasks of the event loop run."""
MAX_OPENED = 32
"""Maximum number of connections that are opened before other tasks of the event loop run, so that the requests of these
connections can authenticate before the next ones are opened."""
MAX_OPENED_OF_ADDRESS = 8
"""Maximum number of connections of one address that are opened before other tasks of the event loop run. So a client
that opens hundreds at once does not delay a connection of another address until all of them are open."""
FIRST_BYTES = 512
"""Number of bytes of a waiting connection that are read ahead, to recognize a request that must not wait."""
RETRY_SECONDS = 0.01
"""Interval at which the acceptor tries to open waiting connections while the limits allow none of them."""
EXHAUSTED_SECONDS = 0.1
"""Pause of the accept loop when no file descriptor or memory is left for another connection."""
WAITING_SHARE = 8
"""Divisor of `limits.connections` for the maximum number of waiting connections. A connection waits if its address has
too many open ones, or opens them too fast or too many at once."""
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
TCP_CLOSE_WAIT = 8
"""Linux's number for the TCP state of a connection whose client has closed its end."""
log = logging.getLogger(__name__)


class Acceptor:
    """The accept loop of one listening socket. It has the methods of `asyncio.Server` that uvicorn calls."""

    def __init__(
        self,
        listener: socket.socket,
        table: ConnectionTable,
        proxies: TrustedProxies,
        make_protocol: Callable[[], HttpConnection],
        must_not_wait: Callable[[bytes], bool],
    ) -> None:
        """`must_not_wait` decides by the first bytes of a connection, and is called once for each that waits."""
        self._listener = listener
        self._table = table
        self._proxies = proxies
        self._make_protocol = make_protocol
        self._must_not_wait = must_not_wait
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, dict[socket.socket, None]] = {}
        """Waiting connections by address. The newest is opened first, because its client probably still waits."""
        self._silent = SilentConnections()
        self._retry: asyncio.Handle | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        listener.listen(BACKLOG)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def start(self) -> None:
        self._resume = None
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        for timer in (self._retry, self._resume):
            if timer is not None:
                timer.cancel()
        for connections in self._waiting.values():
            for connection in connections:
                connection.close()
        self._waiting.clear()

    async def wait_closed(self) -> None: ...

    def _accept(self) -> None:
        """Accept connections until none is left, or other tasks of the event loop have to run."""
        until = self._loop.time() + ACCEPT_SECONDS
        opened: Counter[str] = Counter()
        while opened.total() < MAX_OPENED and self._loop.time() < until:
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:  # the client has left
                continue
            except OSError as error:
                self._pause(error)
                return
            self._admit(connection, str(address[0]), opened)

    def _pause(self, error: OSError) -> None:
        if error.errno not in EXHAUSTED:
            log.error("a connection cannot be accepted: %s", error)
        self._loop.remove_reader(self._listener)
        self._resume = self._loop.call_later(EXHAUSTED_SECONDS, self.start)

    def _admit(self, connection: socket.socket, peer: str, opened: Counter[str]) -> None:
        """Open a new connection, let it wait, or close it if its client has left. `opened` counts opened ones."""
        if has_left(connection):
            connection.close()
            return
        group = address_group(peer)
        may_open = group not in self._waiting and (opened[group] < MAX_OPENED_OF_ADDRESS or peer in self._proxies)
        if may_open and self._open(connection, peer, group):
            opened[group] += 1
            return
        self._waiting.setdefault(group, {})[connection] = None
        self._silent.add(connection, group)
        if self._retry is None:
            self._retry = self._loop.call_soon(self._open_waiting)

    def _open_waiting(self) -> None:
        """Open those that must not wait, and others in turn for each address, as far as the limits allow."""
        self._retry = None
        self._examine_first_bytes()
        opened = 0
        groups = list(self._waiting)
        for _ in range(MAX_OPENED_OF_ADDRESS):
            if opened < MAX_OPENED:
                groups = [group for group in groups if self._open_newest(group)]
                opened += len(groups)
        if opened and self._waiting:
            self._retry = self._loop.call_soon(self._open_waiting)
        elif self._waiting:
            self._close_oldest_waiting()
            self._retry = self._loop.call_later(RETRY_SECONDS, self._open_waiting)

    def _examine_first_bytes(self) -> None:
        """Examine waiting connections whose first bytes have arrived: open some at once, close those without client."""
        for connection, group in self._silent.pop_readable():
            first_bytes = peek(connection)
            if not first_bytes:
                self._stop_waiting(connection, group)
                connection.close()
            elif self._must_not_wait(first_bytes):
                self._stop_waiting(connection, group)
                self._start(connection, self._table.open_at_once(group))

    def _stop_waiting(self, connection: socket.socket, group: str) -> None:
        self._silent.discard(connection)
        del self._waiting[group][connection]
        if not self._waiting[group]:
            del self._waiting[group]

    def _close_oldest_waiting(self) -> None:
        """Close the oldest waiting connections of the addresses with the most waiting ones, until few enough wait."""
        while self.waiting > self._table.limits.total // WAITING_SHARE:
            group = max(self._waiting, key=lambda group: len(self._waiting[group]))
            oldest = next(iter(self._waiting[group]))
            self._stop_waiting(oldest, group)
            oldest.close()
            self._table.count_closed("waiting")

    def _open_newest(self, group: str) -> bool:
        """Open the newest waiting connection of an address. Return whether one was opened."""
        while group in self._waiting:
            connection = next(reversed(self._waiting[group]))
            is_gone = has_left(connection)
            if not is_gone and not self._open(connection, peer_of(connection), group):
                return False
            self._stop_waiting(connection, group)
            if not is_gone:
                return True
            connection.close()
        return False

    def _open(self, connection: socket.socket, peer: str, group: str) -> bool:
        """Start to serve a connection, if the limits of the connection table allow it. Return whether they do."""
        entry = self._table.open(group, is_rate_limited=peer not in self._proxies)
        if entry is None:
            return False
        self._start(connection, entry)
        return True

    def _start(self, connection: socket.socket, entry: Connection) -> None:
        task = self._loop.create_task(self._start_protocol(connection, entry))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _start_protocol(self, connection: socket.socket, entry: Connection) -> None:
        protocol = self._make_protocol()
        protocol.connection = entry
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:  # the client has left
            self._table.close(entry)
            connection.close()


class SilentConnections:
    """Waiting connections whose first bytes were not examined. One system call finds those that have sent any."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._connections: dict[int, tuple[socket.socket, str]] = {}
        """Connections by file descriptor, each with the group of its address."""

    def add(self, connection: socket.socket, group: str) -> None:
        self._poll.register(connection, select.POLLIN)
        self._connections[connection.fileno()] = connection, group

    def discard(self, connection: socket.socket) -> None:
        """Remove a connection, before it is opened or closed."""
        if self._connections.pop(connection.fileno(), None) is not None:
            self._poll.unregister(connection)

    def pop_readable(self) -> list[tuple[socket.socket, str]]:
        """Remove and return the connections whose clients have sent something, or have left."""
        found = [self._connections[fd] for fd, _ in self._poll.poll(0)]
        for connection, _ in found:
            self.discard(connection)
        return found


def has_left(connection: socket.socket) -> bool:
    """Whether the client has closed its end of a connection, so that it reads no answer. False if not on Linux."""
    if sys.platform != "linux":
        return False
    try:
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE_WAIT
    except OSError:
        return True


def peek(connection: socket.socket) -> bytes:
    """Return the first bytes of a readable connection without reading them; b"" if its client has left."""
    try:
        return connection.recv(FIRST_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return b""


def peer_of(connection: socket.socket) -> str:
    try:
        return str(connection.getpeername()[0])
    except OSError:  # the client has left
        return ""
