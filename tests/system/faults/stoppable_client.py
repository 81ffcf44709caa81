"""A client process that a test can stop. It opens streams, prints "open", and then neither reads nor answers.

`python -m tests.system.faults.stoppable_client PORT PATH…`: a path of `/api/v2/ws/…` is a socket, others are streams.
"""

import socket
import sys
import time

HEADERS = (
    "upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
SMALL = 8192
"""Bytes that the system buffers for a client that does not read."""


def open_one(port: int, path: str) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    connection.connect(("127.0.0.1", port))
    headers = HEADERS if "/ws/" in path else ""
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{headers}\r\n".encode())
    assert connection.recv(12) in (b"HTTP/1.1 101", b"HTTP/1.1 200")
    return connection


def main() -> None:
    opened = [open_one(int(sys.argv[1]), path) for path in sys.argv[2:]]
    sys.stdout.write("open\n")
    sys.stdout.flush()
    while opened:
        time.sleep(3600)  # it neither reads nor answers pings


if __name__ == "__main__":
    main()
