"""Frames on the pipes between the server and a worker: the length as four bytes, then a JSON object."""

import json
from collections.abc import Iterator
from typing import Any, cast

Message = dict[str, Any]

MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of a frame. A worker that sends a larger one is killed."""
_PREFIX = 4


class InvalidFrame(ValueError):
    """Raised if received bytes are not a frame."""


def encode_frame(message: Message) -> bytes:
    """Encode a message. Raises InvalidFrame if it is larger than MAX_BYTES."""
    body = json.dumps(message).encode()
    if len(body) > MAX_BYTES:
        raise InvalidFrame(f"{len(body)} bytes are more than the limit of {MAX_BYTES}")
    return len(body).to_bytes(_PREFIX, "big") + body


class FrameReader:
    """Splits received bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Add received bytes, and yield the messages that are complete. Raises InvalidFrame."""
        self._buffer += data
        while len(self._buffer) >= _PREFIX:
            length = int.from_bytes(self._buffer[:_PREFIX], "big")
            if length > MAX_BYTES:
                raise InvalidFrame(f"{length} bytes are more than the limit of {MAX_BYTES}")
            if len(self._buffer) < _PREFIX + length:
                return
            body = bytes(self._buffer[_PREFIX : _PREFIX + length])
            del self._buffer[: _PREFIX + length]
            yield _decoded(body)


def _decoded(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidFrame(f"not JSON: {type(error).__name__}") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):  # pyright: ignore[reportUnknownMemberType]
        raise InvalidFrame("not an object with a type")
    return cast("Message", message)
