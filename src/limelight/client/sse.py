"""Parser of server-sent events: bytes in, frames out. Pure; no socket, no clock.

It follows the HTML standard: lines end with LF, CR or CRLF, characters and line ends may be split between chunks, and a
frame is complete at its blank line. `record_stream` has one parser for each connection. Comments are counted, because
the server's heartbeats are comments and show that a connection works.
"""

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Frame(NamedTuple):
    """One event. `id` is the last id that the server sent, with this frame or before it."""

    data: str
    id: str = ""
    event: str = "message"


class SseParser:
    """Incremental parser; keeps the incomplete line and frame between two chunks."""

    def __init__(self) -> None:
        self.comments = 0
        """Number of comments received so far."""
        self._line: list[bytes] = []
        self._after_cr = False
        self._is_first_line = True
        self._data: list[str] = []
        self._id = ""
        self._event = ""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that this chunk completes."""
        if self._after_cr and data.startswith(b"\n"):  # the second half of a CRLF
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        head, *rest = _LINE_END.split(data)
        self._line.append(head)
        frames: list[Frame] = []
        for following in rest:
            frame = self._parse_line(b"".join(self._line))
            if frame is not None:
                frames.append(frame)
            self._line = [following]
        return frames

    def _parse_line(self, line: bytes) -> Frame | None:
        if self._is_first_line:
            line, self._is_first_line = line.removeprefix(_BYTE_ORDER_MARK), False
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            self.comments += 1
            return None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "event":
            self._event = value
        return None

    def _dispatch(self) -> Frame | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return Frame("\n".join(data), self._id, event or "message") if data else None
