"""Approvals: asked in the chat, decided there or elsewhere, against a real server."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import twice
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.function_rules import Json, pipe_module
from tests.openwebui.user import GONE, Person, choosing, writing
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import eventually


@pytest.fixture
async def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    monkeypatch.setattr(pipe_module(), "REPEAT_SECONDS", 0.02)
    async with serving(agents.asker, twice, data=tmp_path) as served:
        yield served


async def asked(served: Served, person: Person, **options: Any) -> Seen:
    return await asyncio.wait_for(Chat(served.url, ask=person.answer, **options).say("go"), 30)


async def open_approvals(served: Served) -> tuple[str, list[Json]]:
    run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
    return run_id, (await served.http.get(f"/runs/{run_id}")).json()["approvals"]


async def decide(served: Served, **decision: Any) -> None:
    run_id, approvals = await open_approvals(served)
    path = f"/runs/{run_id}/approvals/{approvals[0]['approval_id']}"
    assert (await served.http.post(path, json=decision)).status_code == 200


async def test_approve(asking: Served) -> None:
    person = Person(choosing("approve"))
    seen = await asked(asking, person)
    assert seen.rows == {"delete": "deleted /tmp/x"}
    assert "decision: approve" in seen.text
    assert seen.statuses[-3:] == ["⏸ delete is waiting for approval", "🔧 delete...", "Complete"]
    (question,) = person.questions
    assert question["question"].startswith("May delete run with {")
    assert '"path": "/tmp/x"' in question["question"]
    assert [option["label"] for option in question["options"]] == ["Approve", "Edit", "Reject"]


async def test_edit_asks_again_until_it_is_an_object(asking: Served) -> None:
    person = Person(choosing("edit"), '{"path": ', '["/tmp/y"]', '{"path": "/tmp/y"}')
    seen = await asked(asking, person)
    assert seen.rows == {"delete": "deleted /tmp/y"}
    assert seen.of_type("function_call")[0]["arguments"] == '{"path": "/tmp/y"}'
    first, second, third = person.inputs
    assert '"path": "/tmp/x"' in first["value"]
    assert "not valid JSON" in second["message"]
    assert second["value"] == '{"path": '
    assert "JSON object" in third["message"]


@pytest.mark.parametrize(("closed", "answered"), [(False, True), (GONE, False)])
async def test_an_edit_that_is_given_up_asks_again(asking: Served, closed: Any, answered: bool) -> None:
    """At once if it was closed, because to look at the arguments is an answer; later if the tab is gone."""
    person = Person(choosing("edit"), closed, choosing("approve"))
    seen = await asked(asking, person)
    assert seen.rows == {"delete": "deleted /tmp/x"}
    assert len(person.questions) == 2
    assert any("limelight approve" in line for line in seen.statuses) is not answered


async def test_reject(asking: Served) -> None:
    seen = await asked(asking, Person(choosing("reject")))
    assert seen.statuses[-3:-1] == ["⏸ delete is waiting for approval", "🚫 delete was rejected"]
    assert seen.rows["delete"].startswith("Error: ")
    assert seen.of_type("function_call")[0]["status"] == "failed"


async def test_what_is_written_is_a_rejection_with_a_reason(asking: Served) -> None:
    assert (await asked(asking, Person(writing("not on a Sunday")))).rows == {"delete": "Error: not on a Sunday"}


@pytest.mark.parametrize("nothing", [GONE, {"status": "cancelled", "answers": {}}, None])
async def test_when_nobody_answers_the_row_says_where_to_decide(asking: Served, nothing: Any) -> None:
    person = Person(nothing, nothing, nothing)
    seen, task = Chat(asking.url, ask=person.answer).start("go")
    await eventually(lambda: len(person.questions) == 4)
    run_id, _ = await open_approvals(asking)
    where = f"waiting for approval: answer here, or run `limelight approve {run_id}`"
    await eventually(lambda: f"delete · {where}" in [item["name"] for item in seen.of_type("function_call")])
    assert seen.statuses.count(f"⏸ delete · {where}") == 1
    await decide(asking, decision="approve")
    await asyncio.wait_for(task, 30)
    assert seen.rows == {"delete": "deleted /tmp/x"}


async def test_a_caller_who_cannot_be_asked_waits_for_a_decision_from_elsewhere(asking: Served) -> None:
    seen, task = Chat(asking.url).start("go")
    await eventually(lambda: any("limelight approve" in line for line in seen.statuses))
    await decide(asking, decision="reject", reason="no")
    await asyncio.wait_for(task, 30)
    assert seen.rows == {"delete": "Error: no"}


async def test_a_decision_from_elsewhere_takes_the_dialog_away(asking: Served) -> None:
    person = Person()
    seen, task = Chat(asking.url, ask=person.answer).start("go")
    await eventually(lambda: person.asked)
    await decide(asking, decision="approve")
    await asyncio.wait_for(task, 30)
    assert person.taken_away == person.asked
    assert seen.rows == {"delete": "deleted /tmp/x"}


async def test_two_questions_come_one_after_the_other(asking: Served) -> None:
    person = Person(choosing("approve"), writing("not yet"))
    seen = await asked(asking, person, model="twice")
    assert person.most_at_once == 1
    assert [question["question"].split()[1] for question in person.questions] == ["send_mail", "publish"]
    assert [option["label"] for option in person.questions[1]["options"]] == ["Approve", "Reject"]
    assert "mail: approve to ann, publish: reject, not yet" in seen.text


async def test_a_dialog_that_breaks_is_an_answer_that_is_missing(asking: Served) -> None:
    broken = Person(choosing("approve"))
    calls: list[Json] = []

    async def answer(event: Json) -> Any:
        calls.append(event)
        if len(calls) < 3:
            raise TimeoutError("the tab is gone")
        return await broken.answer(event)

    seen = await asyncio.wait_for(Chat(asking.url, ask=answer).say("go"), 30)
    assert seen.rows == {"delete": "deleted /tmp/x"}


class Line:
    """The line above the text, told of approvals alone."""

    def __init__(self, *, subagents: bool = True) -> None:
        self._status = pipe_module().StatusLine(pipe_module().DisplayOptions("native", True, subagents))

    def hear(self, kind: str, name: str, **data: Any) -> list[str]:
        frame = pipe_module().Frame(kind, {"approval_id": name, "name": name, **data})
        return [event["data"]["description"] for event in self._status.feed(frame)]


def test_as_long_as_another_approval_is_open_the_line_says_so() -> None:
    line = Line()
    line.hear("approval", "mail", state="requested")
    line.hear("approval", "publish", state="requested")
    assert line.hear("approval", "publish", state="approve") == ["⏸ mail is waiting for approval"]
    assert line.hear("approval", "mail", state="edit", agent_depth=1) == ["↳ 🔧 mail..."]


def test_what_was_decided_meanwhile_does_not_wait_again() -> None:
    line = Line()
    line.hear("approval", "mail", state="requested")
    assert line.hear("approval", "mail", state="reject") == ["🚫 mail was rejected"]
    assert line.hear("_unanswered", "mail", instruction="here") == []


def test_of_a_sub_agent_of_which_nothing_is_told_only_what_a_person_must_do() -> None:
    line = Line(subagents=False)
    assert line.hear("approval", "mail", state="requested", agent_depth=1) == []
    assert line.hear("_unanswered", "mail", instruction="here") == ["⏸ mail · here"]
    assert line.hear("approval", "mail", state="approve", agent_depth=1) == ["↳ 🔧 mail..."]
    line.hear("approval", "publish", state="requested", agent_depth=1)
    assert line.hear("approval", "publish", state="approve", agent_depth=1) == []
