"""uvicorn's HTTP and WebSocket protocols as subclasses that limit the memory and the time of one connection.

They work on bytes and frames, before any request exists: refused input never reaches the application.
`docs/decisions/0014-bounded-connections.md` explains why, and `tests/server/process/test_uvicorn_protocols.py` checks
the bounds against the pinned uvicorn.
"""

import asyncio
import logging
import socket
import struct
import sys
from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from limelight.server.process.connection_table import Connection
from limelight.server.process.input_scheduler import SLICE_SECONDS, priority_of, scheduler_of
from limelight.server.token_bucket import TokenBucket

MAX_HEADER_BYTES = 32 * 1024
"""Limit of the headers of one request, in bytes. Larger headers are answered with 400. uvicorn itself has no limit: it
buffers all headers and copies the buffer with each read, which would block the event loop."""
MAX_HEADERS = 128
"""Limit of the number of headers of one request. More are answered with 400: the objects of thousands of short headers
need much more memory than their bytes."""
HEADER_OBJECT_BYTES = 200
"""Approximate memory of the objects of one header."""
HEADER_SECONDS = 20.0
"""Time limit for receiving all headers of a request, or the rest of the body of a request that was already answered.
After it the connection is closed."""
HEADERS_TOO_LARGE = f"The headers are over the limit of {MAX_HEADER_BYTES} bytes."
TOO_MANY_HEADERS = f"The request has more than {MAX_HEADERS} headers."
HEADERS_END = b"\r\n\r\n"
BODY_PIECE = 64 * 1024
"""Bytes of a body with a `Content-Length` that are passed to the parser at once."""
CHUNKED_PIECE = 512
"""Bytes of a chunked body that are passed to the parser at once. Only the parser knows where a chunked body ends, so
these bytes may contain further requests, which uvicorn queues. The small size keeps that queue short."""
MAX_DISCARDED_BYTES = 16 * 1024 * 1024
"""Limit of the bytes that are read and discarded from a body whose request was already answered. Reading them lets a
client that is still sending receive the answer."""
MAX_PIPELINED_BYTES = 16 * 1024
"""Limit of the bytes of pipelined requests that are buffered while an earlier request is being answered. Beyond it the
server sends that answer and closes the connection; clients retry the unanswered requests (RFC 9112, 9.3.2)."""
LINGER_SECONDS = 2.0
"""Delay between the last answer and the close of a connection whose further input is not read. Closing with unread
input resets a TCP connection, and the client might lose the answer."""
UNREAD_SECONDS = 120
"""Time after which a connection is aborted if the client does not read what the server has sent. Without this limit the
kernel keeps the connection of a vanished client for 15 minutes, and of a client that does not read indefinitely. A
client that reconnects resumes at its cursor."""
MIN_READ_BYTES = 16 * 1024
"""Bytes that a client has to read within UNREAD_SECONDS to keep its connection."""
FRAMES_PIECE = 1024
"""Bytes of WebSocket input that are parsed at once. The small size limits the messages that are queued for the
application."""
CONTROL_FRAMES = 60
CONTROL_FRAMES_PER_SECOND = 10
"""Limit of the ping and pong frames of a client: a burst of CONTROL_FRAMES, and this rate. Beyond it the socket is
closed."""
MAX_FRAGMENTS = 16 * 1024
"""Limit of the frames of one WebSocket message. uvicorn limits only the bytes of a message, and frames may be empty."""
MAX_BYTES_AFTER_CLOSE = 64 * 1024
"""Limit of the bytes that are read from a client after the server has sent a close frame, to receive the client's close
frame."""
INPUT_CHECK_SECONDS = 0.05
"""Delay before connections are closed because there is too much input: a moment, in which the requests of many clients
that have just begun can authenticate."""
INVALID_DATA = 1007
POLICY_VIOLATION = 1008
UNKNOWN_SIZE = -1
"""The body size of a chunked request, which is not known in advance."""
_log = logging.getLogger("uvicorn.error.connection")
_log.setLevel(logging.ERROR)
"""The logger of HTTP connections. It drops uvicorn's warnings about malformed requests, with which a client could fill
the log."""


class HttpConnection(HttpToolsProtocol):
    """An HTTP connection with bounded buffers.

    It passes the bytes of one request at a time to the parser. While that request is being answered, or while the
    client does not read, it parses no further input. While unparsed input is buffered, it stops reading.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _log
        self._unparsed = bytearray()
        self._input = scheduler_of(self.loop)
        self._header_bytes = 0
        """Bytes parsed since the last parser callback for headers, body data or the end of a request."""
        self._header_tail = b""
        """The last bytes of incomplete headers: the blank line after them may be split between two reads."""
        self._body_left = 0
        """Remaining bytes of the current body: 0 while headers are expected, UNKNOWN_SIZE for a chunked body."""
        self._discarded = 0
        """Bytes of the current body that were discarded because its request was already answered."""
        self._running: RequestResponseCycle | None = None
        """The request that is being answered. uvicorn's `cycle` is the request that was parsed last."""
        self._header_timer: asyncio.TimerHandle | None = None
        self._unread_timer = UnreadTimer(self.loop)
        self._linger_timer: asyncio.TimerHandle | None = None
        self.is_ending = False
        """Whether the connection reads no further requests and will be closed."""
        self.connection: Connection | None = None
        """The entry in the table of connections. `Acceptor` sets it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if self.connection is not None:
            self.connection.abort = transport.abort
            self.connection.is_idle = lambda: not self._is_answering()
        self.flow = self._read_control = ReadControl(transport, self)
        self._start_header_timer()
        self._unread_timer.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._unread_timer.stop()
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        self._unparsed.clear()
        self._input.discard(self._parse)
        if self.connection is not None:
            self.connection.table.close(self.connection)
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self._drop_bodies()
        super().connection_lost(exc)

    def _drop_bodies(self) -> None:
        """Free the unread bodies of the requests, which reference cycles would keep in memory for some time."""
        for cycle in (self._running, self.cycle):
            if cycle is not None:
                cycle.body.clear()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_timer.stop()
        self.parse_soon()

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if self._input.may_parse() and not self._input.is_waiting(self._parse):
            self._parse()
        else:
            self._wait_for_turn()
            self._report_input_size()

    def _report_input_size(self) -> None:
        """Report the size of the buffered input to the table of connections."""
        if self.connection is None:
            return
        body = len(self.cycle.body) if self._is_answering() else 0
        headers = HEADER_OBJECT_BYTES * len(self.headers) if self._is_answering() else 0
        _report_input_size(self.connection, len(self._unparsed) + self._header_bytes + body + headers, self.loop)

    @property
    def has_unparsed(self) -> bool:
        return bool(self._unparsed)

    def parse_soon(self) -> None:
        """Parse the buffered input when it is the turn of this connection."""
        if self._unparsed:
            is_discarded = self._body_left != 0 and not self._is_answering()
            self._input.add(self._parse, priority_of(len(self._unparsed), is_discarded=is_discarded))

    def _wait_for_turn(self) -> None:
        """Stop reading until the buffered input is parsed."""
        self.flow.pause_reading()
        self._unset_keepalive_if_required()  # no keep-alive timeout while input is buffered
        self.parse_soon()

    def _parse(self) -> None:
        """Parse buffered input until a request has to be answered first, or this connection's time slice is over."""
        self._parse_pieces()
        self._report_input_size()

    def _parse_pieces(self) -> None:
        until = self.loop.time() + SLICE_SECONDS
        while self._unparsed and not self._must_wait() and not self._is_over():
            if self.loop.time() > until:
                self._wait_for_turn()
                return
            self._feed(self._next_piece())
        if self._is_over():
            self._unparsed.clear()
        elif not self._unparsed:
            if not self._has_enough_body():
                self.flow.resume_reading()
        else:
            self.flow.pause_reading()
            self._unset_keepalive_if_required()  # no keep-alive timeout while input is buffered
            if len(self._unparsed) > MAX_PIPELINED_BYTES and not self._is_reading_body():
                self._end()

    def _end(self) -> None:
        """Stop reading, and close the connection once all parsed requests are answered."""
        self._unparsed.clear()
        self.is_ending = True
        self.flow.pause_reading()
        self._linger_if_answered()

    def _is_over(self) -> bool:
        """Whether the connection is being closed, or has become a WebSocket."""
        return self.is_ending or self.transport.is_closing() or self.transport.get_protocol() is not self

    def _must_wait(self) -> bool:
        if self.flow.write_paused or self.pipeline:
            return True
        return self._is_answering() and (not self.cycle.more_body or self._has_enough_body())

    def _is_answering(self) -> bool:
        return not getattr(self.cycle, "response_complete", True)  # uvicorn has no cycle before the first request

    def _is_reading_body(self) -> bool:
        return self._is_answering() and self.cycle.more_body

    def _has_enough_body(self) -> bool:
        return self._is_reading_body() and len(self.cycle.body) > HIGH_WATER_LIMIT

    def _next_piece(self) -> bytes:
        """Remove and return the next bytes for the parser. They end at the latest with the current headers or body."""
        if self._body_left == 0:
            return self._take(self._size_of_headers())
        if self._body_left == UNKNOWN_SIZE:
            return self._take(CHUNKED_PIECE)
        piece = self._take(min(self._body_left, BODY_PIECE))
        self._body_left -= len(piece)
        return piece

    def _size_of_headers(self) -> int:
        headers = self._header_tail + self._unparsed if self._header_tail else self._unparsed
        end = headers.find(HEADERS_END)
        if end < 0:
            self._header_tail = bytes(headers[1 - len(HEADERS_END) :])
            return len(self._unparsed)
        size = end + len(HEADERS_END) - len(self._header_tail)
        self._header_tail = b""
        return size

    def _take(self, size: int) -> bytes:
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        return piece

    def _feed(self, piece: bytes) -> None:
        if getattr(self.cycle, "response_complete", False):
            self._start_header_timer()  # for the next headers, or the rest of this body
            if self._body_left:
                self._discarded += len(piece)
                if self._discarded > MAX_DISCARDED_BYTES:
                    self._end()
                    return
        self._header_bytes += len(piece)
        super().data_received(piece)
        if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response(HEADERS_TOO_LARGE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._report_input_size()
        if self.is_ending:
            self._unset_keepalive_if_required()
            self._linger_if_answered()

    def _linger_if_answered(self) -> None:
        if not self.pipeline and not self._is_answering():
            self._linger_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= MAX_HEADERS:
            raise ValueError(TOO_MANY_HEADERS)  # httptools makes a parser error of it
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        has_too_many = len(self.headers or ()) >= MAX_HEADERS  # uvicorn has no list before the first request
        super().send_400_response(TOO_MANY_HEADERS if has_too_many else msg)

    def on_headers_complete(self) -> None:
        """Start the request, with a copy of its headers.

        uvicorn would add the trailers of a chunked body to them later. A client could then send a user header as a
        trailer, past a proxy that sets that header.
        """
        self._header_bytes = 0
        self._stop_header_timer()
        self._discarded = 0
        self._body_left = _body_size(self.headers)
        self.scope.setdefault("state", {}).update(transport=self.transport, connection=self.connection)
        super().on_headers_complete()
        self.scope["headers"] = list(self.headers)

    def on_body(self, body: bytes) -> None:
        self._header_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._header_bytes = 0
        self._body_left = 0
        self._stop_header_timer()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Switch the connection to the WebSocket protocol.

        If the websockets library refuses the handshake itself, for example because of a long header, send its error
        response. If an earlier request is still being answered, close the connection, because that answer would have no
        flow control after the switch.
        """
        if self._is_answering() or self.pipeline:
            self.transport.close()
            return
        self._read_control.hand_over()
        super().handle_websocket_upgrade()
        match self.transport.get_protocol():
            case WebSocketConnection() as upgraded:
                upgraded.take_over(self)
            case _:
                pass


def _report_input_size(connection: Connection, size: int, loop: asyncio.AbstractEventLoop) -> None:
    """Set the size of the buffered input of a connection, and have connections closed if there is too much."""
    table = connection.table
    if table.set_input_size(connection, size):
        loop.call_later(INPUT_CHECK_SECONDS, table.close_largest_inputs)


def _body_size(headers: list[tuple[bytes, bytes]]) -> int:
    """Return the body size from headers that the parser has accepted; UNKNOWN_SIZE for a chunked body."""
    named = dict(headers)
    return UNKNOWN_SIZE if b"transfer-encoding" in named else int(named.get(b"content-length") or 0)


class ReadControl(FlowControl):
    """Flow control of an HTTP connection that resumes reading only when all buffered input has been parsed."""

    def __init__(self, transport: asyncio.Transport, connection: HttpConnection) -> None:
        super().__init__(transport)
        self._connection = connection

    def resume_reading(self) -> None:
        if self._connection.has_unparsed:
            self._connection.parse_soon()
        elif not self._connection.is_ending:
            super().resume_reading()

    def hand_over(self) -> None:
        """Resume reading before the connection becomes a WebSocket, whose protocol expects an unpaused transport."""
        super().resume_reading()


class UnreadTimer:
    """Aborts a connection whose client reads fewer than MIN_READ_BYTES in UNREAD_SECONDS while writing is paused.

    It also sets the kernel's TCP_USER_TIMEOUT, which detects only clients that acknowledge nothing at all.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._unread = 0
        """Number of bytes that the client had not read when the timer was started."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        connection = transport.get_extra_info("socket")
        if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
            return
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNREAD_SECONDS * 1000))

    def start(self) -> None:
        self.stop()
        if self._transport is not None:
            self._unread = unread_bytes(self._transport)
            self._handle = self._loop.call_later(UNREAD_SECONDS, self._check, self._transport)

    def _check(self, transport: asyncio.Transport) -> None:
        if unread_bytes(transport) > self._unread - MIN_READ_BYTES:
            transport.abort()
        else:
            self.start()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def unread_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes that were written but not yet acknowledged by the client.

    It includes the kernel's buffer on Linux: a slow client may read from that for minutes before the transport's buffer
    shrinks.
    """
    connection = transport.get_extra_info("socket")
    if sys.platform != "linux" or connection is None or transport.is_closing():
        return transport.get_write_buffer_size()
    import fcntl
    import termios

    (queued,) = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))
    return transport.get_write_buffer_size() + queued


class WebSocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket connection with bounded buffers.

    It parses input in small pieces and yields to other tasks in between. Ping and pong frames have a separate rate
    limit, because the protocol handles them without the application.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unparsed = bytearray()
        self._input = scheduler_of(self.loop)
        self._bytes_after_close = 0
        self._control_frames = TokenBucket(CONTROL_FRAMES, CONTROL_FRAMES_PER_SECOND, self.loop.time)
        self._unread_timer = UnreadTimer(self.loop)
        self._late_pong = b""
        """The answer to the latest ping, while writing is paused because the client does not read."""
        self._connection: Connection | None = None
        self._message_bytes = 0
        """Bytes that were parsed since the application took the last message."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._unread_timer.connection_made(self.transport)

    def take_over(self, http: HttpConnection) -> None:
        """Continue an HTTP connection as a WebSocket, or send the error response if the handshake was refused.

        It is called after the handshake was parsed and before the application starts.
        """
        self._connection = http.connection
        if self._connection is not None:
            self._connection.is_idle = lambda: False
        if not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
        elif not self.close_sent:
            self.scope.setdefault("state", {}).update(transport=self.transport, connection=self._connection)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread_timer.stop()
        self._unparsed.clear()
        self._input.discard(self._parse)
        if self._connection is not None:
            self._connection.table.close(self._connection)
        super().connection_lost(exc)
        self._drop_message()

    def _drop_message(self) -> None:
        """Free an incomplete message, and the last frame, which the parser refers to.

        The connection is part of reference cycles, and stays in memory.
        """
        self.frames = []
        self.conn.parser.close()
        self.conn.reader.buffer.clear()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_timer.stop()
        if self._late_pong and not self.close_sent:
            self.transport.write(self._late_pong)
        self._late_pong = b""

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:  # uvicorn passes the complete handshake
            super().data_received(data)
            return
        self._unparsed += data
        if self._input.is_waiting(self._parse):
            return
        if self._input.may_parse():
            self._parse()
        else:
            self._pause_reading()
            if self._may_parse():
                self._parse_soon()

    def _parse(self) -> None:
        """Parse buffered input until a message is queued for the application, or the time slice is over.

        `receive` continues the parsing when the application has taken the message.
        """
        until = self.loop.time() + SLICE_SECONDS
        while self._unparsed and self._may_parse() and self.loop.time() < until:
            piece = bytes(self._unparsed[:FRAMES_PIECE])
            del self._unparsed[:FRAMES_PIECE]
            self._message_bytes += len(piece)
            super().data_received(piece)
            if self.close_sent:
                self._bytes_after_close += len(piece)
        if self.disconnected or self.transport.is_closing():
            self._unparsed.clear()
        elif self._bytes_after_close > MAX_BYTES_AFTER_CLOSE:
            self._unparsed.clear()
            self._pause_reading()  # until uvicorn's timer closes the connection
        elif self._unparsed:
            self._pause_reading()
            if self._may_parse():  # otherwise `receive` continues the parsing
                self._parse_soon()
        elif self._may_parse():
            self._resume_reading()
        self._hold_message()

    def _hold_message(self) -> None:
        """Report the size of the buffered input to the table of connections."""
        if self._connection is not None:
            _report_input_size(self._connection, len(self._unparsed) + self._message_bytes, self.loop)

    def _may_parse(self) -> bool:
        if self.disconnected or self.transport.is_closing() or self._bytes_after_close > MAX_BYTES_AFTER_CLOSE:
            return False
        return self.queue.empty() or self.close_sent

    def _parse_soon(self) -> None:
        self._input.add(self._parse, priority_of(len(self._unparsed)))

    def _pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    async def receive(self) -> Any:
        message = await self.queue.get()
        self._message_bytes = 0
        self._hold_message()
        if self.queue.empty():
            if self._unparsed:
                self._parse_soon()
            else:
                self._resume_reading()
        return message

    def handle_cont(self, event: Any) -> None:
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
        else:
            self._refuse("too many fragments")

    def send_receive_event_to_app(self) -> None:
        """Queue a complete message for the application. Close the socket if a text message is not valid UTF-8."""
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self._refuse("the message is not UTF-8", INVALID_DATA)
                return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer a ping. While the client does not read, keep only the answer to the latest ping (RFC 6455, 5.5.3)."""
        pongs = self.conn.data_to_send()  # for the first ping of a piece, the answers to all its pings
        if not self._spend_control_frame() or not pongs:
            return
        if self.writable.is_set():
            self.transport.write(b"".join(pongs))
        else:
            self._late_pong = pongs[-1]

    def handle_pong(self, event: Any) -> None:
        if self._spend_control_frame():
            super().handle_pong(event)

    def _spend_control_frame(self) -> bool:
        """Count a ping or pong frame and return whether to handle it. If there are too many, close the socket."""
        if self.close_sent or self.transport.is_closing():
            return False
        if self._control_frames.spend():
            return True
        self._refuse("too many ping or pong frames")
        return False

    def _refuse(self, reason: str, code: int = POLICY_VIOLATION) -> None:
        if not (self.close_sent or self.transport.is_closing()):
            self.conn.send_close(code, reason)
            self.handle_parser_exception()

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message, and mark the handshake as complete once a close was sent.

        uvicorn does not mark a refused handshake as complete, and would log an error for it.
        """
        await super().send(message)
        if self.close_sent:
            self.handshake_complete = True
