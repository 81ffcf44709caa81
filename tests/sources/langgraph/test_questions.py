# pyright: reportDeprecated=false, reportArgumentType=false, reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
"""LangGraph: questions of each protocol, and the values with which graphs are resumed."""

import operator
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.errors import NodeInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

from limelight.events import AgentStarted, ApprovalRequested, ApprovalResolved, RunFailed, RunFinished
from tests.sources.langgraph.graphs import chain
from tests.sources.langgraph.langgraph_scenarios import TOOLS, answering, model, plain
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent, serve_agent
from tests.sources.test_suspended_runs import decide, requests, rest_of_stream, run_until_waiting

APPROVE = {"decision": "approve"}
REJECT = {"decision": "reject", "reason": "not now"}
TEXT = {"type": "string"}


class Asking(TypedDict):
    question: str
    answer: str


def asking(value: Any, **options: Any) -> Any:
    """A graph that interrupts itself with a value, and whose answer is the value that resumes it."""

    def ask(state: Asking) -> dict[str, str]:
        return {"answer": repr(interrupt(value, **options))}

    return chain(Asking, ask=ask).compile()


def respond(answer: Any) -> dict[str, Any]:
    return {"decision": "respond", "answer": answer}


def finished(run: FinishedRun) -> None:
    assert isinstance(run.terminal, RunFinished), run.terminal


# Free form


class Address(BaseModel):
    street: str
    number: int = 1


TOWNS = [{"label": "Lyon", "value": "lyo"}, {"label": "Paris", "value": "par", "description": "the capital"}]
FORM = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
OPTIONS_OF_TOWNS = [
    {"const": "lyo", "title": "Lyon"},
    {"const": "par", "title": "Paris", "description": "the capital"},
]


@pytest.mark.requirement("questions-in-their-form")
@pytest.mark.parametrize(
    ("value", "question", "schema", "answer"),
    [
        ("What is your name?", "What is your name?", {}, "Ada"),
        ({"question": "Name?", "draft": "x"}, "Name?", {}, "Ada"),
        ({"draft": "x"}, "", {}, {"draft": "y"}),
        (["a", "b"], "", {}, 42),
        ({"message": "Which?", "options": ["red", "blue"]}, "Which?", {"enum": ["red", "blue"]}, "blue"),
        ({"prompt": "Where?", "choices": TOWNS}, "Where?", {"oneOf": OPTIONS_OF_TOWNS}, "par"),
        ({"question": "Which?", "choices": {"a": "All", "n": "None"}}, "Which?", None, "n"),
        (
            {"question": "Which?", "options": ["red", "blue"], "multi_select": True},
            "Which?",
            {"type": "array", "items": {"enum": ["red", "blue"]}},
            ["red"],
        ),
        ({"question": "Who?", "schema": FORM}, "Who?", FORM, {"name": "Ada", "age": 36}),
        ({"message": "Who?", "requestedSchema": FORM}, "Who?", FORM, {"name": "Ada"}),
        ({**FORM, "title": "Who?"}, "Who?", {**FORM, "title": "Who?"}, {"name": "Ada"}),
        ({"title": "Who?", "fields": ["name", {"name": "age", "type": "int"}]}, "Who?", None, {"name": "A", "age": 3}),
    ],
)
async def test_answer_to_a_question_resumes_the_graph_unchanged(
    tmp_path: Path, value: Any, question: str, schema: Any, answer: Any
) -> None:
    run = await run_agent(lambda _: asking(value), "", tmp_path, decide=lambda _: respond(answer))
    finished(run)
    asked = run.one(ApprovalRequested)
    assert asked.question == question
    assert asked.decisions == ("approve", "edit", "reject")
    assert asked.answer_schema == schema or (schema is None and asked.answer_schema)
    resolved = run.one(ApprovalResolved)
    assert (resolved.decision, resolved.answered, resolved.args) == ("edit", True, {"value": answer})
    assert run.answer == repr(answer)


async def test_schema_given_to_interrupt_is_the_schema_of_the_answer(tmp_path: Path) -> None:
    def ask(state: Asking) -> dict[str, str]:
        return {"answer": interrupt("Where do you live?", response_schema=Address).street}

    graph = chain(Asking, ask=ask).compile()
    run = await run_agent(lambda _: graph, "", tmp_path, decide=lambda _: respond({"street": "Main Street"}))
    finished(run)
    asked = run.one(ApprovalRequested)
    assert asked.answer_schema is not None and asked.answer_schema["required"] == ["street"]
    assert asked.decisions == ("edit", "reject"), "True is not an address"
    assert run.answer == "Main Street"


async def test_yes_or_no_question_can_be_approved(tmp_path: Path) -> None:
    graph = asking("Really?", response_schema={"type": "boolean"})
    run = await run_agent(lambda _: graph, "", tmp_path, decide=lambda _: respond(answer=False))
    assert run.one(ApprovalRequested).decisions == ("approve", "edit", "reject")
    assert run.answer == "False"


async def test_answer_that_the_graph_refuses_fails_the_run_with_the_reason(tmp_path: Path) -> None:
    graph = asking("Where?", response_schema=Address)
    edit = {"decision": "edit", "args": {"street": 5}}
    run = await run_agent(lambda _: graph, "", tmp_path, decide=lambda _: edit)
    assert isinstance(run.terminal, RunFailed)
    assert "the answer does not fit what the graph asks for" in run.terminal.message


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"name": 5}, "name: expected a text"),
        ({"age": 3}, "name: 'name' is required"),
        ("Ada", "the answer: expected an object"),
        ({"name": "[redacted]"}, "hidden value"),
    ],
)
async def test_answer_that_does_not_fit_the_schema_is_refused(tmp_path: Path, answer: Any, problem: str) -> None:
    graph = asking({"question": "Who?", "schema": FORM})
    async with serve_agent(lambda _: graph, "", tmp_path) as server:
        before = await run_until_waiting(server, 1)
        (request,) = requests(before)
        run_id = before[0].data["run_id"]
        url = f"/runs/{run_id}/approvals/{request.approval_id}"
        refused = await server.served.http.post(url, json=respond(answer))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
        assert problem in refused.json()["detail"]
        assert (await server.served.http.post(url, json={"decision": "respond"})).status_code == 422
        view = (await server.served.http.get(url)).json()
        assert (view["question"], view["answer_schema"], view["answered"]) == ("Who?", FORM, False)
        await decide(server, run_id, request, respond({"name": "Ada"}))
        await rest_of_stream(server, run_id, before[-1].id)
        view = (await server.served.http.get(url)).json()
        assert (view["state"], view["answered"], view["edited_args"]) == ("edit", True, {"value": {"name": "Ada"}})


async def test_approval_without_a_question_takes_no_answer(tmp_path: Path) -> None:
    graph = asking({"action_requests": [{"name": "rm", "args": {}}], "review_configs": []})
    async with serve_agent(lambda _: graph, "", tmp_path) as server:
        before = await run_until_waiting(server, 1)
        url = f"/runs/{before[0].data['run_id']}/approvals/{requests(before)[0].approval_id}"
        refused = await server.served.http.post(url, json=respond("no"))
        assert refused.json()["code"] == "not_offered"


# Agent Inbox


def inbox(**allowed: bool) -> dict[str, Any]:
    config = {f"allow_{what}": allowed.get(what, False) for what in ("ignore", "respond", "edit", "accept")}
    return {
        "action_request": {"action": "send_mail", "args": {"to": "ann"}},
        "config": config,
        "description": "# A mail\nto Ann",
    }


ALL = {"ignore": True, "respond": True, "edit": True, "accept": True}


@pytest.mark.requirement("questions-in-their-form")
@pytest.mark.parametrize("in_list", [True, False], ids=["list", "one"])
@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (APPROVE, {"type": "accept", "args": None}),
        (REJECT, {"type": "ignore", "args": None}),
        (respond("Ask Bob."), {"type": "response", "args": "Ask Bob."}),
        (
            {"decision": "edit", "args": {"to": "bob"}},
            {"type": "edit", "args": {"action": "send_mail", "args": {"to": "bob"}}},
        ),
    ],
)
async def test_agent_inbox_gets_a_list_of_responses(
    tmp_path: Path, decision: dict[str, Any], expected: Any, in_list: bool
) -> None:
    value = [inbox(**ALL)] if in_list else inbox(**ALL)
    run = await run_agent(lambda _: asking(value), "", tmp_path, decide=lambda _: decision)
    finished(run)
    asked = run.one(ApprovalRequested)
    assert (asked.name, asked.args, asked.question) == ("send_mail", {"to": "ann"}, "# A mail\nto Ann")
    assert (asked.decisions, asked.answer_schema) == (("approve", "edit", "reject"), TEXT)
    assert run.answer == repr([expected])


@pytest.mark.parametrize(
    ("allowed", "decisions", "schema"),
    [
        ({"accept": True}, ("approve",), None),
        ({"edit": True}, ("edit",), None),
        ({"respond": True}, ("reject",), TEXT),
        ({"accept": True, "respond": True}, ("approve", "reject"), TEXT),
        ({"ignore": True, "respond": True}, ("reject",), TEXT),
        ({}, ("approve", "reject"), None),
    ],
)
async def test_agent_inbox_offers_what_its_config_allows(
    tmp_path: Path, allowed: dict[str, bool], decisions: tuple[str, ...], schema: Any
) -> None:
    async with serve_agent(lambda _: asking([inbox(**allowed)]), "", tmp_path) as server:
        (asked,) = requests(await run_until_waiting(server, 1))
    assert (asked.decisions, asked.answer_schema) == (decisions, schema)


async def test_rejection_is_the_response_where_agent_inbox_allows_only_responses(tmp_path: Path) -> None:
    run = await run_agent(lambda _: asking([inbox(respond=True)]), "", tmp_path, decide=lambda _: REJECT)
    assert run.answer == repr([{"type": "response", "args": "not now"}])


async def test_list_of_agent_inbox_requests_gets_a_response_each(tmp_path: Path) -> None:
    answers = iter((respond("first"), APPROVE))
    run = await run_agent(lambda _: asking([inbox(**ALL), inbox(**ALL)]), "", tmp_path, decide=lambda _: next(answers))
    assert run.answer == repr([{"type": "response", "args": "first"}, {"type": "accept", "args": None}])


async def test_agent_inbox_request_about_a_call_belongs_to_the_call(tmp_path: Path) -> None:
    """A tool that asks before it runs, as tools with a wrapper for Agent Inbox do."""

    @tool
    def send_mail(to: str) -> str:
        """Send a mail."""
        (response,) = interrupt([inbox(**ALL)])
        return f"{response['type']}: {response['args']}"

    run = await run_agent(
        lambda endpoint: create_agent(model(endpoint), [send_mail]),
        answering("- steps: [{tool_calls: [{name: send_mail, arguments: {to: ann}}]}]"),
        tmp_path,
        decide=lambda _: respond("Ask Bob."),
    )
    finished(run)
    call = run.call("send_mail")
    assert run.one(ApprovalRequested).call_id == call.call_id
    assert (call.args, call.result) == ({"to": "ann"}, "response: Ask Bob.")


# LangChain's middleware

DANGER = answering("- steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/x}}]}]")
TWO_CALLS = answering(
    "- steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/x}}, {name: danger, arguments: {path: /tmp/y}}]}]"
)
Allowed = Literal["approve", "edit", "reject", "respond"]


def guarded(*allowed: Allowed, mode: Literal["batched", "per_call"] = "batched", **config: Any) -> Any:
    def make(endpoint: ModelEndpoint) -> Any:
        middleware = HumanInTheLoopMiddleware(
            {"danger": {"allowed_decisions": list(allowed), **config}}, interrupt_mode=mode
        )
        return plain(endpoint, middleware=[middleware])

    return make


@pytest.mark.requirement("questions-in-their-form")
@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    ("decision", "result"),
    [
        (APPROVE, "/tmp/x is gone"),
        ({"decision": "edit", "args": {"path": "/tmp/z"}}, "/tmp/z is gone"),
        (respond("I did it myself"), "I did it myself"),
    ],
)
async def test_middleware_gets_each_kind_of_decision(tmp_path: Path, mode: Any, decision: Any, result: str) -> None:
    make = guarded("approve", "edit", "reject", "respond", mode=mode, description="Deletes a file.")
    run = await run_agent(make, DANGER, tmp_path, decide=lambda _: decision)
    finished(run)
    asked = run.one(ApprovalRequested)
    assert (asked.name, asked.args, asked.question) == ("danger", {"path": "/tmp/x"}, "Deletes a file.")
    assert (asked.decisions, asked.answer_schema) == (("approve", "edit", "reject"), TEXT)
    assert result in run.call("danger").result and run.call("danger").error is None


@pytest.mark.parametrize("allowed", [("approve", "edit"), ("edit",), ("approve", "reject")])
async def test_schema_of_the_arguments_is_known_if_the_middleware_asks_per_call(
    tmp_path: Path, allowed: tuple[Allowed, ...]
) -> None:
    edit = {"decision": "edit", "args": {"path": "/tmp/z"}}
    decide = edit if "edit" in allowed else APPROVE
    run = await run_agent(guarded(*allowed, mode="per_call"), DANGER, tmp_path, decide=lambda _: decide)
    schema = run.one(ApprovalRequested).args_schema
    if "edit" in allowed:
        assert schema is not None and list(schema["properties"]) == ["path"] and schema["required"] == ["path"]
    else:
        assert schema is None


async def test_middleware_that_asks_per_call_gets_a_decision_for_each(tmp_path: Path) -> None:
    def choose(asked: ApprovalRequested) -> dict[str, Any]:
        return APPROVE if asked.args == {"path": "/tmp/x"} else REJECT

    run = await run_agent(guarded("approve", "reject", mode="per_call"), TWO_CALLS, tmp_path, decide=choose)
    finished(run)
    calls = {call.args["path"]: call for call in (run.call("danger", 0), run.call("danger", 1))}
    assert {asked.call_id for asked in run.all(ApprovalRequested)} == {call.call_id for call in calls.values()}
    assert all(asked.decisions == ("approve", "reject") for asked in run.all(ApprovalRequested))
    assert calls["/tmp/x"].result == "/tmp/x is gone"
    assert "not now" in (calls["/tmp/y"].error or "")


async def test_default_description_of_the_middleware_is_not_a_question(tmp_path: Path) -> None:
    run = await run_agent(guarded("approve"), DANGER, tmp_path, decide=lambda _: APPROVE)
    assert run.one(ApprovalRequested).question == ""


async def test_edit_only_question_expires(tmp_path: Path) -> None:
    async with serve_agent(guarded("edit"), DANGER, tmp_path, approvals__expiry_seconds=0.2) as server:
        run = await server.run()
    assert run.one(ApprovalRequested).decisions == ("edit",)
    assert isinstance(run.terminal, RunFailed)
    assert "danger was not approved (expired)" in run.terminal.message


# The same question again


def raising(value: Any) -> Any:
    def check(state: Asking) -> dict[str, str]:
        raise NodeInterrupt(value)

    return chain(Asking, check=check).compile()


@pytest.mark.filterwarnings("ignore:NodeInterrupt is deprecated")
async def test_node_that_ignores_its_answer_fails_the_run_after_three(tmp_path: Path) -> None:
    run = await run_agent(lambda _: raising("The input is too long"), "", tmp_path, decide=lambda _: APPROVE)
    assert len(run.all(ApprovalRequested)) == 3
    assert isinstance(run.terminal, RunFailed)
    assert "the node 'check' of this graph has asked the same question 4 times" in run.terminal.message
    assert "NodeInterrupt" in run.terminal.message


@pytest.mark.filterwarnings("ignore:NodeInterrupt is deprecated")
async def test_node_interrupts_of_parallel_branches_end_too(tmp_path: Path) -> None:
    def first(state: Asking) -> dict[str, str]:
        raise NodeInterrupt("one")

    def second(state: Asking) -> dict[str, str]:
        raise NodeInterrupt("two")

    builder = StateGraph(Asking)
    for name, node in {"first": first, "second": second}.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    run = await run_agent(lambda _: builder.compile(), "", tmp_path, decide=lambda _: APPROVE)
    assert {str(asked.args) for asked in run.all(ApprovalRequested)} == {"{'value': 'one'}", "{'value': 'two'}"}
    assert isinstance(run.terminal, RunFailed)
    assert "asked the same question 4 times" in run.terminal.message


async def test_node_that_never_accepts_the_answer_fails_the_run(tmp_path: Path) -> None:
    def ask(state: Asking) -> dict[str, str]:
        while not isinstance(age := interrupt("How old are you?"), int) or isinstance(age, bool):
            pass
        return {"answer": str(age)}

    run = await run_agent(lambda _: chain(Asking, ask=ask).compile(), "", tmp_path, decide=lambda _: APPROVE)
    assert len(run.all(ApprovalRequested)) == 20
    assert isinstance(run.terminal, RunFailed)
    assert "the node 'ask'" in run.terminal.message


async def test_run_whose_question_repeats_continues_when_an_answer_is_accepted(tmp_path: Path) -> None:
    def ask(state: Asking) -> dict[str, str]:
        while not isinstance(age := interrupt("How old are you?"), int):
            pass
        return {"answer": str(age)}

    answers = iter([*(respond(f"try {n}") for n in range(5)), respond(42)])
    run = await run_agent(lambda _: chain(Asking, ask=ask).compile(), "", tmp_path, decide=lambda _: next(answers))
    finished(run)
    assert run.answer == "42"


class Counting(TypedDict):
    question: str
    count: int
    answer: str


async def test_same_question_of_a_loop_in_the_graph_is_not_limited(tmp_path: Path) -> None:
    """Each round is a task of its own, so the graph has made progress with each answer."""

    def ask(state: Counting) -> dict[str, Any]:
        assert interrupt("Continue?") is True
        return {"count": state.get("count", 0) + 1, "answer": f"{state.get('count', 0) + 1} rounds"}

    builder = StateGraph(Counting)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: END if state["count"] == 6 else "ask", ["ask", END])
    run = await run_agent(lambda _: builder.compile(), "", tmp_path, decide=lambda _: APPROVE)
    finished(run)
    assert run.answer == "6 rounds"


# Parallel branches, and restarts


class Branches(TypedDict):
    messages: Annotated[list[Any], operator.add]


def branches() -> Any:
    """Two branches that ask at once, and a node that joins their answers."""
    builder = StateGraph(Branches)
    for name in ("name", "town"):

        def ask(state: Branches, name: str = name) -> dict[str, Any]:
            return {
                "messages": [
                    (
                        "assistant",
                        f"{name}={interrupt({'question': f'Your {name}?', 'options': [f'{name} 1', f'{name} 2']})}",
                    )
                ]
            }

        builder.add_node(name, ask)
        builder.add_edge(START, name)

    def join(state: Branches) -> dict[str, Any]:
        texts = [message[1] for message in state["messages"] if isinstance(message, tuple)]
        return {"messages": [AIMessage(", ".join(sorted(texts)))]}

    builder.add_node("join", join)
    builder.add_edge(["name", "town"], "join")
    return builder.compile()


def choose_second(asked: ApprovalRequested) -> dict[str, Any]:
    assert asked.answer_schema is not None
    return respond(asked.answer_schema["enum"][1])


@pytest.mark.requirement("questions-in-their-form")
async def test_parallel_branches_get_their_own_answers(tmp_path: Path) -> None:
    run = await run_agent(lambda _: branches(), "", tmp_path, decide=choose_second)
    finished(run)
    assert run.answer == "name=name 2, town=town 2"
    branch_of = {agent.agent_id: agent.name for agent in run.all(AgentStarted, branch=True)}
    asked = {branch_of[request.agent_id]: request.question for request in run.all(ApprovalRequested)}
    assert asked == {"name": "Your name?", "town": "Your town?"}


@pytest.mark.requirement("waiting-run-survives-restart")
async def test_answers_before_and_after_a_restart_reach_their_branches(tmp_path: Path) -> None:
    async with serve_agent(lambda _: branches(), "", tmp_path) as server:
        before = await run_until_waiting(server, 2)
        run_id = before[0].data["run_id"]
        first, second = requests(before)
        await decide(server, run_id, first, choose_second(first))
    async with serve_agent(lambda _: branches(), "", tmp_path) as server:
        await decide(server, run_id, second, choose_second(second))
        after = await rest_of_stream(server, run_id, before[-1].id)
    run = FinishedRun([*_records(before), *_records(after)])
    finished(run)
    assert run.answer == "name=name 2, town=town 2"


def _records(frames: list[Any]) -> list[Any]:
    from tests.sources.live_turn import record_of

    return [record_of(frame) for frame in frames]


@pytest.mark.requirement("waiting-run-survives-restart")
@pytest.mark.parametrize(
    ("value", "decision", "expected"),
    [
        ([inbox(**ALL)], respond("Ask Bob."), [{"type": "response", "args": "Ask Bob."}]),
        ({"question": "Who?", "schema": FORM}, respond({"name": "Ada"}), {"name": "Ada"}),
    ],
)
async def test_question_is_answered_in_its_form_after_a_restart(
    tmp_path: Path, value: Any, decision: Any, expected: Any
) -> None:
    async with serve_agent(lambda _: asking(value), "", tmp_path) as server:
        before = await run_until_waiting(server, 1)
    async with serve_agent(lambda _: asking(value), "", tmp_path) as server:
        run_id = before[0].data["run_id"]
        await decide(server, run_id, requests(before)[0], decision)
        after = await rest_of_stream(server, run_id, before[-1].id)
    assert FinishedRun(_records(after)).answer == repr(expected)


async def test_deepagents_question_has_the_form_of_the_middleware(tmp_path: Path) -> None:
    from deepagents import create_deep_agent

    def make(endpoint: ModelEndpoint) -> Any:
        return create_deep_agent(model=model(endpoint), tools=TOOLS, interrupt_on={"danger": True})

    run = await run_agent(make, DANGER, tmp_path, decide=lambda _: respond("It is gone already."))
    finished(run)
    assert run.one(ApprovalRequested).answer_schema == TEXT
    assert run.call("danger").result == "It is gone already."
