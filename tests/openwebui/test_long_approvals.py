"""Approvals with long arguments: nobody is asked to approve what they cannot see."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.sources.base import Context
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.function_rules import Json, pipe_module
from tests.openwebui.user import Person, choosing
from tests.support.server import Served, serving
from tests.support.wait import eventually

END = "and drop everything"
LENGTHS = {"card": 1000, "long": 5000, "longer": 60_000, "huge": 1_100_000}


def args_of(length: str) -> Json:
    return {"text": "x" * LENGTHS[length], "then": END}


async def asks(ctx: Context, length: str, *decisions: Any) -> AsyncIterator[AnyEvent]:
    yield ToolStarted(call_id="c", name="run", args=args_of(length))
    approval = await ctx.approve("run", args_of(length), call_id="c", decisions=decisions)
    yield ToolFinished(
        call_id="c", result=f"{approval.decision}, {len(approval.args['text'])}, {approval.args['then']}"
    )


async def editable(messages: Any, ctx: Context) -> AsyncIterator[AnyEvent]:
    async for event in asks(ctx, messages[-1]["content"], "approve", "edit", "reject"):
        yield event


async def fixed(messages: Any, ctx: Context) -> AsyncIterator[AnyEvent]:
    async for event in asks(ctx, messages[-1]["content"], "approve", "reject"):
        yield event


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    monkeypatch.setattr(pipe_module(), "REPEAT_SECONDS", 0.02)
    async with serving(editable, fixed, data=tmp_path) as live:
        yield live


async def asked(served: Served, person: Person, length: str, model: str = "default") -> Seen:
    return await asyncio.wait_for(Chat(served.url, ask=person.answer, model=model).say(length), 30)


async def test_what_the_card_can_hold_is_there_whole(served: Served) -> None:
    person = Person(choosing("approve"))
    await asked(served, person, "card")
    assert person.questions[0]["question"] == f"May run run with {json.dumps(args_of('card'))}?"


@pytest.mark.parametrize("length", ["long", "longer"])
async def test_what_it_cannot_hold_is_seen_and_edited_whole(served: Served, length: str) -> None:
    changed = json.dumps({**args_of(length), "then": "stop"})
    person = Person(choosing("edit"), changed)
    seen = await asked(served, person, length)
    more = len(json.dumps(args_of(length))) - 1500
    assert person.questions[0]["question"].endswith(f" … ({more:,} more characters: choose Edit to see all)?")
    assert json.loads(person.inputs[0]["value"]) == args_of(length)
    assert seen.rows == {"run": f"edit, {LENGTHS[length]}, stop"}
    assert json.loads(seen.of_type("function_call")[0]["arguments"]) == json.loads(changed)


@pytest.mark.parametrize("length", ["long", "longer"])
async def test_without_edit_there_is_a_way_to_see_all(served: Served, length: str) -> None:
    offered = ("approve", "reject", "show all")
    person = Person(choosing("show all", offered), "whatever", choosing("approve", offered))
    seen = await asked(served, person, length, model="fixed")
    assert [option["label"] for option in person.questions[0]["options"]] == ["Approve", "Reject", "Show all"]
    assert person.questions[0]["question"].endswith("choose Show all to see them)?")
    assert json.loads(person.inputs[0]["value"]) == args_of(length)
    assert len(person.questions) == 2
    assert seen.rows == {"run": f"approve, {LENGTHS[length]}, {END}"}


async def test_what_no_dialog_can_hold_is_not_asked_here(served: Served) -> None:
    person = Person(choosing("approve"))
    seen, task = Chat(served.url, ask=person.answer).start("huge")
    await eventually(lambda: any("its arguments cannot be shown here: run `limelight" in s for s in seen.statuses))
    assert person.asked == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
