"""What a graph waits for, as questions to a person, and their answers as the graph wants them. Pure.

LangChain's middleware asks about tool calls; a graph may interrupt itself with any value. Both are approvals here: of
the second kind `approve` resumes with True, `reject` with False, and `edit` with the value that was given: `{"value":
42}` with 42, any other object with itself.

The middleware can also let a person answer in a tool's place (`respond`). Where that is offered and a rejection is not,
`reject` does so, with its reason as the answer.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.errors import AgentFailed
from limelight.events import Decision
from limelight.sources.base import DECISIONS, Approval
from limelight.sources.langgraph.tool_calls import Call
from limelight.sources.resume_state import SoFar
from limelight.sources.values import args_value, fields_of, items_of, json_value

NO_ANSWER = "Nobody has answered."


class Question(msgspec.Struct, frozen=True):
    """One thing that a person has to decide."""

    name: str
    args: dict[str, Any]
    agent_id: str = ""
    call: Call | None = None
    decisions: tuple[Decision, ...] = DECISIONS
    responds: bool = False
    """Whether a rejection is told as the tool's answer."""


class Interrupt(msgspec.Struct, frozen=True):
    """One stop of the graph, with its questions in the order in which it wants the answers."""

    interrupt_id: str
    questions: tuple[Question, ...]
    about_tools: bool


def interrupt_of(
    interrupt_id: str, value: Any, agent_id: str, open_calls: Sequence[Call], inside: Call | None = None
) -> Interrupt:
    """What an interrupt asks: about some of the open calls, or anything, maybe from inside of a call."""
    requests = [fields_of(request) for request in items_of(fields_of(value).get("action_requests"))]
    if not requests:
        call = inside if inside is not None and not inside.asked else None
        if call is not None:
            call.asked = True
        return Interrupt(interrupt_id, (Question("interrupt", _value_args(value), agent_id, call),), about_tools=False)
    reviews = [fields_of(config) for config in items_of(value.get("review_configs"))]
    allowed = {str(review.get("action_name")): review.get("allowed_decisions") for review in reviews}
    questions = tuple(_question(request, allowed, agent_id, open_calls) for request in requests)
    return Interrupt(interrupt_id, questions, about_tools=True)


def interrupt_again(interrupt_id: str, value: Any, so_far: SoFar, open_calls: Sequence[Call]) -> Interrupt:
    """An interrupt whose questions were asked before the server ended: the newest requests with the same words."""
    made = interrupt_of(interrupt_id, value, "", open_calls)
    requests = list(reversed(so_far.requests))
    calls = {call.call_id: call for call in open_calls}
    questions: list[Question] = []
    for question in made.questions:
        about = [r for r in requests if (r.name, r.args) == (question.name, question.args)]
        request = about[0] if about else None
        if request is not None:
            requests.remove(request)
            call = calls.get(request.call_id)
            question = msgspec.structs.replace(question, agent_id=request.agent_id, call=call)
        questions.append(question)
    return Interrupt(interrupt_id, tuple(questions), made.about_tools)


def _question(request: dict[str, Any], allowed: dict[str, Any], agent_id: str, open_calls: Sequence[Call]) -> Question:
    name, args = str(request.get("name") or "unknown"), args_value(request.get("args"))
    call = _asked_about(name, args, open_calls)
    offered = items_of(allowed.get(name)) or list(DECISIONS)
    responds = "respond" in offered and "reject" not in offered
    decisions: tuple[Decision, ...] = tuple(d for d in DECISIONS if d in offered or (d == "reject" and responds))
    shown = args if isinstance(args, dict) else {"arguments": args}
    return Question(name, shown, agent_id, call, decisions or DECISIONS, responds)


def _asked_about(name: str, args: Any, open_calls: Sequence[Call]) -> Call | None:
    """Requests name no call: it is the open one with that name and, unless they were repaired, those arguments."""
    named = [call for call in open_calls if call.name == name and not call.asked]
    call = next((call for call in named if call.args == args), named[0] if named else None)
    if call is not None:
        call.asked = True
    return call


def resume_value(interrupt: Interrupt, answers: Sequence[Approval]) -> Any:
    """What the graph gets for an interrupt."""
    if interrupt.about_tools:
        pairs = zip(interrupt.questions, answers, strict=True)
        return {"decisions": [_decision(question, answer) for question, answer in pairs]}
    answer = answers[0]
    match answer.decision:
        case "approve":
            return True
        case "reject":
            return False
        case "edit":
            return answer.args["value"] if answer.args.keys() == {"value"} else answer.args


def _decision(question: Question, answer: Approval) -> dict[str, Any]:
    match answer.decision:
        case "approve":
            return {"type": "approve"}
        case "edit":
            return {"type": "edit", "edited_action": {"name": question.name, "args": answer.args}}
        case "reject":
            return _rejection(question, answer)


def _rejection(question: Question, answer: Approval) -> dict[str, Any]:
    """A no, which may also come from the clock where nobody can say it: then the graph has no way to go on."""
    if question.responds:
        return {"type": "respond", "message": answer.reason or NO_ANSWER}
    if "reject" not in question.decisions:
        raise AgentFailed(f"{question.name} was not approved ({answer.reason}), and this graph takes no rejection")
    return {"type": "reject", **({"message": answer.reason} if answer.reason else {})}


def _value_args(value: Any) -> dict[str, Any]:
    made = json_value(value)
    return made if isinstance(made, dict) else {"value": made}
