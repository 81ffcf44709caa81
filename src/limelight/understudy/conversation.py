"""A chat completion request as the understudy reads it: what was asked, said and returned so far.

Frameworks differ in how they tell a model what its tools returned. Most send `tool` messages; smolagents writes calls
and results as text into assistant and user messages, and joins neighbours. Here all of them become the same entries.

It must not know scripts or recipes. The server reads requests with it; the player and the improviser look at them.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from limelight.errors import BadRequest
from limelight.understudy.request import Body, Message, ResponseFormat, ToolEntry


class Tool(msgspec.Struct, frozen=True):
    """A tool on offer."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    returns: str = ""
    """The type of its result, where that is said."""

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        named = cast("dict[str, Any]", self.parameters.get("properties") or {})
        return {name: schema for name, schema in named.items() if isinstance(schema, dict)}


class Call(msgspec.Struct, frozen=True):
    """A tool call that the model made; the arguments are text, as on the wire."""

    name: str
    arguments: str
    call_id: str = ""


class Asked(msgspec.Struct, frozen=True):
    text: str


class Said(msgspec.Struct, frozen=True):
    text: str
    calls: tuple[Call, ...] = ()


class Got(msgspec.Struct, frozen=True):
    """What a tool returned. `lost`: the call is not in the request; `orphan`: the whole reply with it is not.

    `given`: the arguments of the call, or the code, as text; empty if they are not known.
    """

    name: str
    text: str
    lost: bool = False
    orphan: bool = False
    given: str = ""


Entry = Asked | Said | Got


class Request(msgspec.Struct, frozen=True):
    """A request. `demands`: a tool must be called; `schema` is what a JSON answer must fit; `mark` is the same for
    the same conversation."""

    model: str
    entries: tuple[Entry, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    demands: bool = False
    schema: dict[str, Any] | None = None
    stream: bool = False
    include_usage: bool = False
    mark: str = ""
    size: int = 0

    @property
    def asked(self) -> str:
        """The last message of the user."""
        return next((entry.text for entry in reversed(self.entries) if isinstance(entry, Asked)), "")

    @property
    def since(self) -> tuple[Entry, ...]:
        """What happened since then."""
        last = max((at for at, entry in enumerate(self.entries) if isinstance(entry, Asked)), default=-1)
        return self.entries[last + 1 :]

    @property
    def calls(self) -> list[Call]:
        """The calls since the last message of the user."""
        return [call for entry in self.since if isinstance(entry, Said) for call in entry.calls]

    @property
    def results(self) -> list[Got]:
        return [entry for entry in self.since if isinstance(entry, Got)]

    @property
    def is_first(self) -> bool:
        """Nothing has been said in this conversation yet."""
        return replies_in(self.entries) == 0

    @property
    def is_first_question(self) -> bool:
        """The user has said one thing so far, whatever was done about it."""
        return sum(isinstance(entry, Asked) for entry in self.entries) == 1


def replies_in(entries: Iterable[Entry]) -> int:
    """How many replies of the model a conversation holds: its messages, and results whose message was left out."""
    return sum(isinstance(entry, Said) or (isinstance(entry, Got) and entry.orphan) for entry in entries)


def read_request(payload: bytes) -> Request:
    """The request of a body; what cannot be read is the caller's mistake."""
    try:
        body = msgspec.json.decode(payload, type=Body)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the body is no chat completion request: {error}") from error
    choice = body.tool_choice
    named = choice.function.name if isinstance(choice, ToolEntry) and choice.function is not None else None
    offered = [] if choice == "none" else [entry.function for entry in body.tools or () if entry.function is not None]
    told = msgspec.json.encode([body.model, body.messages, body.tools], order="sorted")
    return Request(
        model=body.model,
        entries=tuple(_entries(body.messages)),
        system="\n".join(message.text for message in body.messages if message.role in ("system", "developer")),
        tools=tuple(Tool(f.name, f.description or "", f.parameters or {}) for f in offered if named in (None, f.name)),
        demands=named is not None or choice in ("required", "any"),
        schema=_schema(body.response_format),
        stream=bool(body.stream),
        include_usage=body.stream_options is not None and bool(body.stream_options.include_usage),
        mark=hashlib.sha256(told).hexdigest()[:24],
        size=len(told),
    )


def _schema(wanted: ResponseFormat | None) -> dict[str, Any] | None:
    if wanted is None or wanted.type not in ("json_schema", "json_object"):
        return None
    return (wanted.json_schema and wanted.json_schema.schema) or {"type": "object"}


def _entries(messages: list[Message]) -> Iterator[Entry]:
    written_out = any(message.role == "user" and "New task:\n" in message.text for message in messages)
    made: dict[str | None, Call] = {}
    last: Entry | None = None
    for message in messages:
        for entry in _of_message(message, made, written_out, last):
            last = entry
            yield entry


def _of_message(
    message: Message, made: dict[str | None, Call], written_out: bool, last: Entry | None
) -> Iterable[Entry]:
    text = message.text
    match message.role:
        case "assistant":
            calls = _calls(message.tool_calls or ()) or (_written_calls(text) if written_out else ())
            made.update({call.call_id: call for call in calls})
            return [Said(text.partition("Calling tools:\n")[0].strip() if written_out else text, calls)]
        case "tool" | "function":
            call = made.get(message.tool_call_id, Call(message.name or "tool", ""))
            return [Got(call.name, text, given=call.arguments)]
        case "user":
            return _written_results(text, last) if written_out else [Asked(text)]
        case _:
            return []


def _calls(entries: Iterable[ToolEntry]) -> tuple[Call, ...]:
    made = [(entry.id or "", entry.function) for entry in entries if entry.function is not None]
    return tuple(Call(f.name, _as_text(f.arguments), call_id) for call_id, f in made)


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _written_calls(text: str) -> tuple[Call, ...]:
    """smolagents: the calls of a step, written as a Python list after its text."""
    try:
        written = ast.literal_eval(text.partition("Calling tools:\n")[2].strip() or "[]")
        return _calls(msgspec.convert(written, list[ToolEntry]))
    except (ValueError, SyntaxError):  # msgspec's errors are ValueErrors
        return ()


def _written_results(text: str, last: Entry | None) -> Iterator[Entry]:
    """smolagents: a task, observations and errors, in one text if they came one after the other."""
    text = re.sub(r"(?m)^(Call id: .*)\nError:\n", r"\1, Error:\n", text)
    for part in re.split(r"(?m)^(?=New task:\n|Observation:\n|(?:Call id: .*, )?Error:\n)", text):
        head, _, rest = part.partition("\n")
        if head == "New task:":
            entry: Entry = Asked(rest.strip())
        elif head in ("Observation:", "Error:") or head.startswith("Call id: "):
            calls = last.calls if isinstance(last, Said) else ()
            names = ", ".join(call.name for call in calls)
            given = calls[0].arguments if len(calls) == 1 else last.text if isinstance(last, Said) and not calls else ""
            lost = head == "Error:"
            told = part.partition("\nNow let's retry: ")[0] if "Error:\n" in part else rest
            entry = Got(names or "tool", told.strip(), lost, lost and not isinstance(last, Said), given)
        elif part.strip() and part.strip() != "Now proceed and carry out this plan.":
            entry = Asked(part.strip())
        else:
            continue
        last = entry
        yield entry
