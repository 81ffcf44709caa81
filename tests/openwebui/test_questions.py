"""Questions of agents in the chat: cards with choices, dialogs for each field, and answers under Other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.sources.base import Context
from tests.openwebui.chat import Chat, Output
from tests.openwebui.dialog_user import DISCONNECTED, DialogUser, option_answer, text_answer
from tests.openwebui.function_rules import Json, pipe_module
from tests.support.server import serving
from tests.support.wait import DEADLINE

COLOURS = {"oneOf": [{"const": "r", "title": "Red", "description": "like a rose"}, {"const": "b", "title": "Blue"}]}
MANY = {"enum": ["one", "two", "three", "four"]}
FORM = {
    "type": "object",
    "properties": {
        "town": {"enum": ["Lyon", "Paris"], "title": "Town", "description": "Where?"},
        "days": {"type": "integer", "default": 2},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["town", "days"],
}
SCHEMAS = {"any": {}, "colours": COLOURS, "many": MANY, "form": FORM, "number": {"type": "integer"}}


async def asking(messages: Any, ctx: Context) -> AsyncIterator[str]:
    """Asks the question that the message names, as a graph with `interrupt` does."""
    schema = SCHEMAS[messages[-1]["content"]]
    text = "Which one?"
    answer = await ctx.approve("interrupt", {"value": text}, question=text, answer_schema=schema)
    yield f"{answer.decision}: {answer.answer!r}"


async def reviewing(messages: Any, ctx: Context) -> AsyncIterator[str]:
    """Requests an approval of an action, which a text can answer, as a graph for Agent Inbox does."""
    answer = await ctx.approve("mail", {"to": "ann"}, question="A mail to Ann", answer_schema={"type": "string"})
    yield f"{answer.decision}: {answer.answer!r}"


async def filling(messages: Any, ctx: Context) -> AsyncIterator[str]:
    """Asks for values, and cannot be approved without them."""
    answer = await ctx.approve("book", {"town": ""}, decisions=("edit", "reject"), answer_schema=FORM)
    yield f"{answer.decision}: {answer.answer!r}, {answer.reason}"


async def ask(tmp_path: Path, user: DialogUser, text: str, model: str = "asking") -> Output:
    async with serving(asking, reviewing, filling, data=tmp_path) as served:
        return await asyncio.wait_for(Chat(served.url, ask=user.answer, model=model).send(text), DEADLINE)


@pytest.fixture(autouse=True)
def quick_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "REPEAT_SECONDS", 0.02)


def labels(card: Json) -> list[str]:
    return [option["label"] for option in card["options"]]


ANSWER = ("answer", "approve", "reject")


@pytest.mark.requirement("questions-in-their-form")
async def test_text_under_other_is_the_answer(tmp_path: Path) -> None:
    user = DialogUser(text_answer("the blue one"))
    assert "edit: 'the blue one'" in (await ask(tmp_path, user, "any")).text
    (card,) = user.questions
    assert card["question"] == "Which one?\nText under Other is your answer."
    assert labels(card) == ["Answer", "Approve", "Reject"]


async def test_answer_is_typed_in_a_dialog(tmp_path: Path) -> None:
    user = DialogUser(option_answer("answer", ANSWER), "42")
    assert "edit: '42'" in (await ask(tmp_path, user, "any")).text
    (dialog,) = user.inputs
    assert (dialog["title"], dialog["message"]) == ("Your answer", "Which one?")


@pytest.mark.parametrize(("decision", "text"), [("approve", "approve: None"), ("reject", "reject: None")])
async def test_question_can_be_decided_without_an_answer(tmp_path: Path, decision: str, text: str) -> None:
    user = DialogUser(option_answer(decision, ANSWER))
    assert text in (await ask(tmp_path, user, "any")).text


async def test_few_choices_are_the_options_of_the_card(tmp_path: Path) -> None:
    user = DialogUser(text_answer("green"), option_answer("b", ("r", "b")))
    assert "edit: 'b'" in (await ask(tmp_path, user, "colours")).text
    first, second = user.questions
    assert first["options"] == [{"label": "Red", "description": "like a rose"}, {"label": "Blue", "description": ""}]
    assert second["question"].startswith("Choose one of: Red, Blue.\n")


async def test_many_choices_are_a_list_in_a_dialog(tmp_path: Path) -> None:
    user = DialogUser(option_answer("answer", ANSWER), "three")
    assert "edit: 'three'" in (await ask(tmp_path, user, "many")).text
    select = user.inputs[0]["input"]
    assert (select["type"], [option["value"] for option in select["options"]]) == ("select", MANY["enum"])


async def test_value_that_does_not_fit_is_asked_again(tmp_path: Path) -> None:
    user = DialogUser(option_answer("answer", ANSWER), "many", "3.5", text_answer("3"))
    assert "edit: 3" in (await ask(tmp_path, user, "number")).text
    assert "not valid JSON" in user.inputs[1]["message"]
    assert user.questions[1]["question"].startswith("the answer: expected a whole number"), "the server's refusal"


@pytest.mark.requirement("questions-in-their-form")
async def test_form_has_a_dialog_for_each_field(tmp_path: Path) -> None:
    user = DialogUser(option_answer("answer", ANSWER), "Paris", "5", "")
    assert "edit: {'town': 'Paris', 'days': 5}" in (await ask(tmp_path, user, "form")).text
    town, days, note = user.inputs
    assert (town["title"], town["message"], town["input"]["type"]) == ("Town", "Where?", "select")
    assert (days["title"], days["value"]) == ("days", "2")
    assert note["message"] == "Leave it empty if there is none."
    assert "It asks for Town, days, note." in user.questions[0]["question"]


@pytest.mark.parametrize("closed", [False, DISCONNECTED])
async def test_closed_dialog_shows_the_card_again(tmp_path: Path, closed: Any) -> None:
    user = DialogUser(option_answer("answer", ANSWER), "Paris", closed, option_answer("approve", ANSWER))
    assert "approve: None" in (await ask(tmp_path, user, "form")).text
    assert len(user.questions) == 2


@pytest.mark.parametrize(
    ("typed", "shown"),
    [("Ask Bob.", "edit: 'Ask Bob.'"), ('{"to": "bob"}', "edit: None")],
    ids=["answer", "arguments"],
)
async def test_action_can_be_edited_or_answered(tmp_path: Path, typed: str, shown: str) -> None:
    user = DialogUser(option_answer("edit"), typed)
    assert shown in (await ask(tmp_path, user, "go", "reviewing")).text
    (card,) = user.questions
    assert card["question"] == 'A mail to Ann\nmail: {"to": "ann"}'
    assert labels(card) == ["Approve", "Edit or answer", "Reject"]


async def test_text_under_other_rejects_an_action(tmp_path: Path) -> None:
    """A text such as "no" must never become the result of a tool."""
    user = DialogUser(text_answer("no"))
    assert "reject: None" in (await ask(tmp_path, user, "go", "reviewing")).text


async def test_form_that_cannot_be_approved_takes_a_reason_under_other(tmp_path: Path) -> None:
    user = DialogUser(text_answer("too far"))
    assert "reject: None, too far" in (await ask(tmp_path, user, "go", "filling")).text
    assert labels(user.questions[0]) == ["Answer", "Edit", "Reject"]
