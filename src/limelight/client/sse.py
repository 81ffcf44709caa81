"""Server-sent events, read: bytes in, frames out. Pure; no socket, no clock.

It follows the letter of the HTML standard, so that any server and any proxy will do: lines end with LF, CR or CRLF,
characters and line ends may be split between chunks, a frame counts only once its blank line is there. It must not know
what the data means. `resuming` feeds it, one parser for each connection.
"""

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"


class Frame(NamedTuple):
    """One event. `id` is the last one that was sent, with this frame or before it."""

    data: str
    id: str = ""
    event: str = "message"


class SseParser:
    """Remembers what is unfinished between two chunks."""

    def __init__(self) -> None:
        self.comments = 0
        """How many comments came so far: signs of life that are no frames."""
        self.retry: int | None = None
        """After how many milliseconds the server wants us back, if it said so."""
        self._line: list[bytes] = []
        self._after_cr = False
        self._first = True
        self._data: list[str] = []
        self._id = ""
        self._event = ""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole now."""
        if self._after_cr and data.startswith(b"\n"):  # the second half of a CRLF
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        head, *rest = _LINE_END.split(data)
        self._line.append(head)
        found: list[Frame] = []
        for following in rest:
            frame = self._take(b"".join(self._line))
            if frame is not None:
                found.append(frame)
            self._line = [following]
        return found

    def _take(self, line: bytes) -> Frame | None:
        if self._first:
            line, self._first = line.removeprefix(_MARK), False
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            self.comments += 1
            return None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        self._field(name, value.removeprefix(" "))
        return None

    def _field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "event":
            self._event = value
        elif name == "retry" and value.isascii() and value.isdecimal():
            self.retry = int(value)

    def _dispatch(self) -> Frame | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return Frame("\n".join(data), self._id, event or "message") if data else None
