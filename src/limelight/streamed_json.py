"""Decodes string values of a JSON object while its text is still arriving in pieces. Pure.

A model streams the arguments of a call as the text of a JSON object. The value of an argument can be shown before the
text is complete. Each piece is read once, and at most an incomplete escape sequence is kept for the next piece.
"""

import re
from typing import Literal, NamedTuple

Expected = Literal["object", "key", "colon", "value", "scalar", "comma", "end", "failed"]
"""What may follow next in the object's text, outside of strings and nested values."""
PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
"""Matches the characters of a string up to an escape sequence or the closing quote."""
ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
ESCAPE_BEGINNING = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
"""Matches an incomplete escape sequence at the end of a piece, which may continue in the next one."""
ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
SPACE = re.compile(r"[ \t\r\n]*")
SCALAR = re.compile(r"[\w+.-]+")
NESTED = re.compile(r'[^"{}\[\]]+')
SURROGATE = re.compile("[\ud800-\udfff]")
NEXT: dict[tuple[Expected, str], Expected] = {
    ("object", "{"): "key",
    ("key", "}"): "end",
    ("colon", ":"): "value",
    ("comma", ","): "key",
    ("comma", "}"): "end",
}


class FieldText(NamedTuple):
    """The next piece of a field's string value."""

    key: str
    text: str


class StringFieldDecoder:
    """Decodes some string fields of one JSON object. Fields of nested objects do not count.

    A value that is not a string gives no text. After invalid JSON there is no more text. The second value of a repeated
    key is ignored. Half of a surrogate pair becomes "?", as in text that is encoded as UTF-8.
    """

    def __init__(self, *keys: str) -> None:
        self._keys = frozenset(keys)
        self._expected: Expected = "object"
        self._depth = 0
        """Number of nested objects and lists that are open."""
        self._in_string = False
        self._key = ""
        self._key_pieces: list[str] = []
        self._wanted = ""
        """The key of the open string if its value is to be decoded; else ""."""
        self._held = ""
        self._half = ""
        """The first half of a surrogate pair whose second half has not arrived yet."""

    def feed(self, text: str) -> list[FieldText]:
        """Take the next piece of the object's text, and return what it adds to the fields' values."""
        text, self._held = self._held + text, ""
        found: list[FieldText] = []
        position = 0
        while position < len(text) and self._expected != "failed":
            if self._in_string:
                position = self._read_string(text, position, found)
            elif self._depth:
                position = self._skip_nested(text, position)
            else:
                position = self._read_structure(text, position)
        return found

    def _read_string(self, text: str, position: int, found: list[FieldText]) -> int:
        """Decode the open string up to its end or the end of the piece, and return the position after that."""
        pieces: list[str] = []
        while position < len(text):
            if plain := PLAIN.match(text, position):
                pieces.append(plain[0])
                position = plain.end()
            elif text[position] == '"':
                self._add(pieces, found, is_end=True)
                self._end_string()
                return position + 1
            elif escape := ESCAPE.match(text, position):
                pieces.append(ESCAPED[escape[1]] if escape[1] else chr(int(escape[2], 16)))
                position = escape.end()
            elif ESCAPE_BEGINNING.match(text, position):
                self._held, position = text[position:], len(text)
            else:
                self._expected, position = "failed", len(text)
        self._add(pieces, found, is_end=False)
        return position

    def _add(self, pieces: list[str], found: list[FieldText], *, is_end: bool) -> None:
        if self._depth or not (self._wanted or self._expected == "key"):
            return
        text = self._half + "".join(pieces)
        self._half = text[-1:] if not is_end and "\ud800" <= text[-1:] <= "\udbff" else ""
        text = _paired(text[: len(text) - len(self._half)])
        if self._expected == "key":
            self._key_pieces.append(text)
        elif text:
            found.append(FieldText(self._wanted, text))

    def _end_string(self) -> None:
        self._in_string = False
        if self._depth:
            return
        if self._expected == "key":
            self._key, self._key_pieces = "".join(self._key_pieces), []
            self._expected = "colon"
        else:
            self._wanted, self._expected = "", "comma"

    def _skip_nested(self, text: str, position: int) -> int:
        if skipped := NESTED.match(text, position):
            return skipped.end()
        character = text[position]
        self._in_string = character == '"'
        self._depth += (character in "{[") - (character in "}]")
        if not self._depth:
            self._expected = "comma"
        return position + 1

    def _read_structure(self, text: str, position: int) -> int:
        if self._expected == "scalar":
            if scalar := SCALAR.match(text, position):
                return scalar.end()
            self._expected = "comma"
        space = SPACE.match(text, position)
        if space is not None and space.end() > position:
            return space.end()
        character = text[position]
        if self._expected == "value":
            return self._begin_value(character, position)
        if self._expected == "key" and character == '"':
            self._in_string = True
        else:
            self._expected = NEXT.get((self._expected, character), "failed")
        return position + 1

    def _begin_value(self, character: str, position: int) -> int:
        if character == '"':
            self._in_string = True
            self._wanted = self._key if self._key in self._keys else ""
        elif character in "{[":
            self._depth = 1
        elif SCALAR.match(character):
            self._expected = "scalar"
        else:
            self._expected = "failed"
        self._keys -= {self._key}
        return position + 1


class FirstFieldDecoder:
    """Decodes the first of some string fields of one JSON object that has text."""

    def __init__(self, *keys: str) -> None:
        self._decoder = StringFieldDecoder(*keys)
        self._key = ""
        """Name of the field that is decoded; "" before one has text."""

    def feed(self, text: str) -> str:
        """Take the next piece of the object's text, and return what it adds to the field's value."""
        pieces: list[str] = []
        for key, piece in self._decoder.feed(text):
            self._key = self._key or key
            if key == self._key:
                pieces.append(piece)
        return "".join(pieces)


def _paired(text: str) -> str:
    """Join the halves of surrogate pairs, and replace lone halves by "?"."""
    if SURROGATE.search(text) is None:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return joined.encode("utf-8", "replace").decode()
