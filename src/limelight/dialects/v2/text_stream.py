"""Writes a text as messages with one id: an empty first message, increments, and the complete text."""

from typing import Any

from limelight.dialects.base import encode
from limelight.dialects.v2.message_writer import MessageWriter, Metadata

PAGE_BYTES = 48 * 1024
"""Limit for the content of one message as JSON, in bytes, so that no line of a stream reaches 64 KiB."""


class TextStream:
    """Writes one text. Its increments, joined, are exactly the complete text.

    If the run does not stream (`live` is false), only the complete text is written. A text that is too long for one
    message is split into pages. Where it is split depends on the text alone, not on its deltas.
    """

    def __init__(
        self, writer: MessageWriter, message_type: str, agent_id: str, metadata: Metadata, *, live: bool
    ) -> None:
        self._writer = writer
        self._type = message_type
        self._agent_id = agent_id
        self._metadata: Metadata = metadata
        self._live = live
        self._first_page = ""
        self._earlier_length = 0
        """Number of characters on earlier pages."""
        self._earlier_lines = 0
        """Number of complete lines on earlier pages."""
        self._begin_page()

    @property
    def is_split(self) -> bool:
        """Whether the text has more than one page."""
        return bool(self._earlier_length)

    @property
    def first_page(self) -> str:
        """The text of the first page."""
        return self._first_page if self.is_split else self._page

    @property
    def length(self) -> int:
        """The number of characters of all pages."""
        return self._earlier_length + sum(map(len, self._pieces))

    @property
    def lines(self) -> int:
        """The number of lines of all pages."""
        return self._earlier_lines + len(self._page.splitlines())

    def fits(self, piece: str) -> bool:
        """Whether a delta fits on the current page."""
        return _json_size(piece) <= self._free_bytes

    def append(self, piece: str, **metadata: Any) -> None:
        """Write a delta of the text, on several pages if needed."""
        end = self._take_space(piece)
        while end < len(piece):
            self._add(piece[:end], metadata)
            self.finish(continued=True)
            self._close_page()
            self._metadata = {**self._metadata, "continues": self._id}
            self._begin_page()
            piece = piece[end:]
            end = self._take_space(piece)
        self._add(piece, metadata)

    def finish(self, message_type: str = "", **metadata: Any) -> None:
        """Write the complete text of the last page. Its message type may differ from that of the increments."""
        state: Metadata = {"is_active": False, "streaming": False, "is_delta": False}
        if self._live:
            state["stream_id"] = self._id
        complete = {**self._metadata, **state, **metadata}
        self._writer.write_with_id(message_type or self._type, self._page, self._id, self._agent_id, complete)

    @property
    def _page(self) -> str:
        return "".join(self._pieces)

    def _begin_page(self) -> None:
        step = self._metadata.get("step_number")
        self._pieces: list[str] = []
        self._free_bytes = PAGE_BYTES
        self._id = self._writer.new_stream_id(self._type, step) if self._live else self._writer.new_id()
        if self._live:
            self._write_increment("", is_initial_stream=True, is_delta=False)

    def _close_page(self) -> None:
        page = self._page
        self._first_page = self._first_page if self.is_split else page
        self._earlier_length += len(page)
        self._earlier_lines += len(f"{page}…".splitlines()) - 1  # the last line of a page may continue on the next page

    def _take_space(self, piece: str) -> int:
        """Reserve space on the page for as much of a delta as fits, and return its number of characters."""
        size = _json_size(piece)
        if size <= self._free_bytes:
            self._free_bytes -= size
            return len(piece)
        for index, character in enumerate(piece):
            size = _json_size(character)
            if size > self._free_bytes:
                return index
            self._free_bytes -= size
        return len(piece)

    def _add(self, piece: str, metadata: Metadata) -> None:
        self._pieces.append(piece)
        if self._live:
            self._write_increment(piece, is_delta=True, **metadata)

    def _write_increment(self, content: str, **metadata: Any) -> None:
        state: Metadata = {"streaming": True, "status": "streaming", "is_active": True, "stream_id": self._id}
        increment = {**self._metadata, **state, **metadata}
        self._writer.write_with_id(self._type, content, self._id, self._agent_id, increment)


def _json_size(text: str) -> int:
    """Return the bytes of a text inside of a JSON string, without the quotes."""
    return len(encode(text)) - 2
