"""Calls that Agno refuses without an event: of tools that there are not, and with arguments that are no JSON.

They are heard of where Agno refuses them, in the model of the turn's copy: a twin, with the same state, tells what is
refused. Whatever is missed there is found at the end, in the messages that Agno keeps of a run.
"""

import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from limelight.sources.values import args_value, safe_text

REFUSES = "get_function_calls_to_run"
"""The method in which Agno's models sort out which calls can be carried out."""


class Refused(NamedTuple):
    raw_id: str
    name: str
    args: dict[str, Any] | str
    error: str


class Refusal(NamedTuple):
    """A call that was refused just now: in which run of Agno's, after how many requests to its model."""

    run_id: str
    requests: int
    call: Refused


REFUSALS: ContextVar[list[Refusal] | None] = ContextVar("limelight_agno_refusals", default=None)
"""What was refused in this turn and has not been shown yet."""


def telling(model: Any) -> Any:
    """A twin of a model that tells what it refuses. It shares all that the model has, connections too."""
    if not callable(getattr(model, REFUSES, None)):
        return model
    kind: Any = model.__class__
    twin = object.__new__(_telling_class(kind))
    twin.__dict__ = model.__dict__
    return twin


@lru_cache(maxsize=64)
def _telling_class(kind: Any) -> Any:
    above: Any = super

    def get_function_calls_to_run(self: Any, assistant_message: Any, messages: Any, functions: Any = None) -> Any:
        before = len(messages)
        calls = getattr(above(made, self), REFUSES)(assistant_message, messages, functions)
        told, replies = REFUSALS.get(), messages[before:]
        if told is not None and replies:
            output = sys._getframe(1).f_locals.get("run_response")  # pyright: ignore[reportPrivateUsage]
            run_id = str(getattr(output, "run_id", None) or "")
            asked = [m for m in messages[:before] if m.role == "assistant" and not getattr(m, "from_history", False)]
            requests = len(asked) + all(m is not assistant_message for m in asked)
            told += [Refusal(run_id, requests, call) for call in _refused([assistant_message, *replies], set())]
        return calls

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, REFUSES: get_function_calls_to_run}
    made: Any = type(kind.__name__, (kind,), names)
    return made


def refused_calls(output: Any, known: set[str]) -> Iterator[Refused]:
    """The calls of this run that have an answer, but are not known."""
    messages = [m for m in getattr(output, "messages", None) or () if not getattr(m, "from_history", False)]
    return _refused(messages, known)


def _refused(messages: list[Any], known: set[str]) -> Iterator[Refused]:
    replies = {m.tool_call_id: safe_text(m.content or "") for m in messages if m.role == "tool"}
    for message in messages:
        for call in message.tool_calls or ():
            raw_id = str(call.get("id") or "")
            if raw_id in known or raw_id not in replies:
                continue
            function: dict[str, Any] = call.get("function") or {}
            error = replies[raw_id].removeprefix("Error: ")
            yield Refused(raw_id, str(function.get("name") or ""), _parsed(function.get("arguments")), error)


def _parsed(arguments: Any) -> dict[str, Any] | str:
    """Arguments as the model sent them: an object if they are one, else the text."""
    if not isinstance(arguments, str):
        return args_value(arguments)
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments
