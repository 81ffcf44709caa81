"""Converts interrupts of a graph to approval requests, and decisions to the values that resume the graph. Pure.

LangChain's middleware interrupts a graph before tool calls; a graph may also interrupt itself with any value. In the
second case, `approve` resumes the graph with True, `reject` with False, and `edit` with the edited arguments. If these
have only the key `value`, the graph gets its value instead of the object.

The middleware can also let a person answer in place of a tool (`respond`). If it allows `respond` but no rejection,
`reject` responds with its reason as the answer.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.errors import AgentFailed
from limelight.events import Decision
from limelight.json_values import json_value
from limelight.sources.base import DECISIONS, Approval
from limelight.sources.langgraph.tool_calls import GraphCall
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_results import args_value, fields_of, items_of

NO_ANSWER = "No answer was given."


class ApprovalRequest(msgspec.Struct, frozen=True):
    """A request for one decision of a person."""

    name: str
    args: dict[str, Any]
    agent_id: str = ""
    call: GraphCall | None = None
    decisions: tuple[Decision, ...] = DECISIONS
    responds: bool = False
    """Whether the reason of a rejection is passed to the graph as the tool's result."""


class Interrupt(msgspec.Struct, frozen=True):
    """One interrupt of a graph, with its approval requests in the order in which the graph expects the decisions."""

    interrupt_id: str
    requests: tuple[ApprovalRequest, ...]
    about_tools: bool


def interrupt_of(
    interrupt_id: str, value: Any, agent_id: str, open_calls: Sequence[GraphCall], inside: GraphCall | None = None
) -> Interrupt:
    """Convert an interrupt of a graph to approval requests about open tool calls, or about any other value.

    `inside` is the tool call whose task was interrupted, if there is one.
    """
    actions = [fields_of(action) for action in items_of(fields_of(value).get("action_requests"))]
    if not actions:
        call = inside if inside is not None and not inside.asked else None
        if call is not None:
            call.asked = True
        request = ApprovalRequest("interrupt", _value_args(value), agent_id, call)
        return Interrupt(interrupt_id, (request,), about_tools=False)
    reviews = [fields_of(config) for config in items_of(value.get("review_configs"))]
    allowed = {str(review.get("action_name")): review.get("allowed_decisions") for review in reviews}
    requests = tuple(_request(action, allowed, agent_id, open_calls) for action in actions)
    return Interrupt(interrupt_id, requests, about_tools=True)


def restored_interrupt(interrupt_id: str, value: Any, state: ResumeState, open_calls: Sequence[GraphCall]) -> Interrupt:
    """Convert an interrupt in the saved state of a resumed run to approval requests, as `interrupt_of` does.

    Each request gets the agent and the tool call of the newest logged request with the same name and arguments.
    """
    interrupt = interrupt_of(interrupt_id, value, "", open_calls)
    logged = list(reversed(state.requests))
    calls = {call.call_id: call for call in open_calls}
    requests: list[ApprovalRequest] = []
    for request in interrupt.requests:
        same = next((r for r in logged if (r.name, r.args) == (request.name, request.args)), None)
        if same is not None:
            logged.remove(same)
            call = calls.get(same.call_id)
            request = msgspec.structs.replace(request, agent_id=same.agent_id, call=call)
        requests.append(request)
    return Interrupt(interrupt_id, tuple(requests), interrupt.about_tools)


def _request(
    action: dict[str, Any], allowed: dict[str, Any], agent_id: str, open_calls: Sequence[GraphCall]
) -> ApprovalRequest:
    name, args = str(action.get("name") or "unknown"), args_value(action.get("args"))
    call = _find_call(name, args, open_calls)
    offered = items_of(allowed.get(name)) or list(DECISIONS)
    responds = "respond" in offered and "reject" not in offered
    decisions: tuple[Decision, ...] = tuple(d for d in DECISIONS if d in offered or (d == "reject" and responds))
    shown = args if isinstance(args, dict) else {"arguments": args}
    return ApprovalRequest(name, shown, agent_id, call, decisions or DECISIONS, responds)


def _find_call(name: str, args: Any, open_calls: Sequence[GraphCall]) -> GraphCall | None:
    """Find the open tool call that an approval request is about, and mark it as asked.

    The middleware does not provide call ids. The call has the same name and arguments, or only the same name if the
    middleware has changed the arguments.
    """
    named = [call for call in open_calls if call.name == name and not call.asked]
    call = next((call for call in named if call.args == args), named[0] if named else None)
    if call is not None:
        call.asked = True
    return call


def resume_value(interrupt: Interrupt, approvals: Sequence[Approval]) -> Any:
    """Return the value with which the graph resumes after an interrupt."""
    if interrupt.about_tools:
        pairs = zip(interrupt.requests, approvals, strict=True)
        return {"decisions": [_decision(request, approval) for request, approval in pairs]}
    approval = approvals[0]
    match approval.decision:
        case "approve":
            return True
        case "reject":
            return False
        case "edit":
            return approval.args["value"] if approval.args.keys() == {"value"} else approval.args


def _decision(request: ApprovalRequest, approval: Approval) -> dict[str, Any]:
    match approval.decision:
        case "approve":
            return {"type": "approve"}
        case "edit":
            return {"type": "edit", "edited_action": {"name": request.name, "args": approval.args}}
        case "reject":
            return _rejection(request, approval)


def _rejection(request: ApprovalRequest, approval: Approval) -> dict[str, Any]:
    """Return a rejection in the middleware's form. Raises AgentFailed if the graph accepts no rejection.

    An expired request is a rejection too, so this can happen although a person could not reject.
    """
    if request.responds:
        return {"type": "respond", "message": approval.reason or NO_ANSWER}
    if "reject" not in request.decisions:
        raise AgentFailed(f"{request.name} was not approved ({approval.reason}), and this graph takes no rejection")
    return {"type": "reject", **({"message": approval.reason} if approval.reason else {})}


def _value_args(value: Any) -> dict[str, Any]:
    converted = json_value(value)
    return converted if isinstance(converted, dict) else {"value": converted}
