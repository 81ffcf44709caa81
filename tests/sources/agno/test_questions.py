"""Agno: user input, feedback and external execution are questions with a form."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

from pathlib import Path
from typing import Any, Literal

import pytest
from agno.tools import tool
from agno.tools.user_control_flow import UserControlFlowTools
from agno.tools.user_feedback import UserFeedbackTools

from limelight.events import ApprovalRequested, ApprovalResolved, RunFinished
from tests.sources.agno.agno_scenarios import answering, calling, plain
from tests.sources.conformance import ANSWER
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.sources.test_suspended_runs import decide, requests, rest_of_stream, run_until_waiting

pytestmark = pytest.mark.usefixtures("agno_models")


def respond(answer: Any) -> dict[str, Any]:
    return {"decision": "respond", "answer": answer}


@tool(requires_user_input=True, user_input_fields=["to", "copies", "urgent", "kind"])
def mail(subject: str, to: str, copies: int, urgent: bool, kind: Literal["letter", "card"]) -> str:
    """Send a mail."""
    return f"{subject} to {to}: {copies} {kind}, {urgent}"


@tool(external_execution=True)
def elsewhere(command: str) -> str:
    """Run a command on another machine."""
    raise AssertionError("it is executed elsewhere")


def with_tools(*tools: Any) -> Any:
    def make(endpoint: ModelEndpoint) -> Any:
        return plain(endpoint, tools=list(tools))

    return make


MAIL = answering(calling("mail", "{subject: Bees}"))
VALUES = {"to": "Ada", "copies": 2, "urgent": True, "kind": "card"}


@pytest.mark.requirement("questions-in-their-form")
async def test_user_input_is_a_form_of_its_fields(tmp_path: Path) -> None:
    run = await run_agent(with_tools(mail), MAIL, tmp_path, decide=lambda _: respond(VALUES))
    asked = run.one(ApprovalRequested)
    schema = asked.answer_schema
    assert schema is not None and schema["required"] == ["to", "copies", "urgent", "kind"]
    types = {name: one.get("type", one.get("enum")) for name, one in schema["properties"].items()}
    assert types.pop("subject") == "string", "the model has filled it in"
    assert schema["properties"]["subject"]["default"] == "Bees"
    assert types == {"to": "string", "copies": "integer", "urgent": "boolean", "kind": ["letter", "card"]}
    assert asked.decisions == ("edit", "reject")
    assert run.one(ApprovalResolved).answered
    assert run.call("mail").result == "Bees to Ada: 2 card, True"
    assert run.answer == ANSWER


async def test_input_that_does_not_fit_its_field_is_refused(tmp_path: Path) -> None:
    async with serve_agent(with_tools(mail), MAIL, tmp_path) as server:
        before = await run_until_waiting(server, 1)
        url = f"/runs/{before[0].data['run_id']}/approvals/{requests(before)[0].approval_id}"
        refused = await server.served.http.post(url, json=respond({**VALUES, "copies": "two"}))
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("copies: expected a whole number")


FIELDS = "[{field_name: town, field_type: str, field_description: 'Where?'}, {field_name: people, field_type: int}]"


@pytest.mark.parametrize(
    ("fields", "names", "answer"),
    [
        (FIELDS, ["town", "people"], {"town": "Lyon", "people": 2}),
        ("[{}, {field_type: int}]", ["input", "input-2"], {"input": "Lyon", "input-2": 2}),
    ],
    ids=["named", "without names"],
)
async def test_fields_of_get_user_input_reach_the_model_by_their_names(
    tmp_path: Path, fields: str, names: list[str], answer: dict[str, Any], requests: Requests
) -> None:
    script = answering(calling("get_user_input", f"{{user_input_fields: {fields}}}"))
    run = await run_agent(with_tools(UserControlFlowTools()), script, tmp_path, decide=lambda _: respond(answer))
    schema = run.one(ApprovalRequested).answer_schema
    assert schema is not None and list(schema["properties"]) == names
    assert run.call("get_user_input").result == answer
    last = conversation_in(requests[-1])[-1][1]
    assert all(f'"name": "{name}"' in last for name in names) and "Lyon" in last


def feedback(several: str) -> str:
    options = "[{label: Red, description: like a rose}, {label: Blue}]"
    asked = (
        f"{{questions: [{{question: 'Which colour?', header: Colour, options: {options}, multi_select: {several}}}]}}"
    )
    return answering(calling("ask_user", asked))


@pytest.mark.requirement("questions-in-their-form")
@pytest.mark.parametrize(("several", "answer"), [("false", "Blue"), ("true", ["Red", "Blue"])])
async def test_feedback_is_a_choice_among_its_options(
    tmp_path: Path, several: str, answer: Any, requests: Requests
) -> None:
    run = await run_agent(
        with_tools(UserFeedbackTools()),
        feedback(several),
        tmp_path,
        decide=lambda _: respond({"Which colour?": answer}),
    )
    asked = run.one(ApprovalRequested)
    assert asked.question == "Which colour?"
    assert asked.answer_schema is not None
    choice = asked.answer_schema["properties"]["Which colour?"]
    listed = choice["items"] if several == "true" else choice
    assert listed["oneOf"] == [{"const": "Red", "description": "like a rose"}, {"const": "Blue"}]
    assert isinstance(run.terminal, RunFinished)
    assert "Blue" in conversation_in(requests[-1])[-1][1]


async def test_answer_is_the_result_of_an_external_execution(tmp_path: Path, requests: Requests) -> None:
    script = answering(calling("elsewhere", "{command: ls}"))
    run = await run_agent(with_tools(elsewhere), script, tmp_path, decide=lambda _: respond("two files"))
    assert (run.one(ApprovalRequested).question, run.one(ApprovalRequested).answer_schema) == (
        "What is the result of elsewhere?",
        {},
    )
    assert run.call("elsewhere").result == "two files"
    assert conversation_in(requests[-1])[-1] == ("tool", "two files")


async def test_form_is_answered_after_a_restart(tmp_path: Path) -> None:
    async with serve_agent(with_tools(mail), MAIL, tmp_path) as server:
        before = await run_until_waiting(server, 1)
    async with serve_agent(with_tools(mail), MAIL, tmp_path) as server:
        run_id = before[0].data["run_id"]
        await decide(server, run_id, requests(before)[0], respond(VALUES))
        after = await rest_of_stream(server, run_id, before[-1].id)
    from tests.sources.live_turn import record_of

    run = FinishedRun([record_of(frame) for frame in (*before, *after)])
    assert run.call("mail").result == "Bees to Ada: 2 card, True"
