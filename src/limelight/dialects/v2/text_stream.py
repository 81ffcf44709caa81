"""Texts that grow: an empty first message, increments, and the whole, all under one id."""

from typing import Any

from limelight.dialects.base import encode
from limelight.dialects.v2.message import Metadata
from limelight.dialects.v2.writer import Outbox

PAGE_BYTES = 48 * 1024
"""The most that a text may take as JSON in one message: no line of a stream may reach 64 KiB."""


class Stream:
    """One text. Without streaming only the whole is sent. Folding the increments gives the whole, to the letter.

    A very long text becomes several messages. Where it is parted depends on the text alone, not on its pieces.
    """

    def __init__(self, outbox: Outbox, message_type: str, agent_id: str, metadata: Metadata, *, live: bool) -> None:
        self._outbox = outbox
        self._type = message_type
        self._agent_id = agent_id
        self._metadata: Metadata = metadata
        self._live = live
        self._first_page = ""
        self._length = 0
        self._lines = 0
        """What earlier pages had: characters, and lines that are whole."""
        self._open_page()

    @property
    def text(self) -> str:
        """What is on this page."""
        return "".join(self._pieces)

    @property
    def is_parted(self) -> bool:
        """Whether this is not the first page."""
        return bool(self._length)

    @property
    def first_page(self) -> str:
        return self._first_page if self.is_parted else self.text

    @property
    def length(self) -> int:
        """The characters of all pages."""
        return self._length + sum(map(len, self._pieces))

    @property
    def lines(self) -> int:
        """The lines of all pages."""
        return self._lines + len(self.text.splitlines())

    def has_room(self, piece: str) -> bool:
        """Whether this page takes all of it."""
        return _size(piece) <= self._room

    def grow(self, piece: str, **more: Any) -> None:
        fits = self._fitting(piece)
        while fits < len(piece):
            self._add(piece[:fits], more)
            self.end(continued=True)
            self._turn_over()
            self._metadata = {**self._metadata, "continues": self._id}
            self._open_page()
            piece = piece[fits:]
            fits = self._fitting(piece)
        self._add(piece, more)

    def end(self, message_type: str = "", **more: Any) -> None:
        """The whole. What it turned out to be may differ from what it began as."""
        still: Metadata = {"is_active": False, "streaming": False, "is_delta": False}
        if self._live:
            still["stream_id"] = self._id
        whole = {**self._metadata, **still, **more}
        self._outbox.put(message_type or self._type, self.text, self._id, self._agent_id, whole)

    def _turn_over(self) -> None:
        text = self.text
        self._first_page = self._first_page if self.is_parted else text
        self._length += len(text)
        self._lines += len(f"{text}…".splitlines()) - 1  # the last one may go on

    def _open_page(self) -> None:
        step = self._metadata.get("step_number")
        self._pieces: list[str] = []
        self._room = PAGE_BYTES
        self._id = self._outbox.new_stream_id(self._type, step) if self._live else self._outbox.new_id()
        if self._live:
            self._send("", is_initial_stream=True, is_delta=False)

    def _fitting(self, piece: str) -> int:
        """How many characters of the piece this page takes."""
        size = _size(piece)
        if size <= self._room:
            self._room -= size
            return len(piece)
        for place, character in enumerate(piece):
            size = _size(character)
            if size > self._room:
                return place
            self._room -= size
        return len(piece)

    def _add(self, piece: str, more: Metadata) -> None:
        self._pieces.append(piece)
        if self._live:
            self._send(piece, is_delta=True, **more)

    def _send(self, content: str, **more: Any) -> None:
        moving: Metadata = {"streaming": True, "status": "streaming", "is_active": True, "stream_id": self._id}
        self._outbox.put(self._type, content, self._id, self._agent_id, {**self._metadata, **moving, **more})


def _size(text: str) -> int:
    return len(encode(text)) - 2
