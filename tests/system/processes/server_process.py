"""`limelight serve` as a process that can be killed."""

import fcntl
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tests.dialects.transcripts import DELTAS, Piece
from tests.dialects.transcripts import joined as join_pieces
from tests.support.wait import DEADLINE, wait_for

AGENTS_FILE = Path(__file__).parent / "agents.py"


class ServerProcess:
    """A server process that is started on entry and killed on exit. Agents: names from `agents.py`, or full targets."""

    def __init__(self, data: Path, *agents: str, port: int = 0, **environment: str) -> None:
        self.port = port or free_port()
        self.command = [sys.executable, "-m", "limelight", "serve", "--port", str(self.port), "--data", str(data)]
        self.command += [agent if ":" in agent else f"{AGENTS_FILE}:{agent}" for agent in agents]
        self._environment = {**os.environ, "LIMELIGHT_GRACE_SECONDS": "0", **environment}
        self._log = data.with_suffix(".log")
        self._streams: list[Stream] = []
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self._environment)
        wait_for("the server to answer", self._answers)
        return self

    def _answers(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"the server has ended: {self.log}")
        return self.get("/health")[0] == 200

    def __exit__(self, *_: object) -> None:
        self.kill()
        for stream in self._streams:
            stream.close()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(DEADLINE)

    def terminate(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the process and return its exit code."""
        assert self.process is not None
        return self.process.wait(DEADLINE)

    def until_it_says(self, words: str) -> None:
        """Wait until the log contains these words."""
        wait_for(f"{words!r} in the log", lambda: words in self.log)

    def until_file(self, path: Path) -> None:
        """Wait until the server has written this file."""
        wait_for(f"the file {path.name}", path.exists)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> socket.socket:
        """Send a request on a new connection, and return the connection before anything is read."""
        payload = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if payload:
            lines += ["content-type: application/json", f"content-length: {len(payload)}"]
        connection = socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + payload)
        return connection

    def get(self, path: str) -> tuple[int, Any]:
        return self.answer(self.request("GET", path))

    def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        return self.answer(self.request("POST", path, body))

    def answer(self, connection: socket.socket) -> tuple[int, Any]:
        with connection, connection.makefile("rb") as reader:
            status, headers = read_head(reader)
            body = reader.read()
        if headers.get("transfer-encoding") == "chunked" or not body:
            return status, None
        return status, json.loads(body)

    def ask(self, text: str = "go", **body: Any) -> "Stream":
        format_ = body.pop("format", "typed")
        request = {"messages": [{"role": "user", "content": text}], **body}
        return self.stream("POST", f"/chat/stream?format={format_}", request)

    def follow(self, run_id: str, after: str = "0", format_: str = "typed") -> "Stream":
        path = f"/runs/{run_id}/stream?format={format_}"
        return self.stream("GET", path, headers={"last-event-id": after})

    def stream(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> "Stream":
        stream = Stream(self.request(method, path, body, headers))
        self._streams.append(stream)
        return stream


class Stream:
    """Frames from a socket, as (id, data) pairs; it can be cut at any of them."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._reader = connection.makefile("rb")
        try:
            self.status, self.headers = read_head(self._reader)
        except BaseException:  # the server ended before it answered
            self.close()
            raise
        self.comments = 0
        self.whole = False
        """True when the server has ended the response regularly."""

    @property
    def run_id(self) -> str:
        return self.headers["x-run-id"]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        buffer = b""
        for chunk in self._chunks():
            buffer += chunk
            *blocks, buffer = buffer.split(b"\n\n")
            for block in blocks:
                fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
                self.comments += block.startswith(b":")
                if b"data" in fields:
                    assert len(block) < 64 * 1024 + 64
                    yield fields.get(b"id", b"").decode(), json.loads(fields[b"data"])
        assert not buffer

    def take(self, n: int) -> list[tuple[str, Any]]:
        """The first n frames, or all if there are fewer; then the connection is cut."""
        found: list[tuple[str, Any]] = []
        try:
            for frame in self:
                found.append(frame)
                if len(found) == n:
                    break
        except (OSError, EOFError):
            pass
        self.close()
        return found

    def close(self) -> None:
        self._reader.close()
        self.connection.close()

    def _chunks(self) -> Iterator[bytes]:
        while True:
            line = self._reader.readline()
            if not line:
                return
            size = int(line, 16)
            data = self._reader.read(size)
            if len(data) < size:
                return
            self._reader.readline()
            if not size:
                self.whole = True
                self.close()
                return
            yield data


def read_head(reader: Any) -> tuple[int, dict[str, str]]:
    status = int(reader.readline().split()[1])
    headers: dict[str, str] = {}
    while (line := reader.readline().strip()) != b"":
        name, _, value = line.decode().partition(": ")
        headers[name.lower()] = value
    return status, headers


def free_port() -> int:
    """A port that no other test uses while this process lives, also after the server on it was killed.

    It is below the ports that the system assigns to connections, and a lock keeps other test processes from taking it.
    """
    folder = Path(tempfile.gettempdir()) / f"limelight-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
            continue
        return port


def joined(format_: str, frames: list[tuple[str, Any]]) -> list[Any]:
    """The data of frames, with neighbouring deltas of one text joined."""
    found = (Piece("", *(DELTAS[format_](data) or (data, None))) for _, data in frames)
    return [(piece.payload, piece.text) for piece in join_pieces(found)]


def begins_with(kept: list[Any], seen: list[Any]) -> bool:
    """Whether the log begins with what was seen; the last text may be longer there."""
    *before, last = seen
    there = kept[len(before)]
    return kept[: len(before)] == before and (there == last or (there[0] == last[0] and there[1].startswith(last[1])))
