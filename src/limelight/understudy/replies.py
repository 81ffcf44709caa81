"""Types of the offline model's replies: their pieces (each sent as one chunk), token usage and finish reason.

Scripts and the improviser create replies, `openai_chunks` encodes them, the server sends them. This module knows
neither the wire nor requests.
"""

import re
from typing import Annotated

import msgspec

FRAGMENT_CHARACTERS = 12
"""Length of the fragments in which a call's arguments are sent. Like those of providers, they split words and escapes.
"""
NonNegative = Annotated[int, msgspec.Meta(ge=0)]


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of the parts of a reply, each sent as one chunk after a wait of `delay` seconds."""

    delay: float = 0


class TextPiece(Piece, frozen=True, kw_only=True):
    text: str


class ReasoningPiece(Piece, frozen=True, kw_only=True):
    text: str


class CallPiece(Piece, frozen=True, kw_only=True):
    """The start of a tool call if it has a name; otherwise a fragment of the arguments of call number `index`."""

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class ErrorPiece(Piece, frozen=True, kw_only=True):
    """A simulated provider error: an HTTP status if it is the first piece, otherwise an error event in the stream."""

    status: int
    message: str
    type: str
    code: str | None = None


class DisconnectPiece(Piece, frozen=True, kw_only=True):
    """A simulated disconnect: the server closes the connection before the reply is complete."""


AnyPiece = TextPiece | ReasoningPiece | CallPiece | ErrorPiece | DisconnectPiece


class TokenUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: NonNegative = 0
    output: NonNegative = 0


class Reply(msgspec.Struct, frozen=True):
    """A reply of the offline model. Missing token usage is estimated, a missing finish reason follows from pieces."""

    pieces: tuple[AnyPiece, ...]
    usage: TokenUsage | None = None
    scripted_finish_reason: str = ""

    @property
    def finish_reason(self) -> str:
        has_calls = any(isinstance(piece, CallPiece) for piece in self.pieces)
        return self.scripted_finish_reason or ("tool_calls" if has_calls else "stop")


def text_reply(text: str) -> Reply:
    return Reply(tuple(text_pieces(text)))


def with_pace(reply: Reply, seconds: float) -> Reply:
    """Return a reply with a delay of `seconds` before each of its pieces."""
    if not seconds:
        return reply
    pieces = tuple(msgspec.structs.replace(piece, delay=piece.delay + seconds) for piece in reply.pieces)
    return msgspec.structs.replace(reply, pieces=pieces)


def text_pieces(text: str, delay: float = 0) -> list[AnyPiece]:
    """Return the pieces of a text, one for each word."""
    return [TextPiece(text=word, delay=delay) for word in _words(text)]


def reasoning_pieces(text: str, delay: float = 0) -> list[AnyPiece]:
    return [ReasoningPiece(text=word, delay=delay) for word in _words(text)]


def call_pieces(index: int, call_id: str, name: str, arguments: str, delay: float = 0) -> list[AnyPiece]:
    """Return the pieces of a tool call: first its name, then its arguments in fragments."""
    starts = range(0, len(arguments), FRAGMENT_CHARACTERS)
    fragments = [arguments[start : start + FRAGMENT_CHARACTERS] for start in starts]
    return [
        CallPiece(index=index, call_id=call_id, name=name, delay=delay),
        *(CallPiece(index=index, arguments=fragment, delay=delay) for fragment in fragments),
    ]


def _words(text: str) -> list[str]:
    """Split a text into words, each with the white space before it, so that the joined words are the original text."""
    return re.findall(r"\s*\S+|\s+$", text)
