"""Converts a stored value that is read in parts to the bytes of a response: valid UTF-8, or a JSON string.

The output is the same wherever the value is divided into parts, even inside of a character. Pure; `downloads.py` reads
the parts.
"""

import codecs
from typing import Protocol

import msgspec

_encode = msgspec.json.Encoder().encode


class Conversion(Protocol):
    """The interface of a conversion that gets a value in parts."""

    def feed(self, part: bytes) -> bytes:
        """Take the next part of the value, and return the bytes of the response that are complete now."""
        ...

    def end(self) -> bytes:
        """Return the last bytes of the response, after the last part."""
        ...


class Utf8Conversion:
    """Converts a text in parts to valid UTF-8: replaces invalid bytes by U+FFFD, as `decode(errors="replace")` does."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, part: bytes) -> bytes:
        return self._decoder.decode(part).encode()

    def end(self) -> bytes:
        return self._decoder.decode(b"", final=True).encode()


class JsonStringConversion:
    """Converts a UTF-8 text in parts to the same JSON string as `msgspec.json.encode` makes of the complete text."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._quote = b'"'

    def feed(self, part: bytes) -> bytes:
        quote, self._quote = self._quote, b""
        return quote + _encode(self._decoder.decode(part))[1:-1]

    def end(self) -> bytes:
        return self._quote + _encode(self._decoder.decode(b"", final=True))[1:-1] + b'"'
