"""Writes a text as v2 messages with one id: an empty first message, increments, and the complete text."""

from typing import Any

from limelight.deltas import QUOTES, json_size
from limelight.dialects.v2.message_writer import MessageWriter, Metadata

PAGE_BYTES = 48 * 1024
"""Limit for the content of one message, in bytes of JSON, so that no line of a stream reaches 64 KiB."""


class TextStream:
    """Writes one text as v2 messages. The joined increments are exactly the complete text.

    If the run does not stream, only the complete text is written. A text that is too long for one
    message is split into pages. Where it is split depends on the text alone, not on its deltas.
    """

    def __init__(self, writer: MessageWriter, message_type: str, agent_id: str, metadata: Metadata) -> None:
        self._writer = writer
        self._type = message_type
        self._agent_id = agent_id
        self._metadata: Metadata = metadata
        self._first_page = ""
        self._earlier_length = 0
        """Number of characters on the pages (messages) before the current one."""
        self._earlier_lines = 0
        """Number of complete lines on the pages (messages) before the current one."""
        self._begin_page()

    @property
    def is_split(self) -> bool:
        """Whether the text was too long for one message and is split into pages."""
        return bool(self._earlier_length)

    @property
    def first_page(self) -> str:
        """The part of the text that fits into its first message."""
        return self._first_page if self.is_split else self._page

    @property
    def length(self) -> int:
        """Number of characters of the text, on all pages."""
        return self._earlier_length + sum(map(len, self._pieces))

    @property
    def lines(self) -> int:
        """Number of lines of the text, on all pages."""
        return self._earlier_lines + len(self._page.splitlines())

    def fits(self, piece: str) -> bool:
        """Whether a delta joined from several fits into the current message of the text."""
        return json_size(piece) - QUOTES <= self._free_bytes

    def append(self, piece: str, **metadata: Any) -> None:
        """Write a delta of the text, in several messages if needed."""
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
        """Write the complete text of the last page, possibly with another message type than the increments."""
        state: Metadata = {"is_active": False, "streaming": False, "is_delta": False}
        if self._writer.streams:
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
        self._id = self._writer.new_stream_id(self._type, step) if self._writer.streams else self._writer.new_id()
        if self._writer.streams:
            self._write_increment("", is_initial_stream=True, is_delta=False)

    def _close_page(self) -> None:
        page = self._page
        self._first_page = self._first_page if self.is_split else page
        self._earlier_length += len(page)
        self._earlier_lines += len(f"{page}…".splitlines()) - 1  # the last line of a page may continue on the next page

    def _take_space(self, piece: str) -> int:
        """Reserve space on the current page for a delta, and return how many of its characters fit."""
        size = json_size(piece) - QUOTES
        if size <= self._free_bytes:
            self._free_bytes -= size
            return len(piece)
        for index, character in enumerate(piece):
            size = json_size(character) - QUOTES
            if size > self._free_bytes:
                return index
            self._free_bytes -= size
        return len(piece)

    def _add(self, piece: str, metadata: Metadata) -> None:
        self._pieces.append(piece)
        if self._writer.streams:
            self._write_increment(piece, is_delta=True, **metadata)

    def _write_increment(self, content: str, **metadata: Any) -> None:
        state: Metadata = {"streaming": True, "status": "streaming", "is_active": True, "stream_id": self._id}
        increment = {**self._metadata, **state, **metadata}
        self._writer.write_with_id(self._type, content, self._id, self._agent_id, increment)
