"""Framing of messages between the server and a sandboxed worker: the length as four bytes, then a JSON object.

While the server decodes a message, none of its other threads runs. The limits keep this below about 50 ms.
"""

import json
import threading
from collections.abc import Iterator
from typing import Any, cast

Message = dict[str, Any]

MAX_BYTES = 12 * 1024 * 1024
"""The maximum size of a message in bytes. A worker that sends a larger one is killed."""
MAX_ITEMS = 100_000
"""The maximum number of values in a message."""
MAX_DIGITS = 20
"""The maximum number of digits of an integer in a message. Parsing takes a time that grows with their square."""
LARGE_BYTES = 64 * 1024
"""Size from which messages are decoded one at a time. Otherwise many threads would decode in turn, and all others would
wait for each of them."""
_PREFIX = 4
_decoding = threading.Lock()


class InvalidFrame(ValueError):
    """Raised if received bytes are not a valid message, or if a message exceeds the limits."""


def encode_frame(message: Message) -> bytes:
    """Encode a message with its length. Raises InvalidFrame if it exceeds MAX_BYTES or MAX_ITEMS."""
    body = json.dumps(message).encode()
    _check_length(len(body))
    _check_items(body)
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
            _check_length(length)
            if len(self._buffer) < _PREFIX + length:
                return
            body = bytes(self._buffer[_PREFIX : _PREFIX + length])
            del self._buffer[: _PREFIX + length]
            yield _decoded(body)


def _check_length(length: int) -> None:
    if length > MAX_BYTES:
        raise InvalidFrame(f"{length} bytes are more than the limit of {MAX_BYTES}")


def _check_items(body: bytes) -> None:
    """Raise InvalidFrame if a message may have too many values. It counts characters, also those in texts."""
    if body.count(b",") + body.count(b"[") + body.count(b":") > MAX_ITEMS:
        raise InvalidFrame(f"there are more than {MAX_ITEMS} values")


def _decoded(body: bytes) -> Message:
    if len(body) < LARGE_BYTES:
        return _parsed(body)
    with _decoding:
        return _parsed(body)


def _parsed(body: bytes) -> Message:
    _check_items(body)
    try:
        message = json.loads(body, parse_int=_parse_int)
    except (ValueError, RecursionError) as error:
        raise InvalidFrame(f"not JSON: {type(error).__name__}") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):  # pyright: ignore[reportUnknownMemberType]
        raise InvalidFrame("not an object with a type")
    return cast("Message", message)


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
    return int(digits)
