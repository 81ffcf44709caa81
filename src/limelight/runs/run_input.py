"""The input object and the context values of requests: checks them, and finds input that is written as a question.

The routes and the socket check a request before its run begins; `Sessions` adds what it finds to the turn. The agent's
source describes what the agent takes (`sources/input_schemas.py`).
"""

from typing import Any

import msgspec

from limelight.errors import InvalidBody
from limelight.json_schema import Mistake, key_path
from limelight.json_values import json_text
from limelight.messages import Message
from limelight.runs.agent_registry import Agent
from limelight.runs.queue import NO_INPUT, RunInput
from limelight.runs.truncation import MAX_INPUT_VALUES
from limelight.sources.input_schemas import (
    InputSchemas,
    input_in_question,
    input_text,
    is_reserved,
    missing_keys,
    value_mistakes,
)


def checked_input(
    agent: Agent, values: dict[str, Any] | None, context: dict[str, Any] | None, *, asks: bool, is_new: bool
) -> RunInput:
    """Return the input of a request, if the agent takes it. Raises InvalidBody with the path of the first mistake.

    `asks` is whether the request also has a question. In a new conversation (`is_new`), required keys must be there; a
    later turn may leave out those that the agent remembers.
    """
    if values is None and not context:
        return NO_INPUT
    schemas = agent.source.schemas
    if values is not None:
        _check_input(agent, schemas, values, asks=asks, is_new=is_new)
    if context:
        _check_context(agent, schemas, context)
    return RunInput(values=values, is_question=values is not None and not asks, context=context or {})


def _check_input(agent: Agent, schemas: InputSchemas, values: dict[str, Any], *, asks: bool, is_new: bool) -> None:
    if schemas.is_known and schemas.input is None:
        raise InvalidBody(f"agent {agent.name!r} takes no input object: ask it with `messages`", path="input")
    _raise_first("input", value_mistakes(values, schemas.input))
    missing = [key for key in missing_keys(values, schemas.input) if not (asks and key == schemas.question_key)]
    if missing and is_new:
        raise _invalid(key_path("input", missing[0]), f"{missing[0]!r} is required")


def _check_context(agent: Agent, schemas: InputSchemas, context: dict[str, Any]) -> None:
    if schemas.is_known and schemas.all_context is None:
        raise InvalidBody(f"agent {agent.name!r} takes no context", path="context")
    mistakes = value_mistakes(context, schemas.all_context)
    _raise_first("context", [mistake for mistake in mistakes if is_reserved(mistake.path)])
    refused = [key for key in context if not may_set_context(agent, key)]
    if refused:
        raise _invalid(
            key_path("context", refused[0]),
            f"agent {agent.name!r} does not take {refused[0]!r} from a request: its setting context_from_request in "
            f"[agents.{agent.name}] does not allow it",
        )
    _raise_first("context", mistakes)


def may_set_context(agent: Agent, key: str) -> bool:
    """Whether a request may set a value of the agent's context."""
    allowed = agent.context_from_request
    return allowed if isinstance(allowed, bool) else key in allowed


def _raise_first(name: str, mistakes: list[Mistake]) -> None:
    if mistakes:
        raise _invalid(key_path(name, mistakes[0].path) if mistakes[0].path else name, mistakes[0].message)


def _invalid(path: str, message: str) -> InvalidBody:
    """Return the error for a value of a request. Its text begins with the path, for clients that show only the text."""
    error = InvalidBody(f"{path}: {message}")
    error.errors = [(path, message)]
    return error


def with_input_in_question(agent: Agent, given: RunInput, question: Message) -> RunInput:
    """Return the input of a run: that of its request, or else the JSON object that is its question."""
    if given.values is not None:
        return given
    values = input_in_question(question.text, agent.source.schemas)
    return given if values is None else msgspec.structs.replace(given, values=values, is_question=True)


def question_for(values: dict[str, Any]) -> Message:
    """Return the message that takes the place of the question in a request with only an input object."""
    return Message({"role": "user", "content": input_text(values)})


def logged_input(question: str, given: RunInput) -> tuple[str, dict[str, Any] | None]:
    """Return the text and the values that `run_started` shows. Values that are too large become part of the text."""
    if given.values is None or len(json_text(given.values).encode()) <= MAX_INPUT_VALUES:
        return question, given.values
    return question if given.is_question else f"{question}\n\n{input_text(given.values)}", None
