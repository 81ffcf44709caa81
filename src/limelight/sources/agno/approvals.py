"""Converts Agno's requirements to approval requests, and applies the decisions to Agno's objects. No I/O.

Agno pauses a run for one of four reasons:
- Confirmation: a person approves a call, edits its arguments, or rejects it.
- User input: the input fields are shown as arguments, and an edit fills them in.
- User feedback, a choice among options: each question is shown as an argument, and an edit answers it.
- External execution: an edit provides the `result` of the call.

Agno can reject only confirmations, so a rejection first turns any other requirement into a confirmation.
"""

from collections.abc import Collection
from typing import Any, NamedTuple, cast

from limelight.events import Decision
from limelight.json_values import json_value
from limelight.sources.base import DECISIONS, Approval
from limelight.sources.tool_results import fields_of, json_text

REJECTED = "rejected"
EDIT_OR_REJECT: tuple[Decision, ...] = ("edit", "reject")
"""The allowed decisions for a request in which values are missing, so that it cannot just be approved."""


class ApprovalRequest(NamedTuple):
    """The arguments that a person decides about, and the allowed decisions."""

    args: dict[str, Any]
    decisions: tuple[Decision, ...] = DECISIONS


class CallOutcome(NamedTuple):
    """The result or the error of a call that Agno will neither run nor report."""

    result: Any = ""
    error: str | None = None


def open_requirements(output: Any) -> list[Any]:
    """Return the unresolved requirements of a paused run, one for each call."""
    found: dict[str, Any] = {}
    for requirement in getattr(output, "requirements", None) or ():
        if requirement.tool_execution is not None and not requirement.is_resolved():
            found.setdefault(requirement.tool_execution.tool_call_id or requirement.id, requirement)
    return list(found.values())


def is_waiting_for(output: Any, call_ids: Collection[str]) -> bool:
    """Whether a run waits for decisions about some of these calls and is the main run, not that of a team member."""
    if not output.is_paused or output.parent_run_id:
        return False
    return any(r.tool_execution.tool_call_id in call_ids for r in open_requirements(output))


def link_requirements(output: Any) -> None:
    """Replace the calls of a run by the call objects of its requirements, so that a decision changes both.

    In a run that was loaded from the database, they are separate objects.
    """
    required = {r.tool_execution.tool_call_id: r.tool_execution for r in output.requirements or () if r.tool_execution}
    output.tools = [required.get(tool.tool_call_id, tool) for tool in output.tools or ()]


def approval_request(requirement: Any) -> ApprovalRequest:
    """Return the approval request for a requirement."""
    tool = requirement.tool_execution
    args = fields_of(json_value(tool.tool_args or {}))
    if requirement.pause_type == "user_feedback":
        return ApprovalRequest({ask.question: _labels(ask) for ask in tool.user_feedback_schema}, EDIT_OR_REJECT)
    if requirement.pause_type == "external_execution":
        return ApprovalRequest({**args, "result": ""}, EDIT_OR_REJECT)
    if requirement.pause_type == "user_input":
        fields = {field.name: json_value(field.value) for field in tool.user_input_schema or ()}
        shown = fields if tool.tool_name == "get_user_input" else {**args, **fields}
        is_complete = all(field.value is not None for field in tool.user_input_schema or ())
        return ApprovalRequest(shown, DECISIONS if is_complete else EDIT_OR_REJECT)
    return ApprovalRequest(args)


def apply_decision(requirement: Any, approval: Approval) -> CallOutcome | None:
    """Resolve a requirement with a decision. Returns the outcome of the call; None if Agno will run the tool."""
    tool = requirement.tool_execution
    if approval.decision == "reject":
        return _reject(requirement, approval.reason)
    if requirement.pause_type == "user_feedback":
        chosen = {question: _list(options) for question, options in approval.args.items()}
        requirement.provide_user_feedback(chosen)
        tool.answered = True
        return CallOutcome(chosen)
    if requirement.pause_type == "external_execution":
        result = approval.args.get("result", "")
        requirement.set_external_execution_result(result if isinstance(result, str) else json_text(result))
        return CallOutcome(result)
    if requirement.pause_type == "user_input":
        return _provide_input(requirement, approval.args)
    if approval.decision == "edit":
        tool.tool_args = approval.args
    requirement.confirm()
    return None


def _provide_input(requirement: Any, values: dict[str, Any]) -> CallOutcome | None:
    tool = requirement.tool_execution
    fields = {field.name for field in tool.user_input_schema or ()}
    requirement.provide_user_input(values)
    tool.answered = True
    if tool.tool_name == "get_user_input":  # Agno's own tool, whose result is the input
        return CallOutcome(values)
    others = {name: value for name, value in values.items() if name not in fields}
    tool.tool_args = {**(tool.tool_args or {}), **others}
    return None


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
