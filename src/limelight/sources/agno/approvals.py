"""What Agno waits for a person to decide, as approvals, and the answers as Agno takes them. Pure, but for its objects.

Four kinds of pause become one kind of question. A confirmation: approve, edit the arguments, reject. Input of the user:
the fields are the arguments, and editing them is the answer. Choices among options: the same, question by question. A
tool that is executed elsewhere: editing gives its `result`. Agno can refuse a confirmation only, so the others are
turned into a confirmation that is refused.
"""

from collections.abc import Collection
from typing import Any, NamedTuple, cast

import msgspec

from limelight.events import Decision
from limelight.sources.base import DECISIONS, Approval
from limelight.sources.values import json_value

REJECTED = "rejected"
WITHOUT_ANSWER: tuple[Decision, ...] = ("edit", "reject")
"""The decisions on offer where a plain yes would leave something open."""


class Question(NamedTuple):
    """What a person is asked."""

    args: dict[str, Any]
    decisions: tuple[Decision, ...] = DECISIONS


class Settled(NamedTuple):
    """A call that Agno will not run, and says nothing more about."""

    result: Any = ""
    error: str | None = None


def open_requirements(output: Any) -> list[Any]:
    """What a paused run waits for, each call once."""
    found: dict[str, Any] = {}
    for requirement in getattr(output, "requirements", None) or ():
        if requirement.tool_execution is not None and not requirement.is_resolved():
            found.setdefault(requirement.tool_execution.tool_call_id or requirement.id, requirement)
    return list(found.values())


def waits_for(output: Any, call_ids: Collection[str]) -> bool:
    """Whether a run is the one that waits for decisions about some of these calls, and no member's."""
    if not output.is_paused or output.parent_run_id:
        return False
    return any(r.tool_execution.tool_call_id in call_ids for r in open_requirements(output))


def tie_together(output: Any) -> None:
    """Of a run that was read from the database, a call and what is required of it are two copies of one thing: what a
    person says of the one must count for the other."""
    required = {r.tool_execution.tool_call_id: r.tool_execution for r in output.requirements or () if r.tool_execution}
    output.tools = [required.get(tool.tool_call_id, tool) for tool in output.tools or ()]


def question(requirement: Any) -> Question:
    tool = requirement.tool_execution
    given = cast("dict[str, Any]", json_value(tool.tool_args or {}))
    if requirement.pause_type == "user_feedback":
        return Question({ask.question: _labels(ask) for ask in tool.user_feedback_schema}, WITHOUT_ANSWER)
    if requirement.pause_type == "external_execution":
        return Question({**given, "result": ""}, WITHOUT_ANSWER)
    if requirement.pause_type == "user_input":
        fields = {field.name: json_value(field.value) for field in tool.user_input_schema or ()}
        asked_for = fields if tool.tool_name == "get_user_input" else {**given, **fields}
        complete = all(field.value is not None for field in tool.user_input_schema or ())
        return Question(asked_for, DECISIONS if complete else WITHOUT_ANSWER)
    return Question(given)


def answer(requirement: Any, approval: Approval) -> Settled | None:
    """Tell Agno. What is settled thereby will not be heard of again; None means that the tool runs now."""
    tool = requirement.tool_execution
    if approval.decision == "reject":
        return _refuse(requirement, approval.reason)
    if requirement.pause_type == "user_feedback":
        chosen = {asked: _list(options) for asked, options in approval.args.items()}
        requirement.provide_user_feedback(chosen)
        tool.answered = True
        return Settled(chosen)
    if requirement.pause_type == "external_execution":
        result = approval.args.get("result", "")
        requirement.set_external_execution_result(result if isinstance(result, str) else _json(result))
        return Settled(result)
    if requirement.pause_type == "user_input":
        return _input(requirement, approval.args)
    if approval.decision == "edit":
        tool.tool_args = approval.args
    requirement.confirm()
    return None


def _input(requirement: Any, values: dict[str, Any]) -> Settled | None:
    tool = requirement.tool_execution
    asked_for = {field.name for field in tool.user_input_schema or ()}
    requirement.provide_user_input(values)
    tool.answered = True
    if tool.tool_name == "get_user_input":  # Agno's own: the answer is the result
        return Settled(values)
    rest = {name: value for name, value in values.items() if name not in asked_for}
    tool.tool_args = {**(tool.tool_args or {}), **rest}
    return None


def _refuse(requirement: Any, reason: str) -> Settled:
    tool = requirement.tool_execution
    tool.requires_user_input = tool.external_execution_required = False
    tool.user_input_schema = tool.user_feedback_schema = None
    requirement.user_input_schema = requirement.user_feedback_schema = None
    tool.requires_confirmation = True
    requirement.reject(note=reason or None)
    return Settled(error=f"{REJECTED}: {reason}" if reason else REJECTED)


def _labels(ask: Any) -> list[str]:
    return [option.label for option in ask.options or ()]


def _list(value: Any) -> list[str]:
    chosen = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [str(one) for one in chosen]


def _json(value: Any) -> str:
    return msgspec.json.encode(json_value(value)).decode()
