"""The input and the context of `limelight run`: parses the options, and asks at the terminal for what is missing."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import typer

from limelight.cli.terminal_input import is_interactive
from limelight.cli.view.sanitize import one_line
from limelight.client.models import AgentInfo
from limelight.errors import SetupError
from limelight.json_schema import Field, Schema, fields, find_mistakes, parse_text, type_name

DESCRIPTION_CHARACTERS = 200


def parse_input(text: str | None) -> dict[str, Any] | None:
    """Return the input object of --input; `-` reads it from standard input. Raises typer.BadParameter."""
    if text is None:
        return None
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise typer.BadParameter(f"this is not valid JSON: {error}", param_hint="--input") from error
    if not isinstance(value, dict):
        raise typer.BadParameter('expected a JSON object, as in \'{"topic": "bees"}\'', param_hint="--input")
    return cast("dict[str, Any]", value)


def split_context(options: Sequence[str]) -> dict[str, str]:
    """Return the texts of --context options, by key. Raises typer.BadParameter."""
    values: dict[str, str] = {}
    for option in options:
        key, separator, text = option.partition("=")
        if not separator or not key:
            raise typer.BadParameter(f"expected KEY=VALUE, not {option!r}", param_hint="--context")
        values[key] = text
    return values


def context_values(texts: Mapping[str, str], agent: AgentInfo | None) -> dict[str, Any]:
    """Return context values in the types that the agent expects: texts, numbers, true or false, or JSON."""
    known = _context_fields(agent)
    return {key: parse_text(text, known[key].schema if key in known else {}) for key, text in texts.items()}


def _context_fields(agent: AgentInfo | None) -> dict[str, Field]:
    schemas = () if agent is None else (agent.configurable_schema, agent.context_schema)
    return {field.name: field for schema in schemas for field in fields(schema or {})}


class RunArguments:
    """What `limelight run` asks an agent: a question, an input object and context values."""

    def __init__(self, question: str | None, values: dict[str, Any] | None, context: Mapping[str, str]) -> None:
        self.question = question
        self.values = values
        self._context_texts = context
        self.context: dict[str, Any] = dict(context)

    def complete(self, agents: Sequence[AgentInfo], name: str | None, *, is_new: bool) -> None:
        """Fill in what the chosen agent needs and the options lack: ask for it, or raise SetupError.

        A session that continues remembers its values, so nothing is missing there but a question.
        """
        agent = next((agent for agent in agents if (agent.name == name if name else agent.default)), None)
        self.context = context_values(self._context_texts, agent)
        if agent is None:
            return
        missing = self._missing_input(agent, is_new=is_new)
        needed = _missing_context(agent, self.context)
        asks = (
            self.question is None and self.values is None and (bool(agent.question_key) or agent.input_schema is None)
        )
        if not (missing or needed or asks):
            return
        if not is_interactive():
            raise SetupError(_options_needed(agent, missing, needed, asks=asks))
        if asks:
            self.question = typer.prompt("Question")
        if missing:
            self.values = {**(self.values or {}), **_ask_fields(missing, agent.input_schema or {})}
        self.context |= _ask_fields(needed, {})

    def _missing_input(self, agent: AgentInfo, *, is_new: bool) -> list[Field]:
        """Return the required fields that neither the input nor the question gives.

        If there is neither, and the agent takes no question, all fields are asked for.
        """
        if agent.input_schema is None or self._is_json_question():
            return []
        listed = fields(agent.input_schema)
        has_question = self.question is not None or self.values is None
        given = {*(self.values or {}), *([agent.question_key] if has_question else [])}
        missing = [field for field in listed if field.name not in given and field.is_required]
        is_empty = self.question is None and self.values is None and not agent.question_key
        return (missing if is_new else []) or ([f for f in listed if f.name not in given] if is_empty else [])

    def _is_json_question(self) -> bool:
        """Whether the question is a JSON object, which the server takes as input if it fits."""
        return self.values is None and (self.question or "").lstrip().startswith("{")


def _missing_context(agent: AgentInfo, given: Mapping[str, Any]) -> list[Field]:
    """Return the required context fields that are not given and that a request may set."""
    allowed = agent.context_from_request
    return [
        field
        for field in _context_fields(agent).values()
        if field.is_required
        and field.name not in given
        and (allowed if isinstance(allowed, bool) else field.name in allowed)
    ]


def _options_needed(agent: AgentInfo, missing: Sequence[Field], needed: Sequence[Field], *, asks: bool) -> str:
    """Return the error message that names the options for what is missing."""
    options = ["a question"] if asks else []
    if missing:
        example = ", ".join(f'"{field.name}": …' for field in missing)
        options.append(f"--input '{{{example}}}'")
    options += [f"--context {field.name}=…" for field in needed]
    return f"agent {agent.name!r} needs {' and '.join(options)}"


def _ask_fields(missing: Sequence[Field], root: Schema) -> dict[str, Any]:
    """Ask a person for the values of fields. A field that is not required may be left empty."""
    asked = {field.name: _ask(field, root) for field in missing}
    return {name: value for name, value in asked.items() if value is not None}


def _ask(field: Field, root: Schema) -> Any:
    """Ask for the value of a field until it fits its schema. Returns None for an empty answer, if that is allowed."""
    if description := str(field.schema.get("description") or ""):
        typer.echo(one_line(description, DESCRIPTION_CHARACTERS))
    expected = one_line(type_name(field.schema), DESCRIPTION_CHARACTERS)
    label = f"{one_line(field.name, 80)} ({expected}{'' if field.is_required else ', may be empty'})"
    while True:
        text: str = typer.prompt(label, default="" if not field.is_required else None, show_default=False)
        if not text and not field.is_required:
            return None
        value = parse_text(text, field.schema)
        mistakes = find_mistakes(value, {"$defs": root.get("$defs") or {}, **field.schema})
        if not mistakes:
            return value
        typer.echo(f"  {' '.join(filter(None, mistakes[0]))}")
