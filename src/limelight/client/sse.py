"""Parser of server-sent events: bytes in, the data of events out. Pure; no socket, no clock.

It follows the HTML standard: lines end with LF, CR or CRLF, characters and line ends may be split between chunks, and
an event is complete at its blank line. The fields `id` and `event` are ignored, because the data of each event is a
Record with its `seq`. `record_stream` has one parser for each connection. Comments are counted, because the server's
heartbeats are comments and show that a connection works.
"""

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseParser:
    """Incremental parser of server-sent events; stores the incomplete line and event between two chunks."""

    def __init__(self) -> None:
        self.comments = 0
        """Number of comments received so far."""
        self._line: list[bytes] = []
        self._after_cr = False
        self._is_first_line = True
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[str]:
        """Return the data of the events that a chunk of bytes completes."""
        if self._after_cr and data.startswith(b"\n"):  # the LF of a CRLF that was split between two chunks
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        head, *rest = _LINE_END.split(data)
        self._line.append(head)
        events: list[str] = []
        for following in rest:
            self._parse_line(b"".join(self._line), events)
            self._line = [following]
        return events

    def _parse_line(self, line: bytes, events: list[str]) -> None:
        if self._is_first_line:
            line, self._is_first_line = line.removeprefix(_BYTE_ORDER_MARK), False
        if not line:
            if self._data:
                events.append("\n".join(self._data))
            self._data = []
        elif line.startswith(b":"):
            self.comments += 1
        else:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
