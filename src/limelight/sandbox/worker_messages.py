"""The messages that a worker may send to the server. A worker that sends any other is killed."""

from typing import Any

import msgspec

from limelight.sandbox.message_framing import InvalidFrame, Message


class Ready(msgspec.Struct, tag_field="type", tag="ready", forbid_unknown_fields=True):
    """The worker has started."""


class Output(msgspec.Struct, tag_field="type", tag="output", forbid_unknown_fields=True):
    """The code has printed a text."""

    text: str


class Call(msgspec.Struct, tag_field="type", tag="call", forbid_unknown_fields=True):
    """The code calls a tool, with encoded positional arguments and encoded keyword arguments."""

    id: int
    name: str
    arguments: tuple[Any, Any]


class Result(msgspec.Struct, tag_field="type", tag="result", forbid_unknown_fields=True):
    """The code has ended, with an encoded value and all that it has printed."""

    value: Any
    logs: Any
    is_final_answer: bool


class Error(msgspec.Struct, tag_field="type", tag="error", forbid_unknown_fields=True):
    """The code has failed, with an encoded error message."""

    message: Any
    logs: Any


WorkerMessage = Ready | Output | Call | Result | Error


def parse_message(message: Message) -> WorkerMessage:
    """Return a message of a worker. Raises InvalidFrame if its type is unknown or a field is missing or wrong."""
    try:
        return msgspec.convert(message, WorkerMessage)
    except msgspec.ValidationError as error:
        raise InvalidFrame(str(error)) from error
