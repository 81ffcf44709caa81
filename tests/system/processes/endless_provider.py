"""An OpenAI-compatible model whose reply never ends, and which notices when its client disconnects."""

import json
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

PACE_SECONDS = 0.02


class Provider:
    """Answers every request with one endless stream."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self.asked = threading.Event()
        self.left = threading.Event()
        """Set when a client has disconnected."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # the listener is closed
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        delta = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
        choice = {"index": 0, "delta": {"role": "assistant", "content": "word "}, "finish_reason": None}
        frame = f"data: {json.dumps({**delta, 'choices': [choice]})}\n\n".encode()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            self.asked.set()
            try:
                while True:
                    connection.sendall(frame)
                    time.sleep(PACE_SECONDS)
            except OSError:
                self.left.set()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # this wakes the accepting thread
        self._listener.close()


@contextmanager
def talking_provider() -> Generator[Provider]:
    provider = Provider()
    try:
        yield provider
    finally:
        provider.close()
