"""Agno: approvals for agents and members, and for every kind of pause."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

from pathlib import Path
from typing import Any

import pytest
from agno.tools import tool
from agno.tools.user_control_flow import UserControlFlowTools

from limelight.events import AgentFinished, ApprovalRequested
from tests.sources.agno.agno_scenarios import HELPER, answering, calling, delegating, plain, team, team_in_team
from tests.sources.conformance import ANSWER
from tests.sources.live_turn import run_agent
from tests.sources.recorded_requests import Requests, conversation_in

pytestmark = pytest.mark.usefixtures("agno_models")


async def test_siblings_of_a_call_that_waits_run_first(tmp_path: Path) -> None:
    calls = "{name: danger, arguments: {path: /tmp/x}}, {name: add, arguments: {a: 2, b: 3}}"
    script = answering(f"- steps: [{{tool_calls: [{calls}]}}]", calling("danger", "{path: /tmp/z}"))
    run = await run_agent(plain, script, tmp_path, decide=lambda _: {"decision": "approve"})
    assert run.call("add").ended_at < run.at(run.all(ApprovalRequested)[0])
    assert [run.call("danger", n).result for n in range(2)] == ["/tmp/x is gone", "/tmp/z is gone"]
    assert run.answer == ANSWER


def told_by(member: str, text: str) -> str:
    """What Agno gives a leader as the result of a delegation to a member that has waited for a person."""
    return f"Member results after human-in-the-loop resolution:\n[{member}]: {text}"


async def test_edited_call_of_a_member_runs_with_the_edited_arguments(tmp_path: Path) -> None:
    run = await run_agent(
        team,
        HELPER % ("danger", "{path: /tmp/x}"),
        tmp_path,
        decide=lambda _: {"decision": "edit", "args": {"path": "/tmp/y"}},
    )
    assert run.call("danger").result == "/tmp/y is gone"
    assert run.call("delegate_task_to_member").result == told_by("helper", "The sum is five.")


async def test_rejection_of_a_members_call_is_passed_to_the_member(tmp_path: Path, requests: Requests) -> None:
    run = await run_agent(
        team,
        HELPER % ("danger", "{path: /tmp/x}"),
        tmp_path,
        decide=lambda _: {"decision": "reject", "reason": "not today"},
    )
    assert run.call("danger").error == "rejected: not today"
    assert run.one(AgentFinished).error is None
    assert any("not today" in str(message["content"]) for r in requests for message in r["messages"])


@tool(requires_user_input=True, user_input_fields=["to"])
def mail(subject: str, to: str) -> str:
    """Send a mail."""
    return f"{subject} to {to}"


@tool(external_execution=True)
def elsewhere(command: str) -> str:
    """Run a command on another machine."""
    raise AssertionError("it is executed elsewhere")


async def test_user_input_is_given_by_an_edit(tmp_path: Path) -> None:
    script = answering(calling("mail", "{subject: Bees}"))
    run = await run_agent(
        lambda endpoint: plain(endpoint, tools=[mail]),
        script,
        tmp_path,
        decide=lambda _: {"decision": "edit", "args": {"subject": "Bees", "to": "Ada"}},
    )
    asked = run.one(ApprovalRequested)
    assert (asked.args, asked.decisions) == ({"subject": "Bees", "to": ""}, ("edit", "reject"))
    assert run.call("mail").result == "Bees to Ada"


async def test_result_of_an_external_execution_is_given_by_an_edit(tmp_path: Path, requests: Requests) -> None:
    script = answering(calling("elsewhere", "{command: ls}"))
    run = await run_agent(
        lambda endpoint: plain(endpoint, tools=[elsewhere]),
        script,
        tmp_path,
        decide=lambda _: {"decision": "edit", "args": {"result": "two files"}},
    )
    assert run.one(ApprovalRequested).args == {"command": "ls", "result": ""}
    assert run.call("elsewhere").result == "two files"
    assert conversation_in(requests[-1])[-1] == ("tool", "two files")
    assert run.answer == ANSWER


@pytest.mark.parametrize(("asking", "args"), [(mail, "{subject: Bees}"), (elsewhere, "{command: ls}")])
async def test_every_kind_of_requirement_can_be_rejected(
    asking: Any, args: str, tmp_path: Path, requests: Requests
) -> None:
    script = answering(calling(asking.name, args))
    run = await run_agent(
        lambda endpoint: plain(endpoint, tools=[asking]),
        script,
        tmp_path,
        decide=lambda _: {"decision": "reject", "reason": "not today"},
    )
    assert run.call(asking.name).error == "rejected: not today"
    assert "not today" in conversation_in(requests[-1])[-1][1]
    assert run.answer == ANSWER


async def test_nested_teams_wait_for_an_approval_of_the_innermost_member(tmp_path: Path) -> None:
    script = f"""
- match: "help:"
  turns:
    - steps: [{{tool_calls: [{{name: danger, arguments: {{path: /tmp/x}}}}]}}]
    - steps: [{{text: It is removed.}}]
- match: "inner:"
  turns:
    - steps: [{{tool_calls: [{delegating("helper", "help: now")}]}}]
    - steps: [{{text: Inner done.}}]
- turns:
    - steps: [{{tool_calls: [{delegating("inner", "inner: go")}]}}]
    - steps: [{{text: All done.}}]
"""
    run = await run_agent(team_in_team, script, tmp_path, decide=lambda _: {"decision": "approve"})
    inner, helper = run.agent("inner"), run.agent("helper")
    assert (inner.parent_id, helper.parent_id) == ("", inner.agent_id)
    outer_call, inner_call = run.call("delegate_task_to_member", 0), run.call("delegate_task_to_member", 1)
    assert (inner.call_id, helper.call_id) == (outer_call.call_id, inner_call.call_id)
    assert inner_call.result == told_by("helper", "It is removed.")
    assert outer_call.result == told_by("inner", "Inner done.")
    assert run.one(ApprovalRequested).agent_id == helper.agent_id
    assert run.answer == ANSWER


FORM = "{name: get_user_input, arguments: {user_input_fields: %s}}"


@pytest.mark.parametrize(
    ("fields", "shown", "given", "told"),
    [
        (
            "[{field_name: city, field_type: str}]",
            {"city": ""},
            {"city": "Rome"},
            '[{"name": "city", "value": "Rome"}]',
        ),
        ("[{}]", {"input": ""}, {"input": "Rome"}, '[{"name": "input", "value": "Rome"}]'),
        (
            "[{field_description: Where to}, {field_name: input}, {field_name: ''}]",
            {"input-2": "", "input": "", "input-3": ""},
            {"input-2": "Rome", "input": "a", "input-3": "b"},
            '[{"name": "input-2", "value": "Rome"}, {"name": "input", "value": "a"}, '
            '{"name": "input-3", "value": "b"}]',
        ),
    ],
)
async def test_fields_of_a_form_have_names_also_if_the_model_gives_none(
    fields: str, shown: Any, given: Any, told: str, tmp_path: Path, requests: Requests
) -> None:
    script = answering(f"- steps: [{{tool_calls: [{FORM % fields}]}}]")
    run = await run_agent(
        lambda endpoint: plain(endpoint, tools=[UserControlFlowTools()]),
        script,
        tmp_path,
        decide=lambda _: {"decision": "edit", "args": given},
    )
    assert run.one(ApprovalRequested).args == shown
    assert run.call("get_user_input").result == given
    assert conversation_in(requests[-1])[-1] == ("tool", f"User inputs retrieved: {told}")
    assert run.answer == ANSWER


async def test_form_without_fields_is_answered_by_agno_itself(tmp_path: Path) -> None:
    script = answering(f"- steps: [{{tool_calls: [{FORM % '[]'}]}}]")
    run = await run_agent(lambda endpoint: plain(endpoint, tools=[UserControlFlowTools()]), script, tmp_path)
    assert run.all(ApprovalRequested) == []
    assert run.call("get_user_input").result == "User input received" and run.answer == ANSWER
