"""Viewers that read in threads and keep the frames that they received, however the stream ends."""

import json
import threading
from contextlib import suppress
from typing import Any, Self

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.support.wait import DEADLINE
from tests.system.processes.server_process import ServerProcess, Stream

Frame = tuple[str, Any]

CUT = (OSError, EOFError, ValueError, IndexError, AssertionError)
"""Errors of a stream that is cut: a reset, an early end, an incomplete line or frame."""


class Watcher:
    """Reads a run in one format, in a thread, until the stream ends."""

    def __init__(self, format_: str) -> None:
        self.format = format_
        self.run_id = ""
        self.seen: list[Frame] = []
        self.whole = False
        """True if the server has ended the stream regularly."""
        self._something = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        raise NotImplementedError

    def begin(self) -> Self:
        self._thread.start()
        return self

    def saw(self, frame: Frame) -> None:
        self.seen.append(frame)
        self._something.set()

    def until_something_came(self) -> None:
        assert self._something.wait(DEADLINE), f"nothing came in {self.format}"

    def until_over(self) -> None:
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), f"a stream in {self.format} does not end"


class Reader(Watcher):
    """Reads a stream of server-sent events: of a run that it starts, or of an existing one."""

    def __init__(self, server: ServerProcess, format_: str, *, run_id: str = "", **body: Any) -> None:
        super().__init__(format_)
        self._server = server
        self._body = body
        self._follows = run_id

    def _read(self) -> None:
        with suppress(*CUT):
            stream = self._open()
            self.run_id = self._follows or stream.run_id
            for frame in stream:
                self.saw(frame)
            self.whole = stream.whole

    def _open(self) -> Stream:
        if self._follows:
            return self._server.follow(self._follows, format_=self.format)
        return self._server.ask(format=self.format, **self._body)


class Listener(Watcher):
    """Reads the messages of a session on its socket, until the run ends or the server closes the socket."""

    def __init__(self, server: ServerProcess, session_id: str, agent: str, *, asks: str = "") -> None:
        super().__init__("v2")
        self._url = f"ws://127.0.0.1:{server.port}/api/v2/ws/{session_id}?agent_type={agent}"
        self._asks = asks

    def _read(self) -> None:
        with suppress(*CUT, WebSocketException), connect(self._url, max_size=None, proxy=None) as socket:
            if self._asks:
                socket.send(json.dumps({"type": "query", "query": self._asks}))
            while not self.whole:
                self._take(json.loads(socket.recv(DEADLINE)))

    def _take(self, frame: Any) -> None:
        if "message_id" in frame:
            cursor = frame.pop("cursor")
            del frame["session_id"]
            self.saw((cursor, frame))
        elif frame["type"] == "state":
            self.run_id = frame["state"]["run_id"] or ""
            self.whole = bool(self.seen) and frame["state"]["state"] != "processing"
