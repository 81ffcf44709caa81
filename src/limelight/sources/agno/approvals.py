"""Converts Agno's requirements (why a run is paused) to approval requests, and applies the decisions. No I/O.

Agno pauses a run for one of four reasons:
- Confirmation: a person approves a call, edits its arguments, or rejects it.
- User input: the input fields are shown as arguments. An answer, an object with the fields, fills them in.
- User feedback, a choice among options: each question is shown as an argument. An answer, an object from questions to
  chosen labels, answers it.
- External execution: an answer is the result of the call.

Instead of an answer, an edit can give the same as arguments (`result` is the result of an external execution), as older
clients do.

Agno can reject only confirmations, so a rejection first turns any other requirement into a confirmation.

A workflow pauses for the same reasons in the agent of a step, and also before or after a step itself: to confirm it,
for its input, to choose the route of a router, to review its output, and after an error.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin

from limelight.events import Decision
from limelight.json_values import fields_of, items_of, json_text, json_value
from limelight.sources.base import DECISIONS, Approval
from limelight.sources.tool_calls import UniqueIds

REJECTED = "rejected"
JSON_TYPES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    tuple: "array",
    set: "array",
    dict: "object",
}
EDIT_OR_REJECT: tuple[Decision, ...] = ("edit", "reject")
"""The decisions allowed for a call that lacks values, so that it cannot be approved unchanged."""
UNNAMED_FIELD = "input"
"""The name of a field of a form to which the model has given no name."""
APPROVE_OR_REJECT: tuple[Decision, ...] = ("approve", "reject")
NUMBERS = {"int": int, "float": float}
TRUE_WORDS = ("true", "yes", "y", "1", "on")


class ApprovalRequest(NamedTuple):
    """A paused Agno call about which a person decides: its arguments, the decisions, and the form to fill in."""

    args: dict[str, Any]
    decisions: tuple[Decision, ...] = DECISIONS
    question: str = ""
    answer_schema: dict[str, Any] | None = None


class CallOutcome(NamedTuple):
    """The result or the error of a call that Agno will not run, and for which Agno emits no event."""

    result: Any = ""
    error: str | None = None


def open_requirements(output: Any) -> list[Any]:
    """Return the unresolved requirements (reasons for the pause) of a paused Agno run, one for each call."""
    found: dict[str, Any] = {}
    for requirement in getattr(output, "requirements", None) or ():
        if requirement.tool_execution is not None and not requirement.is_resolved():
            found.setdefault(requirement.tool_execution.tool_call_id or requirement.id, requirement)
    return list(found.values())


def is_waiting_for(output: Any, call_ids: Collection[str]) -> bool:
    """Whether this is the main agent's run and it waits for a decision about one of these calls."""
    if not output.is_paused or output.parent_run_id:
        return False
    return any(r.tool_execution.tool_call_id in call_ids for r in open_requirements(output))


def link_requirements(output: Any) -> None:
    """Make a run and its requirements share the same call objects, so that a decision changes both.

    In a run that was loaded from the database, they are separate objects.
    """
    required = {r.tool_execution.tool_call_id: r.tool_execution for r in output.requirements or () if r.tool_execution}
    output.tools = [required.get(tool.tool_call_id, tool) for tool in output.tools or ()]


def approval_request(requirement: Any) -> ApprovalRequest:
    """Return the approval request for a requirement of a paused Agno run."""
    tool = requirement.tool_execution
    args = fields_of(json_value(tool.tool_args or {}))
    if requirement.pause_type == "user_feedback":
        asked = tool.user_feedback_schema
        question = asked[0].question if len(asked) == 1 else ""
        shown = {ask.question: _labels(ask) for ask in asked}
        return ApprovalRequest(shown, EDIT_OR_REJECT, question, _feedback_schema(asked))
    if requirement.pause_type == "external_execution":
        question = f"What is the result of {tool.tool_name}?"
        return ApprovalRequest({**args, "result": ""}, EDIT_OR_REJECT, question, {})
    if requirement.pause_type == "user_input":
        named = _named_fields(tool.user_input_schema)
        fields = {name: json_value(field.value) for name, field in named.items()}
        shown = fields if tool.tool_name == "get_user_input" else {**args, **fields}
        is_complete = all(field.value is not None for field in named.values())
        decisions = DECISIONS if is_complete else EDIT_OR_REJECT
        return ApprovalRequest(shown, decisions, answer_schema=_input_schema(named))
    return ApprovalRequest(args)


def _input_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the values of input fields. A value that the model has given is the default."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, field in fields.items():
        described = {"description": field.description} if field.description else {}
        default = {} if field.value is None else {"default": json_value(field.value)}
        if field.value is None:
            required.append(name)
        properties[name] = {**_type_schema(field.field_type), **described, **default}
    return {"type": "object", "properties": properties, "required": required}


def _type_schema(field_type: Any) -> dict[str, Any]:
    """Return the JSON Schema of a field's type; `{}`, any value, if it is none of the simple types."""
    choices = [value for value in get_args(field_type) if isinstance(value, str | int)]
    if get_origin(field_type) is Literal and choices:
        return {"enum": choices}
    name = JSON_TYPES.get(get_origin(field_type) or field_type)
    return {"type": name} if name else {}


def _feedback_schema(asked: Iterable[Any]) -> dict[str, Any]:
    """Return the JSON Schema of the answers to questions with options."""
    properties: dict[str, Any] = {}
    for ask in asked:
        options = [
            {"const": option.label, **({"description": option.description} if option.description else {})}
            for option in ask.options or ()
        ]
        choice: dict[str, Any] = {"oneOf": options} if options else {"type": "string"}
        title = {"title": ask.header} if ask.header else {}
        several = {"type": "array", "items": choice} if ask.multi_select else choice
        properties[ask.question] = {**several, **title}
    return {"type": "object", "properties": properties, "required": list(properties)}


def apply_decision(requirement: Any, approval: Approval) -> CallOutcome | None:
    """Apply a decision to a paused run's requirement. Returns the call's outcome; None if Agno will run the tool."""
    tool = requirement.tool_execution
    if approval.decision == "reject":
        return _reject(requirement, approval.reason)
    values = fields_of(approval.answer) if approval.answered else approval.args
    if requirement.pause_type == "user_feedback":
        chosen = {question: _list(options) for question, options in values.items()}
        requirement.provide_user_feedback(chosen)
        tool.answered = True
        return CallOutcome(chosen)
    if requirement.pause_type == "external_execution":
        result = approval.answer if approval.answered else approval.args.get("result", "")
        requirement.set_external_execution_result(result if isinstance(result, str) else json_text(result))
        return CallOutcome(result)
    if requirement.pause_type == "user_input":
        if approval.answered and tool.tool_name != "get_user_input":
            values = {**fields_of(tool.tool_args), **values}
        return _provide_input(requirement, values)
    if approval.decision == "edit":
        tool.tool_args = approval.args
    requirement.confirm()
    return None


def _provide_input(requirement: Any, values: dict[str, Any]) -> CallOutcome | None:
    tool = requirement.tool_execution
    fields = _named_fields(tool.user_input_schema)
    for schema in (tool.user_input_schema, requirement.user_input_schema):
        for name, field in _named_fields(schema).items():
            field.name = name
    requirement.provide_user_input(values)
    tool.answered = True
    if tool.tool_name == "get_user_input":  # Agno's own tool, whose result is the input
        return CallOutcome(values)
    others = {name: value for name, value in values.items() if name not in fields}
    tool.tool_args = {**(tool.tool_args or {}), **others}
    return None


def _named_fields(schema: Any) -> dict[str, Any]:
    """Return the fields of a form by name. A field to which the model gave no name is `input`, `input-2` and so on."""
    names, fields = UniqueIds(), list(schema or ())
    names.reserve(field.name for field in fields if field.name)
    return {field.name or names.assign(UNNAMED_FIELD): field for field in fields}


def _reject(requirement: Any, reason: str) -> CallOutcome:
    tool = requirement.tool_execution
    tool.requires_user_input = tool.external_execution_required = False
    tool.user_input_schema = tool.user_feedback_schema = None
    requirement.user_input_schema = requirement.user_feedback_schema = None
    tool.requires_confirmation = True
    requirement.reject(note=reason or None)
    return CallOutcome(error=f"{REJECTED}: {reason}" if reason else REJECTED)


def _labels(ask: Any) -> list[str]:
    return [option.label for option in ask.options or ()]


def _list(value: Any) -> list[str]:
    chosen = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [str(one) for one in chosen]


# Steps of workflows


class StepRequest(NamedTuple):
    """A paused step of a workflow about which a person decides: its name, what is shown, and the form to fill in."""

    name: str
    args: dict[str, Any]
    decisions: tuple[Decision, ...] = DECISIONS
    question: str = ""
    answer_schema: dict[str, Any] | None = None


def error_request(requirement: Any) -> StepRequest:
    """Return the approval request for a step that has failed: to run it again, or to skip it."""
    args = {"error": requirement.error_message, "question": "Run the step again?"}
    return StepRequest(requirement.step_name or "step", args, APPROVE_OR_REJECT)


def decide_error(requirement: Any, approval: Approval) -> None:
    """Apply a decision about a step that has failed."""
    requirement.retry() if approval else requirement.skip()


def step_request(requirement: Any) -> StepRequest:
    """Return the approval request for a requirement of a paused step of a workflow."""
    name = requirement.step_name or "step"
    if requirement.requires_route_selection:
        choices, message = items_of(requirement.available_choices), requirement.user_input_message
        route: dict[str, Any] = {"enum": choices}
        if requirement.allow_multiple_selections:
            route = {"type": "array", "items": route, "minItems": 1}
        return StepRequest(name, {**_message(message), "route": choices}, EDIT_OR_REJECT, message or "", route)
    if requirement.is_post_execution:
        output = json_value(getattr(requirement.step_output, "content", None))
        args = {**_message(requirement.output_review_message), "output": output}
        schema = {"type": "string"} if isinstance(output, str) else {}
        return StepRequest(name, args, question=requirement.output_review_message or "", answer_schema=schema)
    if requirement.requires_user_input:
        fields = {field.name: json_value(field.value) for field in requirement.user_input_schema or ()}
        message = requirement.user_input_message or requirement.confirmation_message
        args = {**_message(message), **(fields or {UNNAMED_FIELD: ""})}
        return StepRequest(name, args, EDIT_OR_REJECT, message or "", _step_input_schema(requirement))
    return StepRequest(name, _message(requirement.confirmation_message), APPROVE_OR_REJECT)


def _step_input_schema(requirement: Any) -> dict[str, Any]:
    """Return the JSON Schema of the input of a step, whose fields name their types."""
    types = {kind.__name__: name for kind, name in JSON_TYPES.items()}
    properties: dict[str, Any] = {}
    for field in requirement.user_input_schema or ():
        described = {"description": field.description} if field.description else {}
        kind: dict[str, Any] = {"type": types[field.field_type]} if field.field_type in types else {}
        properties[field.name] = {**({"enum": field.allowed_values} if field.allowed_values else kind), **described}
    if not properties:
        return {"type": "object", "properties": {UNNAMED_FIELD: {"type": "string"}}, "required": [UNNAMED_FIELD]}
    required = [field.name for field in requirement.user_input_schema if field.required]
    return {"type": "object", "properties": properties, "required": required}


def decide_step(requirement: Any, approval: Approval) -> str:
    """Apply a decision to a requirement of a paused step. Returns what is wrong with the person's input, or ""."""
    if not approval:
        return _reject_step(requirement, approval.reason)
    args = _step_args(requirement, approval)
    if requirement.requires_route_selection:
        return _choose_route(requirement, args.get("route"))
    if requirement.is_post_execution:
        output = args.get("output")
        edited = approval.decision == "edit" and output != step_request(requirement).args["output"]
        requirement.edit(output) if edited else requirement.confirm()
        return ""
    if requirement.requires_user_input:
        types = {field.name: field.field_type for field in requirement.user_input_schema or ()}
        known = {name: value for name, value in args.items() if not types or name in types}
        values = {name: _typed(value, types.get(name, "str")) for name, value in known.items() if name != MESSAGE}
        try:
            requirement.set_user_input(**values)
        except ValueError as error:
            return str(error)
    requirement.confirm()
    return ""


def _step_args(requirement: Any, approval: Approval) -> dict[str, Any]:
    """Return the arguments that a decision gives to a step; an answer is the route, the output or all fields."""
    if not approval.answered:
        return approval.args
    if requirement.requires_route_selection:
        return {"route": approval.answer}
    return {"output": approval.answer} if requirement.is_post_execution else fields_of(approval.answer)


MESSAGE = "message"
"""The argument of an approval request that shows the workflow's own message to the person."""


def _message(text: str | None) -> dict[str, Any]:
    return {MESSAGE: text} if text else {}


def _reject_step(requirement: Any, reason: str) -> str:
    """Reject a step. Agno then skips it, ends the workflow, or whatever `on_reject` of the step says."""
    requirement.requires_user_input = requirement.requires_route_selection = False
    requirement.requires_confirmation = True
    requirement.reject(reason or None)
    return ""


def _choose_route(requirement: Any, chosen: Any) -> str:
    routes = _list(chosen)
    choices = items_of(requirement.available_choices)
    unknown = [route for route in routes if route not in choices]
    is_single = not requirement.allow_multiple_selections
    if unknown or not routes or (is_single and len(routes) > 1):
        return f"Set route to {'one' if is_single else 'some'} of: {', '.join(choices)}"
    requirement.select(*routes)
    return ""


def _typed(value: Any, type_name: str) -> Any:
    """Convert text that a person has typed to the type of its field, if it has that form."""
    if not isinstance(value, str):
        return value
    if type_name == "bool":
        return value.strip().lower() in TRUE_WORDS
    try:
        return NUMBERS[type_name](value) if type_name in NUMBERS else value
    except ValueError:
        return value
