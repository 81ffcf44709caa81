"""Texts that grow: an empty first message, increments, and the whole, all under one id."""

from typing import Any

from limelight.dialects.v2.message import Metadata
from limelight.dialects.v2.outbox import Outbox


class Stream:
    """One text. Without streaming only the whole is sent. Folding the increments gives the whole, to the letter."""

    def __init__(self, outbox: Outbox, message_type: str, agent_id: str, metadata: Metadata, *, live: bool) -> None:
        self._outbox = outbox
        self._type = message_type
        self._agent_id = agent_id
        self._metadata = metadata
        self._live = live
        self._pieces: list[str] = []
        step = metadata.get("step_number")
        self._id = outbox.new_stream_id(message_type, step) if live else outbox.new_id()
        if live:
            self._send("", is_initial_stream=True, is_delta=False)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def grow(self, piece: str, **more: Any) -> None:
        self._pieces.append(piece)
        if self._live:
            self._send(piece, is_delta=True, **more)

    def end(self, message_type: str = "", **more: Any) -> None:
        """The whole. What it turned out to be may differ from what it began as."""
        stream = {"stream_id": self._id} if self._live else {}
        whole: Metadata = {
            **self._metadata,
            "is_active": False,
            "streaming": False,
            "is_delta": False,
            **stream,
            **more,
        }
        self._outbox.put(message_type or self._type, self.text, self._id, self._agent_id, whole)

    def _send(self, content: str, **more: Any) -> None:
        moving: Metadata = {"streaming": True, "status": "streaming", "is_active": True, "stream_id": self._id}
        self._outbox.put(self._type, content, self._id, self._agent_id, {**self._metadata, **moving, **more})
