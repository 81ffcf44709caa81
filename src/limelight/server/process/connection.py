"""HTTP and WebSocket connections: uvicorn's protocols, with bounds on what one connection can make the server hold.

`uvicorn_server.py` uses them. They handle bytes and frames only: input that they refuse never becomes a request.
The reasons are in `docs/decisions/0014-bounded-connections.md`. `tests/server/process/test_connection.py` checks the
bounds with the pinned uvicorn.
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

from limelight.runs.limits import TokenBucket

MAX_HEADER_BYTES = 64 * 1024
"""Bytes of headers that may arrive before their end. uvicorn keeps all of them, and copies them with each piece that
arrives, so that every other connection would have to wait."""
HEADER_SECONDS = 20.0
"""Time until the headers of a request, or the rest of a body that was refused, are complete."""
HEADERS_TOO_LARGE = f"The headers are over the limit of {MAX_HEADER_BYTES} bytes."
HEADERS_END = b"\r\n\r\n"
BODY_PIECE = 64 * 1024
CHUNKED_PIECE = 512
"""Bytes of a body that the parser gets at once. Where a chunked body ends only the parser knows, so a piece of it may
contain further requests, which are then queued: few, because the piece is small."""
MAX_DISCARDED_BYTES = 16 * 1024 * 1024
"""Bytes of a body that are read and dropped after the request was refused, so that the client can read the answer."""
MAX_PIPELINED_BYTES = 16 * 1024
"""Bytes of further requests that are kept while an answer is outstanding. A client that has sent more gets the answer,
and the connection is closed: clients send unanswered requests again (RFC 9112, 9.3.2)."""
LINGER_SECONDS = 2.0
"""Time between that answer and the close. A close with unread input resets the connection, and the client might lose
the answer."""
UNREAD_SECONDS = 120
"""Time that sent data may stay unread before the connection is aborted. Without this bound the kernel keeps the
connection of a client that is gone for a quarter of an hour, and of a client that does not read for ever. A client that
reconnects resumes at its cursor."""
MIN_READ_BYTES = 16 * 1024
"""Bytes that a client has to read in that time to keep its connection."""
FRAMES_PIECE = 1024
"""Bytes of WebSocket frames that are parsed at once, so that few messages wait in memory for the application."""
PARSE_SECONDS = 0.002
"""Time that one connection may parse before others get their turn."""
CONTROL_FRAMES = 60
CONTROL_FRAMES_PER_SECOND = 10
"""Limits of the ping and pong frames of a client: a burst, and a rate."""
MAX_FRAGMENTS = 16 * 1024
"""Frames of one message. A limit of bytes alone does not bound frames that are empty."""
MAX_BYTES_AFTER_CLOSE = 64 * 1024
"""Bytes that are read from a client that has been sent a close frame and should answer with its own."""
POLICY_VIOLATION = 1008
UNKNOWN = -1
_log = logging.getLogger("uvicorn.error.connection")
_log.setLevel(logging.ERROR)
"""Without uvicorn's warnings about malformed requests: the client is answered, and could fill the log with them."""


class HttpConnection(HttpToolsProtocol):
    """One HTTP connection, until it is upgraded to a WebSocket.

    The parser gets the bytes of one request at a time. While its answer is outstanding, or while the client does not
    read, nothing more is parsed, and nothing more is read as soon as there is something to parse.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _log
        self._unparsed = bytearray()
        self._parse_handle: asyncio.Handle | None = None
        self._header_bytes = 0
        """Bytes since the parser last completed something: headers, a piece of a body, or a request."""
        self._header_tail = b""
        """The last bytes of headers that are not complete: their end may be split between two reads."""
        self._body_left = 0
        """Bytes of the body that the parser still expects, 0 while it expects headers; UNKNOWN for a chunked body."""
        self._discarded = 0
        """Bytes of a refused body that were read."""
        self._running: RequestResponseCycle | None = None
        """The request that is being answered. uvicorn's `cycle` is the one that was parsed last."""
        self._header_timer: asyncio.TimerHandle | None = None
        self._unread_timer = UnreadTimer(self.loop)
        self._linger_timer: asyncio.TimerHandle | None = None
        self.is_ending = False
        """Whether no further request is read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self.flow = self._read_control = ReadControl(transport, self)
        self._start_header_timer()
        self._unread_timer.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._unread_timer.stop()
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        self._unparsed.clear()
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

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
        self._parse()

    @property
    def has_unparsed(self) -> bool:
        return bool(self._unparsed)

    def parse_soon(self) -> None:
        """Parse what has been read as soon as the caller, which may be in the middle of an answer, is done."""
        if self._unparsed and self._parse_handle is None:
            self._parse_handle = self.loop.call_soon(self._parse)

    def _parse(self) -> None:
        """Hand one request after the other to the parser until one has to be answered first, or time is up."""
        self._parse_handle = None
        until = self.loop.time() + PARSE_SECONDS
        while self._unparsed and not self._must_wait() and not self._is_over():
            if self.loop.time() > until:
                self.flow.pause_reading()
                self.parse_soon()
                return
            self._feed(self._next_piece())
        if self._is_over():
            self._unparsed.clear()
        elif not self._unparsed:
            if not self._has_enough_body():
                self.flow.resume_reading()
        else:
            self.flow.pause_reading()
            self._unset_keepalive_if_required()  # no timeout while the client waits for the server
            if len(self._unparsed) > MAX_PIPELINED_BYTES and not self._is_reading_body():
                self._end()

    def _end(self) -> None:
        """Read no further, answer what was parsed, and close."""
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
        """What has been read, up to the end of the headers or of the body that the parser expects."""
        if self._body_left == 0:
            return self._take(self._size_of_headers())
        if self._body_left == UNKNOWN:
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
            self._start_header_timer()  # of the next request, or for the rest of a refused body
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
        if self.is_ending:
            self._unset_keepalive_if_required()
            self._linger_if_answered()

    def _linger_if_answered(self) -> None:
        if not self.pipeline and not self._is_answering():
            self._linger_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def on_headers_complete(self) -> None:
        """Trailers of a chunked body do not become headers: a proxy that sets the user's header ignores them."""
        self._header_bytes = 0
        self._stop_header_timer()
        self._discarded = 0
        self._body_left = _body_size(self.headers)
        self.scope.setdefault("state", {})["transport"] = self.transport
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
        """A handshake that websockets refuses before it is a request, say for a long header, gets that answer.

        One that comes before the last answer is complete closes the connection: that answer would have no flow control.
        """
        if self._is_answering() or self.pipeline:
            self.transport.close()
            return
        self._read_control.hand_over()
        super().handle_websocket_upgrade()
        match self.transport.get_protocol():
            case WebSocketConnection(handshake_initiated=False, conn=refused):
                self.transport.write(b"".join(refused.data_to_send()))
                self.transport.close()
            case _:
                pass


def _body_size(headers: list[tuple[bytes, bytes]]) -> int:
    """The size of the body that headers announce. The parser has refused headers that contradict each other."""
    named = dict(headers)
    return UNKNOWN if b"transfer-encoding" in named else int(named.get(b"content-length") or 0)


class ReadControl(FlowControl):
    """Flow control of an HTTP connection: reading resumes when all that was read has been parsed."""

    def __init__(self, transport: asyncio.Transport, connection: HttpConnection) -> None:
        super().__init__(transport)
        self._connection = connection

    def resume_reading(self) -> None:
        if self._connection.has_unparsed:
            self._connection.parse_soon()
        elif not self._connection.is_ending:
            super().resume_reading()

    def hand_over(self) -> None:
        """Resume reading for the WebSocket protocol, which takes a transport that is being read."""
        super().resume_reading()


class UnreadTimer:
    """Aborts a connection whose client does not read, while data waits in the write buffer of the server.

    The kernel's own timer notices a client that acknowledges nothing; this one also a client that reads very little.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._unread = 0
        """Bytes that the client had not read when the timer was started."""

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
    """Bytes that were written and not acknowledged: in the buffer of the transport and, on Linux, of the kernel.

    The kernel's buffer has megabytes and takes more only when much of it is free, so a slow client may read for minutes
    before the transport's buffer shrinks.
    """
    connection = transport.get_extra_info("socket")
    if sys.platform != "linux" or connection is None or transport.is_closing():
        return transport.get_write_buffer_size()
    import fcntl
    import termios

    (queued,) = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))
    return transport.get_write_buffer_size() + queued


class WebSocketConnection(WebSocketsSansIOProtocol):
    """One WebSocket, from its handshake on.

    Frames are parsed in small pieces, and other connections get their turn in between. Ping and pong frames have a
    budget, because the protocol answers them before the application sees anything.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unparsed = bytearray()
        self._parse_handle: asyncio.Handle | None = None
        self._bytes_after_close = 0
        self._control_frames = TokenBucket(CONTROL_FRAMES, CONTROL_FRAMES_PER_SECOND, self.loop.time)
        self._unread_timer = UnreadTimer(self.loop)
        self._late_pong = b""
        """The answer to the latest ping, if it has to wait until the client reads."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._unread_timer.connection_made(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread_timer.stop()
        self._unparsed.clear()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_timer.stop()
        if self._late_pong and not self.close_sent:
            self.transport.write(self._late_pong)
        self._late_pong = b""

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope.setdefault("state", {})["transport"] = self.transport  # the task that reads it has not begun

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:  # uvicorn hands over the whole handshake
            super().data_received(data)
            return
        self._unparsed += data
        if self._parse_handle is None:
            self._parse()

    def _parse(self) -> None:
        """Parse until there is a message. The rest waits until the application has taken it."""
        self._parse_handle = None
        until = self.loop.time() + PARSE_SECONDS
        while self._unparsed and self._may_parse() and self.loop.time() < until:
            piece = bytes(self._unparsed[:FRAMES_PIECE])
            del self._unparsed[:FRAMES_PIECE]
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
            if self._may_parse():  # else `receive` continues
                self._parse_soon()
        elif self._may_parse():
            self._resume_reading()

    def _may_parse(self) -> bool:
        if self.disconnected or self.transport.is_closing() or self._bytes_after_close > MAX_BYTES_AFTER_CLOSE:
            return False
        return self.queue.empty() or self.close_sent

    def _parse_soon(self) -> None:
        if self._parse_handle is None:
            self._parse_handle = self.loop.call_soon(self._parse)

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

    def handle_ping(self) -> None:
        """Answer; while the client does not read, keep the answer to the latest ping only (RFC 6455, 5.5.3)."""
        pongs = self.conn.data_to_send()  # of all pings in this piece, when the first of them is handled
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
        """False once the client has sent too many, which closes the socket."""
        if self.close_sent or self.transport.is_closing():
            return False
        if self._control_frames.spend():
            return True
        self._refuse("too many ping or pong frames")
        return False

    def _refuse(self, reason: str) -> None:
        if not (self.close_sent or self.transport.is_closing()):
            self.conn.send_close(POLICY_VIOLATION, reason)
            self.handle_parser_exception()

    async def send(self, message: ASGISendEvent) -> None:
        """After a refused handshake, mark it as complete: uvicorn does not, and logs an error for each."""
        await super().send(message)
        if self.close_sent:
            self.handshake_complete = True
