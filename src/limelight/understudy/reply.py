"""What the understudy says: pieces, each of which is one chunk on the wire, and how the reply ends.

It must not know the wire, scripts or requests. The player and the improviser make replies; `chunks` turns them into
JSON, and the server sends them.
"""

import re

import msgspec

FRAGMENT = 12
"""Arguments of a call are sent in pieces of so many characters, which falls into the middle of words and escapes."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One thing on the wire. `delay` is how many seconds to wait before it."""

    delay: float = 0


class TextPiece(Piece, frozen=True, kw_only=True):
    text: str


class ReasoningPiece(Piece, frozen=True, kw_only=True):
    text: str


class CallPiece(Piece, frozen=True, kw_only=True):
    """A tool call begins, if it has a name; otherwise a fragment of the arguments of call number `index`."""

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class FaultPiece(Piece, frozen=True, kw_only=True):
    """An error of the provider. As the first piece it is an HTTP status, later an error within the stream."""

    status: int
    message: str
    type: str
    code: str | None = None


class CutPiece(Piece, frozen=True, kw_only=True):
    """The connection is closed here, in the middle of the answer."""


AnyPiece = TextPiece | ReasoningPiece | CallPiece | FaultPiece | CutPiece


class Tokens(msgspec.Struct, frozen=True):
    input: int
    output: int


class Reply(msgspec.Struct, frozen=True):
    """A whole reply. Without a `finish_reason` of its own it ends as its pieces say; without `usage` it is counted."""

    pieces: tuple[AnyPiece, ...]
    usage: Tokens | None = None
    finish_reason: str = ""

    @property
    def ends_with(self) -> str:
        called = any(isinstance(piece, CallPiece) for piece in self.pieces)
        return self.finish_reason or ("tool_calls" if called else "stop")

    @property
    def fault(self) -> FaultPiece | None:
        """The error that comes in place of an answer."""
        first = self.pieces[0] if self.pieces else None
        return first if isinstance(first, FaultPiece) else None


def paced(reply: Reply, pace: float) -> Reply:
    """The same reply with so many seconds before each piece, as a model would take its time."""
    if not pace:
        return reply
    pieces = tuple(msgspec.structs.replace(piece, delay=piece.delay + pace) for piece in reply.pieces)
    return msgspec.structs.replace(reply, pieces=pieces)


def spoken(text: str, delay: float = 0) -> list[AnyPiece]:
    """A text word by word; joined, the pieces are the text again."""
    return [TextPiece(text=word, delay=delay) for word in _words(text)]


def thought(text: str, delay: float = 0) -> list[AnyPiece]:
    return [ReasoningPiece(text=word, delay=delay) for word in _words(text)]


def called(index: int, call_id: str, name: str, arguments: str, delay: float = 0) -> list[AnyPiece]:
    """A tool call: its name first, then its arguments in fragments, as providers send them."""
    parts = [arguments[at : at + FRAGMENT] for at in range(0, len(arguments), FRAGMENT)]
    return [
        CallPiece(index=index, call_id=call_id, name=name, delay=delay),
        *(CallPiece(index=index, arguments=part, delay=delay) for part in parts),
    ]


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)
