"""A hostile client as a separate process, so that it does not share the interpreter of the test that measures.

It opens connections to a server on this machine and sends as fast as the server takes it, for a bounded time:

    python -m tests.system.faults.attacker pipeline-unread --port 8000 --connections 500 --seconds 10 --key KEY
"""

import argparse
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

BLOCK = 64 * 1024
"""Bytes of requests or frames that are handed to the kernel at once."""
WINDOW = 8 * 1024
"""The same for a client that waits for answers: less than the server closes a connection for."""
TRICKLE_BYTES = 512
TRICKLE_SECONDS = 0.2
"""A slow client moves this many bytes, then waits."""
CONNECT_SECONDS = 10
RECONNECT_SECONDS = 0.25
SESSION = "attack"


class Attack(NamedTuple):
    """What each connection sends, and how it reads the answers."""

    payload: Callable[[str], bytes]
    """Sent again and again; its argument is the header line of the key, or nothing."""
    reads: str = "all"
    """all, slowly or nothing"""
    sends: str = "all"
    """all, slowly, or windowed: the next block when most answers to the last one have arrived"""
    is_socket: bool = False
    reconnects: bool = False
    """Whether a connection that the server has closed is opened again."""
    leaves: bool = False
    """Whether the client closes the connection as soon as all is sent, and opens another one."""
    then: bytes = b""
    """What is sent after the payload, in its place."""


def get(path: str, size: int = BLOCK) -> Callable[[str], bytes]:
    def payload(key: str) -> bytes:
        request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}\r\n".encode()
        return request * (size // len(request))

    return payload


def one(path: str) -> Callable[[str], bytes]:
    return lambda key: f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}\r\n".encode()


def upload(key: str) -> bytes:
    """One request whose body is announced and never complete."""
    head = f"POST /chat HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}content-type: application/json\r\n"
    return f"{head}content-length: 900000000\r\n\r\n".encode() + b" " * BLOCK


def half_request(key: str) -> bytes:
    return f"GET /sessions HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}x-".encode()


def frames(opcode: int, message: bytes) -> Callable[[str], bytes]:
    """WebSocket frames of a client, whose mask of zeros does not change the message."""
    size = struct.pack("!B", 0x80 | len(message)) if len(message) < 126 else struct.pack("!BH", 0xFE, len(message))
    frame = struct.pack("!B", 0x80 | opcode) + size + bytes(4) + message
    return lambda key: frame * max(1, BLOCK // len(frame))


TEXT, BINARY, PING = 1, 2, 9
ATTACKS = {
    "pipeline-unread": Attack(get("/sessions"), reads="nothing"),
    "pipeline-slow": Attack(get("/sessions"), reads="slowly"),
    "pipeline-read": Attack(get("/sessions"), reconnects=True),
    "pipeline-windowed": Attack(get("/sessions", WINDOW), sends="windowed", reconnects=True),
    "pipeline-health-windowed": Attack(get("/health", WINDOW), sends="windowed", reconnects=True),
    "pipeline-health": Attack(get("/health"), reconnects=True),
    "pipeline-page": Attack(get("/"), reads="nothing"),
    "half-request": Attack(half_request, sends="slowly"),
    "half-body": Attack(upload, sends="slowly"),
    "endless-body": Attack(upload, then=b" " * BLOCK, reconnects=True),
    "endless-body-of-line-ends": Attack(upload, then=b"\r\n" * (BLOCK // 2), reconnects=True),
    "request-and-leave": Attack(one("/sessions"), leaves=True),
    "socket-ping": Attack(frames(TEXT, b'{"type":"ping"}'), is_socket=True, reconnects=True),
    "socket-ping-unread": Attack(frames(TEXT, b'{"type":"ping"}'), is_socket=True, reads="nothing"),
    "socket-get-state": Attack(frames(TEXT, b'{"type":"get_state"}'), is_socket=True, reconnects=True),
    "socket-cancel": Attack(frames(TEXT, b'{"type":"cancel"}'), is_socket=True, reconnects=True),
    "socket-malformed": Attack(frames(TEXT, b'{"type":'), is_socket=True, reconnects=True),
    "socket-binary": Attack(frames(BINARY, b"\0" * 100), is_socket=True, reconnects=True),
    "socket-protocol-ping": Attack(frames(PING, b"1234"), is_socket=True, reconnects=True),
    "socket-protocol-ping-unread": Attack(frames(PING, b"x" * 100), is_socket=True, reads="nothing"),
}


class Connection:
    """One connection of the attack."""

    def __init__(self, attack: Attack, port: int, key: str, number: int) -> None:
        self._attack = attack
        self._port = port
        self._key = key
        self._number = number
        self._payload = attack.payload(key)
        self._unsent = memoryview(b"")
        self._opened_at = 0.0
        self._outstanding = 0
        self._paused_until = 0.0
        self.socket: socket.socket | None = None
        self.sent = 0
        self.closed = 0
        """How often the server has closed it."""

    def open(self) -> None:
        self._opened_at = time.monotonic()
        self._outstanding = 0
        with suppress(OSError):
            self.socket = socket.create_connection(("127.0.0.1", self._port), CONNECT_SECONDS)
            self.socket.setblocking(False)
            self._unsent = memoryview(self._handshake() if self._attack.is_socket else self._payload)

    def _handshake(self) -> bytes:
        return (
            f"GET /api/v2/ws/{SESSION}-{self._number} HTTP/1.1\r\nhost: 127.0.0.1\r\n{self._key}upgrade: websocket\r\n"
            "connection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        ).encode()

    def step(self, now: float) -> bool:
        """Send and read as far as the kernel allows. False if nothing could be moved."""
        if self.socket is None:
            if self._attack.reconnects and now - self._opened_at > RECONNECT_SECONDS:
                self.open()
            return False
        if now < self._paused_until:
            return False
        if "slowly" in (self._attack.reads, self._attack.sends):
            self._paused_until = now + TRICKLE_SECONDS
        moved = False
        try:
            if self._attack.reads != "nothing":
                moved = self._read(self.socket)
            return self._send(self.socket) or moved
        except BlockingIOError:
            return moved
        except OSError:
            self._lose()
            return False

    def _read(self, connection: socket.socket) -> bool:
        with suppress(BlockingIOError):
            data = connection.recv(TRICKLE_BYTES if self._attack.reads == "slowly" else BLOCK)
            if not data:
                raise ConnectionResetError
            self._outstanding -= data.count(b"HTTP/1.1 ")  # one that is cut in two is missed
            return True
        return False

    def _send(self, connection: socket.socket) -> bool:
        if not self._unsent:
            requests = self._payload.count(b"HTTP/1.1\r\n")
            if self._attack.sends == "windowed" and self._outstanding > requests // 2:
                return False
            if self._attack.leaves:
                self.close()
                self.open()
                return True
            self._outstanding = requests
            self._unsent = memoryview(self._attack.then or self._payload)
        slowly = self._attack.sends == "slowly" and self.sent >= len(self._payload) // 2
        count = connection.send(self._unsent[:1] if slowly else self._unsent)
        self._unsent = self._unsent[count:]
        self.sent += count
        return True

    def _lose(self) -> None:
        self.closed += 1
        self.close()

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def run(attack: Attack, port: int, key: str, connections: int, seconds: float) -> Iterator[str]:
    """Attack until the time is over; yields lines for the process that started this one."""
    opened = [Connection(attack, port, key, number) for number in range(connections)]
    for connection in opened:
        connection.open()
    yield "open"
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        if not sum(connection.step(now) for connection in opened):
            time.sleep(0.005)  # every socket is full, or waits
    sent, closed = sum(c.sent for c in opened), sum(c.closed for c in opened)
    for connection in opened:
        connection.close()
    yield f"sent {sent:,} bytes; {closed} connections were closed by the server"


def main() -> None:
    parser = argparse.ArgumentParser(description="Attack a server on this machine.")
    parser.add_argument("kind", choices=ATTACKS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--key", default="")
    given = parser.parse_args()
    key = f"authorization: Bearer {given.key}\r\n" if given.key else ""
    for line in run(ATTACKS[given.kind], given.port, key, given.connections, given.seconds):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
