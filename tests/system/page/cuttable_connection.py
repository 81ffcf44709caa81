"""A TCP proxy between browser and server that can cut its connections."""

import selectors
import socket
import threading
from contextlib import suppress
from typing import Self

from tests.system.processes.server_process import free_port

PIECE = 64 * 1024


class Wire:
    """Listens on a separate port and forwards everything to the server."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener: socket.socket | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.join()
        return self

    def __exit__(self, *_: object) -> None:
        self.part()

    def join(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Close all connections; new ones are accepted."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                _shut(end)

    def part(self) -> None:
        """Close all connections, and accept no new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            _shut(listener)
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while listener is self._listener:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                break
            self._pairs.append((near, far))
            threading.Thread(target=_pass, args=(near, far), daemon=True).start()
        listener.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):  # it may be closed already
        end.shutdown(socket.SHUT_RDWR)


def _pass(near: socket.socket, far: socket.socket) -> None:
    """Forward bytes in both directions until one side closes."""
    with near, far, selectors.DefaultSelector() as ready:
        ready.register(near, selectors.EVENT_READ, far)
        ready.register(far, selectors.EVENT_READ, near)
        try:
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(PIECE)  # type: ignore[union-attr]
                    if not data:
                        return
                    key.data.sendall(data)
        except OSError:
            return
