"""Approvals of a real server: dialogs in the chat, decisions there or elsewhere, and long arguments."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.sources.base import Context
from tests.cli.conftest import twice
from tests.openwebui.chat import Chat, Output
from tests.openwebui.dialog_user import DISCONNECTED, DialogUser, option_answer, text_answer
from tests.openwebui.function_rules import Json, pipe_module
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import DEADLINE, eventually


@pytest.fixture
async def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    monkeypatch.setattr(pipe_module(), "REPEAT_SECONDS", 0.02)
    async with serving(agents.asker, twice, data=tmp_path) as served:
        yield served


async def chat_output(served: Served, user: DialogUser, text: str = "go", **options: Any) -> Output:
    return await asyncio.wait_for(Chat(served.url, ask=user.answer, **options).send(text), DEADLINE)


async def open_approvals(served: Served) -> tuple[str, list[Json]]:
    run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
    return run_id, (await served.http.get(f"/runs/{run_id}")).json()["approvals"]


async def decide(served: Served, **decision: Any) -> None:
    run_id, approvals = await open_approvals(served)
    path = f"/runs/{run_id}/approvals/{approvals[0]['approval_id']}"
    assert (await served.http.post(path, json=decision)).status_code == 200


async def test_approve_runs_the_tool_and_updates_the_status(asking: Served) -> None:
    user = DialogUser(option_answer("approve"))
    output = await chat_output(asking, user)
    assert output.rows == {"delete": "deleted /tmp/x"}
    assert "decision: approve" in output.text
    assert output.statuses[-3:] == ["⏸ delete is waiting for approval", "🔧 delete...", "Complete"]
    (question,) = user.questions
    assert question["question"].startswith("May delete run with {")
    assert '"path": "/tmp/x"' in question["question"]
    assert [option["label"] for option in question["options"]] == ["Approve", "Edit", "Reject"]


async def test_edit_repeats_the_editor_until_the_arguments_are_a_json_object(asking: Served) -> None:
    user = DialogUser(option_answer("edit"), '{"path": ', '["/tmp/y"]', '{"path": "/tmp/y"}')
    output = await chat_output(asking, user)
    assert output.rows == {"delete": "deleted /tmp/y"}
    assert output.items_of_type("function_call")[0]["arguments"] == '{"path": "/tmp/y"}'
    first, second, third = user.inputs
    assert '"path": "/tmp/x"' in first["value"]
    assert "not valid JSON" in second["message"]
    assert second["value"] == '{"path": '
    assert "JSON object" in third["message"]


@pytest.mark.parametrize(("closed", "answered"), [(False, True), (DISCONNECTED, False)])
async def test_closed_editor_shows_the_card_again(asking: Served, closed: Any, answered: bool) -> None:
    """At once if the user closed it, because looking at the arguments is an answer; later if the tab is gone."""
    user = DialogUser(option_answer("edit"), closed, option_answer("approve"))
    output = await chat_output(asking, user)
    assert output.rows == {"delete": "deleted /tmp/x"}
    assert len(user.questions) == 2
    assert any("limelight approve" in line for line in output.statuses) is not answered


async def test_rejected_call_is_marked_as_rejected(asking: Served) -> None:
    output = await chat_output(asking, DialogUser(option_answer("reject")))
    assert output.statuses[-3:-1] == ["⏸ delete is waiting for approval", "🚫 delete was rejected"]
    assert output.rows["delete · rejected"].startswith("Error: ")
    assert output.items_of_type("function_call")[0]["status"] == "completed"


async def test_text_under_other_is_a_rejection_with_a_reason(asking: Served) -> None:
    assert (await chat_output(asking, DialogUser(text_answer("not on a Sunday")))).rows == {
        "delete · rejected": "Error: not on a Sunday"
    }


@pytest.mark.parametrize("no_answer", [DISCONNECTED, {"status": "cancelled", "answers": {}}, None])
async def test_row_without_an_answer_has_the_command_to_decide(asking: Served, no_answer: Any) -> None:
    user = DialogUser(no_answer, no_answer, no_answer)
    output, task = Chat(asking.url, ask=user.answer).start("go")
    await eventually(lambda: len(user.questions) == 4)
    run_id, _ = await open_approvals(asking)
    instruction = f"waiting for approval: answer here, or run `limelight approve {run_id}`"
    await eventually(
        lambda: f"delete · {instruction}" in [item["name"] for item in output.items_of_type("function_call")]
    )
    assert output.statuses.count(f"⏸ delete · {instruction}") == 1
    await decide(asking, decision="approve")
    await asyncio.wait_for(task, DEADLINE)
    assert output.rows == {"delete": "deleted /tmp/x"}


async def test_chat_without_dialogs_waits_for_a_decision_from_elsewhere(asking: Served) -> None:
    output, task = Chat(asking.url).start("go")
    await eventually(lambda: any("limelight approve" in line for line in output.statuses))
    await decide(asking, decision="reject", reason="no")
    await asyncio.wait_for(task, DEADLINE)
    assert output.rows == {"delete · rejected": "Error: no"}


async def test_decision_from_elsewhere_closes_the_dialog(asking: Served) -> None:
    user = DialogUser()
    output, task = Chat(asking.url, ask=user.answer).start("go")
    await eventually(lambda: user.events)
    await decide(asking, decision="approve")
    await asyncio.wait_for(task, DEADLINE)
    assert user.closed == user.events
    assert output.rows == {"delete": "deleted /tmp/x"}


async def test_two_approvals_are_asked_one_after_the_other(asking: Served) -> None:
    user = DialogUser(option_answer("approve"), text_answer("not yet"))
    output = await chat_output(asking, user, model="twice")
    assert user.max_open == 1
    assert [question["question"].split()[1] for question in user.questions] == ["send_mail", "publish"]
    assert [option["label"] for option in user.questions[1]["options"]] == ["Approve", "Reject"]
    assert "mail: approve to ann, publish: reject, not yet" in output.text


async def test_failing_dialog_is_shown_again(asking: Served) -> None:
    user = DialogUser(option_answer("approve"))
    calls: list[Json] = []

    async def answer(event: Json) -> Any:
        calls.append(event)
        if len(calls) < 3:
            raise TimeoutError("the tab is gone")
        return await user.answer(event)

    output = await asyncio.wait_for(Chat(asking.url, ask=answer).send("go"), DEADLINE)
    assert output.rows == {"delete": "deleted /tmp/x"}


class StatusRecorder:
    """A status line that gets only frames of approvals."""

    def __init__(self, *, subagents: bool = True) -> None:
        self._status = pipe_module().StatusLine(pipe_module().DisplayOptions("native", True, subagents))

    def feed(self, frame_type: str, name: str, **data: Any) -> list[str]:
        frame = pipe_module().Frame(frame_type, {"approval_id": name, "name": name, **data})
        return [event["data"]["description"] for event in self._status.feed(frame)]


def test_status_after_a_decision_names_another_open_approval() -> None:
    status = StatusRecorder()
    status.feed("approval", "mail", state="requested")
    status.feed("approval", "publish", state="requested")
    assert status.feed("approval", "publish", state="approve") == ["⏸ mail is waiting for approval"]
    assert status.feed("approval", "mail", state="edit", agent_depth=1) == ["↳ 🔧 mail..."]


def test_status_ignores_the_instruction_of_a_decided_approval() -> None:
    status = StatusRecorder()
    status.feed("approval", "mail", state="requested")
    assert status.feed("approval", "mail", state="reject") == ["🚫 mail was rejected"]
    assert status.feed("_unanswered", "mail", instruction="here") == []


def test_status_of_hidden_sub_agents_has_only_the_instruction() -> None:
    status = StatusRecorder(subagents=False)
    assert status.feed("approval", "mail", state="requested", agent_depth=1) == []
    assert status.feed("_unanswered", "mail", instruction="here") == ["⏸ mail · here"]
    assert status.feed("approval", "mail", state="approve", agent_depth=1) == ["↳ 🔧 mail..."]
    status.feed("approval", "publish", state="requested", agent_depth=1)
    assert status.feed("approval", "publish", state="approve", agent_depth=1) == []


# Long arguments: a user must not approve arguments without seeing them

END = "and drop everything"
LENGTHS = {"card": 1000, "long": 5000, "longer": 60_000, "huge": 1_100_000}


def long_args_of(length: str) -> Json:
    return {"text": "x" * LENGTHS[length], "then": END}


async def request_approval(ctx: Context, length: str, *decisions: Any) -> AsyncIterator[AnyEvent]:
    yield ToolStarted(call_id="c", name="run", args=long_args_of(length))
    approval = await ctx.approve("run", long_args_of(length), call_id="c", decisions=decisions)
    yield ToolFinished(
        call_id="c", result=f"{approval.decision}, {len(approval.args['text'])}, {approval.args['then']}"
    )


async def editable(messages: Any, ctx: Context) -> AsyncIterator[AnyEvent]:
    async for event in request_approval(ctx, messages[-1]["content"], "approve", "edit", "reject"):
        yield event


async def fixed(messages: Any, ctx: Context) -> AsyncIterator[AnyEvent]:
    async for event in request_approval(ctx, messages[-1]["content"], "approve", "reject"):
        yield event


@pytest.fixture
async def long_args(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    monkeypatch.setattr(pipe_module(), "REPEAT_SECONDS", 0.02)
    async with serving(editable, fixed, data=tmp_path) as served:
        yield served


async def test_card_shows_short_arguments_completely(long_args: Served) -> None:
    user = DialogUser(option_answer("approve"))
    await chat_output(long_args, user, "card")
    assert user.questions[0]["question"] == f"May run run with {json.dumps(long_args_of('card'))}?"


@pytest.mark.parametrize("length", ["long", "longer"])
async def test_long_arguments_are_complete_in_the_editor(long_args: Served, length: str) -> None:
    changed = json.dumps({**long_args_of(length), "then": "stop"})
    user = DialogUser(option_answer("edit"), changed)
    output = await chat_output(long_args, user, length)
    more = len(json.dumps(long_args_of(length))) - 1500
    assert user.questions[0]["question"].endswith(f" … ({more:,} more characters: choose Edit to see all)?")
    assert json.loads(user.inputs[0]["value"]) == long_args_of(length)
    assert output.rows == {"run": f"edit, {LENGTHS[length]}, stop"}
    assert json.loads(output.items_of_type("function_call")[0]["arguments"]) == json.loads(changed)


@pytest.mark.parametrize("length", ["long", "longer"])
async def test_long_arguments_without_edit_have_an_option_to_show_them(long_args: Served, length: str) -> None:
    offered = ("approve", "reject", "show all")
    user = DialogUser(option_answer("show all", offered), "whatever", option_answer("approve", offered))
    output = await chat_output(long_args, user, length, model="fixed")
    assert [option["label"] for option in user.questions[0]["options"]] == ["Approve", "Reject", "Show all"]
    assert user.questions[0]["question"].endswith("choose Show all to see them)?")
    assert json.loads(user.inputs[0]["value"]) == long_args_of(length)
    assert len(user.questions) == 2
    assert output.rows == {"run": f"approve, {LENGTHS[length]}, {END}"}


async def test_arguments_over_the_limit_show_no_dialog(long_args: Served) -> None:
    user = DialogUser(option_answer("approve"))
    output, task = Chat(long_args.url, ask=user.answer).start("huge")
    await eventually(lambda: any("its arguments cannot be shown here: run `limelight" in s for s in output.statuses))
    assert user.events == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_arguments_that_the_server_has_not_stored_completely_show_no_dialog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe_module(), "REPEAT_SECONDS", 0.02)
    async with serving(editable, data=tmp_path, limits__result_bytes=50_000) as served:
        user = DialogUser(option_answer("approve"))
        output, task = Chat(served.url, ask=user.answer).start("longer")
        await eventually(lambda: user.events or any("cannot be shown here" in status for status in output.statuses))
        assert user.events == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
