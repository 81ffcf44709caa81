"""What a graph waits for, as questions to a person, and their answers as the graph wants them. Pure.

LangChain's middleware asks about tool calls; a graph may interrupt itself with any value. Both are approvals here: of
the second kind `approve` resumes with True, `reject` with False, and `edit` with the value that was given.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.events import Decision
from limelight.sources.base import DECISIONS, Approval
from limelight.sources.langgraph.calls import Call
from limelight.sources.values import args_value, fields_of, items_of, json_value


class Question(msgspec.Struct, frozen=True):
    """One thing that a person has to decide."""

    name: str
    args: dict[str, Any]
    agent_id: str = ""
    call: Call | None = None
    decisions: tuple[Decision, ...] = DECISIONS


class Interrupt(msgspec.Struct, frozen=True):
    """One stop of the graph, with its questions in the order in which it wants the answers."""

    interrupt_id: str
    questions: tuple[Question, ...]
    about_tools: bool


def interrupt_of(interrupt_id: str, value: Any, agent_id: str, open_calls: Sequence[Call]) -> Interrupt:
    """What an interrupt asks. Requests name no call: it is the open one with that name and those arguments."""
    requests = items_of(fields_of(value).get("action_requests"))
    if not requests:
        return Interrupt(interrupt_id, (Question("interrupt", _value_args(value), agent_id),), about_tools=False)
    configs = {str(c.get("action_name")): c for c in value.get("review_configs") or ()}
    questions = tuple(_question(request, configs, agent_id, open_calls) for request in requests)
    return Interrupt(interrupt_id, questions, about_tools=True)


def _question(request: dict[str, Any], configs: dict[str, Any], agent_id: str, open_calls: Sequence[Call]) -> Question:
    name, args = str(request["name"]), args_value(request.get("args"))
    call = next((c for c in open_calls if c.name == name and c.args == args and not c.asked), None)
    if call is not None:
        call.asked = True
    allowed = configs.get(name, {}).get("allowed_decisions") or DECISIONS
    decisions: tuple[Decision, ...] = tuple(decision for decision in DECISIONS if decision in allowed)
    shown = args if isinstance(args, dict) else {"arguments": args}
    return Question(name, shown, agent_id if call is None else call.agent_id, call, decisions or DECISIONS)


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
            return {"type": "reject", **({"message": answer.reason} if answer.reason else {})}


def _value_args(value: Any) -> dict[str, Any]:
    made = json_value(value)
    return made if isinstance(made, dict) else {"value": made}
