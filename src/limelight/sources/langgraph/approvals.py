"""Converts interrupts of a graph to approval requests, and decisions to the values that resume the graph. Pure.

A graph is interrupted with a value, in one of four forms, and expects to be resumed in the form of its question:

| form | value | resumed with |
|---|---|---|
| `decisions` | LangChain's middleware: `{action_requests, review_configs}` | `{decisions: […]}`, one for each action |
| `decision` | LangChain's middleware, per call: `{type: "tool_approval", name, args}` | one decision |
| `inbox` | Agent Inbox: `{action_request, config, description}`, or a list of these | a list of `{type, args}` |
| `value` | anything else | the answer; True after `approve`, False after `reject`, or the edited arguments |

If the edited arguments of the last form have only the key `value`, the graph gets its value instead of the object.

The first three forms can also let a person answer in place of the tool (`respond`). If such a request allows no
rejection, `reject` responds with its reason as the answer.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from limelight.answer_schemas import problem_with
from limelight.errors import AgentFailed
from limelight.events import Decision
from limelight.json_schema import resolve
from limelight.json_values import fields_of, items_of, json_text, json_value
from limelight.sources.base import DECISIONS, Approval
from limelight.sources.langgraph.questions import question_of, shown_args
from limelight.sources.langgraph.tool_calls import GraphCall
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_results import args_value

NO_ANSWER = "No answer was given."
TEXT: dict[str, Any] = {"type": "string"}
"""The schema of an answer in place of a tool's result."""
DEFAULT_DESCRIPTION = "Tool execution requires approval"
"""The description of LangChain's middleware if the agent gives none. It says nothing about the call."""
MAX_IGNORED = 3
"""How often a graph task may ask a question again whose answer it ignores, before the run fails."""
MAX_REPEATS = 20
"""How often in a row a graph task may ask the same question and get the same answer, before the run fails."""
INBOX_DECISIONS: dict[str, Decision] = {"allow_accept": "approve", "allow_edit": "edit", "allow_ignore": "reject"}
_INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")

Form = Literal["decisions", "decision", "inbox", "value"]


class ApprovalRequest(msgspec.Struct, frozen=True):
    """One decision that an interrupted graph needs from a person."""

    name: str
    args: dict[str, Any]
    agent_id: str = ""
    call: GraphCall | None = None
    decisions: tuple[Decision, ...] = DECISIONS
    responds: bool = False
    """Whether the graph gets a rejection as a result of the tool, with the person's reason as its text."""
    question: str = ""
    answer_schema: dict[str, Any] | None = None
    args_schema: dict[str, Any] | None = None


class Interrupt(msgspec.Struct, frozen=True):
    """One interrupt of a graph, with its approval requests in the order in which the graph expects the decisions."""

    interrupt_id: str
    requests: tuple[ApprovalRequest, ...]
    form: Form
    task_id: str = ""
    """The graph task that asks. It keeps its id until it ends, however often it is interrupted."""
    node: str = ""
    """The name of the node that asks."""

    @property
    def takes_value(self) -> bool:
        """Whether LangGraph passes a resume value to this interrupt. See `Interrupted.takes_value`."""
        return bool(_INTERRUPT_ID.fullmatch(self.interrupt_id))


class Interrupted(msgspec.Struct, frozen=True):
    """An interrupt as LangGraph reports it: its value and, if the graph gave one, the schema of the answer."""

    interrupt_id: str
    value: Any
    response_schema: Any = None
    task_id: str = ""
    node: str = ""

    @property
    def takes_value(self) -> bool:
        """Whether LangGraph passes a resume value to this interrupt, which needs an id of LangGraph's own.

        An interrupt without one was raised as an exception (`NodeInterrupt`): its node runs again without an answer.
        """
        return bool(_INTERRUPT_ID.fullmatch(self.interrupt_id))


def interrupt_of(
    raised: Interrupted, agent_id: str, open_calls: Sequence[GraphCall], inside: GraphCall | None = None
) -> Interrupt:
    """Convert an interrupt of a graph to approval requests about open tool calls, or about any other value.

    `inside` is the tool call whose task was interrupted, if there is one.
    """
    value = json_value(raised.value)
    form, requests = _requests(value, raised.response_schema, agent_id, open_calls)
    if form != "decisions":
        requests = [_inside(request, inside) for request in requests]
    return Interrupt(raised.interrupt_id, tuple(requests), form, raised.task_id, raised.node)


def _requests(
    value: Any, response_schema: Any, agent_id: str, open_calls: Sequence[GraphCall]
) -> tuple[Form, list[ApprovalRequest]]:
    content = fields_of(value)
    if actions := [fields_of(action) for action in items_of(content.get("action_requests"))]:
        reviews = [fields_of(config) for config in items_of(content.get("review_configs"))]
        allowed = {str(review.get("action_name")): items_of(review.get("allowed_decisions")) for review in reviews}
        names = [allowed.get(str(action.get("name")), []) for action in actions]
        return "decisions", [_tool_request(*pair, agent_id, open_calls) for pair in zip(actions, names, strict=True)]
    if content.get("type") == "tool_approval" and "name" in content:
        request = _tool_request(content, _decision_types(response_schema), agent_id, open_calls)
        return "decision", [msgspec.structs.replace(request, args_schema=_args_schema(response_schema))]
    if inbox := inbox_requests(value):
        return "inbox", [_inbox_request(request, agent_id, open_calls) for request in inbox]
    question = question_of(value, response_schema)
    # Without a schema of the graph's own, the graph may expect True as well.
    takes_true = response_schema is None or not problem_with(True, question.answer_schema)
    request = ApprovalRequest(
        name="interrupt",
        args=shown_args(value),
        agent_id=agent_id,
        decisions=DECISIONS if takes_true else ("edit", "reject"),
        question=question.text,
        answer_schema=question.answer_schema,
    )
    return "value", [request]


def _inside(request: ApprovalRequest, inside: GraphCall | None) -> ApprovalRequest:
    """Return a request with the call whose task was interrupted, unless a request is already about that call."""
    if request.call is not None or inside is None or inside.asked:
        return request
    inside.asked = True
    return msgspec.structs.replace(request, agent_id=inside.agent_id, call=inside)


def _tool_request(
    action: dict[str, Any], allowed: Sequence[Any], agent_id: str, open_calls: Sequence[GraphCall]
) -> ApprovalRequest:
    """Convert an action of LangChain's middleware. If nothing is said to be allowed, all decisions are."""
    name, args = str(action.get("name") or "unknown"), args_value(action.get("args"))
    offered = [str(one) for one in allowed] or list(DECISIONS)
    return _request(
        (name, args),
        tuple(decision for decision in DECISIONS if decision in offered),
        "respond" in offered,
        _own_words(str(action.get("description") or "")),
        agent_id,
        _find_call(name, args, open_calls, str(action.get("tool_call_id") or "")),
    )


def _inbox_request(request: dict[str, Any], agent_id: str, open_calls: Sequence[GraphCall]) -> ApprovalRequest:
    """Convert a request of Agent Inbox. If its config allows nothing, it can be accepted or ignored."""
    action, config = fields_of(request["action_request"]), fields_of(request.get("config"))
    name, args = str(action.get("action") or "unknown"), args_value(action.get("args"))
    decisions: tuple[Decision, ...] = tuple(decision for key, decision in INBOX_DECISIONS.items() if config.get(key))
    responds = bool(config.get("allow_respond"))
    return _request(
        (name, args),
        decisions if decisions or responds else ("approve", "reject"),
        responds,
        str(request.get("description") or "").strip(),
        agent_id,
        _find_call(name, args, open_calls),
    )


def _request(
    action: tuple[str, dict[str, Any] | str],
    decisions: tuple[Decision, ...],
    responds: bool,
    question: str,
    agent_id: str,
    call: GraphCall | None,
) -> ApprovalRequest:
    """Return a request about an action. If a person may answer but not reject, a rejection is an answer."""
    name, args = action
    rejects_by_answer = responds and "reject" not in decisions
    return ApprovalRequest(
        name,
        args if isinstance(args, dict) else {"arguments": args},
        agent_id if call is None else call.agent_id,  # a branch may have made the call
        call,
        (*decisions, *(("reject",) if rejects_by_answer else ())) or DECISIONS,
        rejects_by_answer,
        question,
        TEXT if responds else None,
    )


def inbox_requests(value: Any) -> list[dict[str, Any]]:
    """Return the requests of Agent Inbox in a JSON value, which is one request or a list; [] if it has none."""
    requests = [fields_of(one) for one in (items_of(value) or [value])]
    is_inbox = all("action" in fields_of(request.get("action_request")) for request in requests)
    return requests if is_inbox else []


def _decision_types(schema: Any) -> list[str]:
    """Return the types of decisions in the response schema of LangChain's middleware, which has a branch for each."""
    root = fields_of(schema)
    if mapping := fields_of(fields_of(root.get("discriminator")).get("mapping")):
        return list(mapping)
    kind = fields_of(fields_of(root.get("properties")).get("type"))
    return [str(kind["const"])] if "const" in kind else [str(one) for one in items_of(kind.get("enum"))]


def _args_schema(schema: Any) -> dict[str, Any] | None:
    """Return the schema of the tool's arguments in the response schema of LangChain's middleware; None without one."""
    root = fields_of(schema)
    edit = fields_of(fields_of(root.get("discriminator")).get("mapping")).get("edit")
    found = root if edit is None else resolve({"$ref": edit}, root)
    for name in ("edited_action", "args"):
        found = resolve(fields_of(fields_of(found.get("properties")).get(name)), root)
    if not found.get("properties"):
        return None
    return {**found, **({"$defs": root["$defs"]} if "$ref" in json_text(found) and "$defs" in root else {})}


def _own_words(description: str) -> str:
    """Return a description without what LangChain's middleware adds: the name and the arguments of the call."""
    text = description.partition("\n\nTool: ")[0].strip()
    return "" if text == DEFAULT_DESCRIPTION else text


def restored_interrupt(raised: Interrupted, state: ResumeState, open_calls: Sequence[GraphCall]) -> Interrupt:
    """Convert an interrupt that LangGraph saved before a server restart to approval requests.

    Each request gets the agent and the tool call of the newest logged request with the same name and arguments.
    """
    interrupt = interrupt_of(raised, "", open_calls)
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
    return msgspec.structs.replace(interrupt, requests=tuple(requests))


def _find_call(name: str, args: Any, open_calls: Sequence[GraphCall], raw_id: str = "") -> GraphCall | None:
    """Find the open tool call that an approval request is about, and mark that an approval is pending for it.

    Without LangGraph's call id (`raw_id`), the call has the same name and arguments, or only the same name if the
    middleware has changed the arguments.
    """
    free = [call for call in open_calls if not call.asked]
    named = [call for call in free if raw_id and call.raw_id == raw_id] or [call for call in free if call.name == name]
    call = next((call for call in named if call.args == args), named[0] if named else None)
    if call is not None:
        call.asked = True
    return call


# Resuming


def resume_value(interrupt: Interrupt, approvals: Sequence[Approval]) -> Any:
    """Return the value with which the graph resumes after the decisions about an interrupt."""
    pairs = list(zip(interrupt.requests, approvals, strict=True))
    match interrupt.form:
        case "decisions":
            return {"decisions": [_decision(*pair) for pair in pairs]}
        case "decision":
            return _decision(*pairs[0])
        case "inbox":
            return [_inbox_response(*pair) for pair in pairs]
        case "value":
            return _value(approvals[0])


def _value(approval: Approval) -> Any:
    if approval.answered:
        return approval.answer
    match approval.decision:
        case "approve":
            return True
        case "reject":
            return False
        case "edit":
            return approval.args["value"] if approval.args.keys() == {"value"} else approval.args


def _decision(request: ApprovalRequest, approval: Approval) -> dict[str, Any]:
    """Return a decision as LangChain's middleware expects it."""
    if (answer := _answer(request, approval)) is not None:
        return {"type": "respond", "message": answer}
    match approval.decision:
        case "approve":
            return {"type": "approve"}
        case "edit":
            return {"type": "edit", "edited_action": {"name": request.name, "args": approval.args}}
        case "reject":
            _check_rejection(request, approval)
            return {"type": "reject", **({"message": approval.reason} if approval.reason else {})}


def _inbox_response(request: ApprovalRequest, approval: Approval) -> dict[str, Any]:
    """Return a response as graphs for Agent Inbox expect it."""
    if (answer := _answer(request, approval)) is not None:
        return {"type": "response", "args": answer}
    match approval.decision:
        case "approve":
            return {"type": "accept", "args": None}
        case "edit":
            return {"type": "edit", "args": {"action": request.name, "args": approval.args}}
        case "reject":
            _check_rejection(request, approval)
            return {"type": "ignore", "args": None}


def _answer(request: ApprovalRequest, approval: Approval) -> str | None:
    """Return the text that a person gives in place of the tool's result; None if the decision is another."""
    if approval.answered:
        return approval.answer if isinstance(approval.answer, str) else json_text(approval.answer)
    if approval.decision == "reject" and request.responds:
        return approval.reason or NO_ANSWER
    return None


def _check_rejection(request: ApprovalRequest, approval: Approval) -> None:
    """Raise AgentFailed if the graph accepts no rejection.

    An expired request is a rejection too, so this can happen although a person could not reject.
    """
    if "reject" not in request.decisions:
        raise AgentFailed(f"{request.name} was not approved ({approval.reason}), and this graph takes no rejection")


class Answered(msgspec.Struct, frozen=True):
    """A question of a task, the answer that it got, and how often in a row."""

    interrupt_id: str
    question: Any
    answer: Any
    times: int


class RepeatedQuestions:
    """Counts how often a task of a graph asks the same question and gets the same answer, so that it cannot continue.

    Two limits: an interrupt with the same id has ignored its answer, as a node does that raises `NodeInterrupt`. With
    another id, the node has read the answer and asks again, for example because it does not accept it.
    """

    def __init__(self) -> None:
        self._last: dict[str, Answered] = {}

    def check(self, interrupts: Iterable[Interrupt]) -> None:
        """Raise AgentFailed if one of these interrupts has been answered too often, always alike."""
        for interrupt in interrupts:
            last = self._last.get(interrupt.task_id)
            if last is None or last.question != _question_key(interrupt):
                continue
            node = f"the node {interrupt.node!r}" if interrupt.node else "a node"
            asked = f"{node} of this graph has asked the same question {last.times + 1} times"
            if last.interrupt_id == interrupt.interrupt_id and last.times >= MAX_IGNORED:
                raise AgentFailed(
                    f"{asked}, and ignores the answer. A node that raises NodeInterrupt gets no answer: use "
                    "langgraph.types.interrupt"
                )
            if last.times >= MAX_REPEATS:
                raise AgentFailed(f"{asked}, and got the same answer each time")

    def add(self, interrupt: Interrupt, answer: Any) -> None:
        if not interrupt.task_id:
            return
        question = _question_key(interrupt)
        last = self._last.get(interrupt.task_id)
        is_same = last is not None and (last.question, last.answer) == (question, answer)
        times = last.times + 1 if last is not None and is_same else 1
        self._last[interrupt.task_id] = Answered(interrupt.interrupt_id, question, answer, times)


def _question_key(interrupt: Interrupt) -> list[tuple[str, dict[str, Any]]]:
    return [(request.name, request.args) for request in interrupt.requests]
