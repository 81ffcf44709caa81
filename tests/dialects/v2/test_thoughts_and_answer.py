"""Texts of the v2 dialect: long texts in pages, and final answers of every form."""

from typing import Any

import pytest

from limelight.events import (
    FinalAnswer,
    Plan,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from limelight.runs.truncation import fit
from tests.dialects.v2.messages import complete, messages_after_input, messages_of, single, text_events, types
from tests.support.strategies import RUN_ID

LONG = "".join(f"line {number}\n" for number in range(9_000))


def test_last_page_of_a_long_text_has_the_length_of_all_pages() -> None:
    *pages, last = complete(messages_after_input(*text_events(LONG), ToolStarted(call_id="c", name="t", args={})))[1:-2]
    assert pages and {page["metadata"].get("continued") for page in pages} == {True}
    assert "".join(page["content"] for page in [*pages, last]) == LONG
    assert last["metadata"]["thoughts_content"] == LONG[:60] + "..."
    assert last["metadata"]["full_thought_length"] == len(LONG)


def test_long_plans_and_outputs_have_the_length_of_all_pages() -> None:
    found = messages_after_input(
        Plan(text=LONG),
        ToolStarted(call_id="c", name="t", args={}),
        *(ToolOutputDelta(call_id="c", text=LONG[start : start + 999]) for start in range(0, len(LONG), 999)),
        ToolFinished(call_id="c"),
    )
    plan = [m["metadata"] for m in complete(found) if "planning_content" in types([m])][-1]
    assert (plan["content_length"], plan["thoughts_content"]) == (len(LONG), LONG[:60] + "...")
    logs = [m["metadata"] for m in complete(found) if "execution_logs" in types([m])][-1]
    assert logs["output_lines"] == 9_000


def test_answer_of_several_pages_is_sent_again_as_the_answer() -> None:
    (answer_event,) = fit(FinalAnswer(content=LONG, message_id="m"), RUN_ID, 10**6).events
    found = messages_after_input(
        StepStarted(number=1), *text_events(LONG), StepFinished(number=1), answer_event, RunFinished()
    )
    order = types(complete(found))
    assert order[0] == "action_header" and order[-3:] == ["action_footer", "separator", "final_answer"]
    assert set(order[1:-3]) == {"action_thought"}
    assert "".join(m["content"] for m in complete(found) if "action_thought" in types([m])) == LONG
    answer = single(found, "final_answer")
    assert LONG.startswith(answer["content"]) and len(answer["content"]) > 40_000
    assert (answer["metadata"]["truncated"], answer["metadata"]["size"]) == (True, len(LONG))
    assert "stream_id" not in answer["metadata"]


def test_thought_before_an_answer_that_was_not_streamed_is_in_its_step() -> None:
    found = messages_after_input(*text_events("Thinking aloud."), FinalAnswer(content="42"))
    assert types(complete(found)) == ["action_header", "action_thought", "action_footer", "separator", "final_answer"]


def test_text_that_is_the_answer_appears_once() -> None:
    found = messages_after_input(
        *text_events("Forty-two."), FinalAnswer(content="Forty-two.", message_id="m"), RunFinished()
    )
    answer = single(found, "final_answer")
    assert (answer["content"], answer["metadata"]["has_structured_data"]) == ("Forty-two.", False)
    assert "action_thought" not in types(complete(found))
    assert answer["metadata"]["stream_id"] == answer["message_id"]


def test_structured_answer_in_a_text_is_markdown_if_it_was_not_streamed() -> None:
    text = '{"title": "Bees", "content": "They dance.", "sources": ["a book"]}'
    events = (*text_events(text, "m"), FinalAnswer(content=text, message_id="m"), RunFinished())
    (answer,) = (m for m in messages_of([RunStarted(agent="a", enable_streaming=False), *events]) if is_answer(m))
    assert answer["content"] == "## Bees\n\nThey dance.\n\n**Sources**\n\n- a book"
    (streamed,) = (m for m in complete(messages_of([RunStarted(agent="a"), *events])) if is_answer(m))
    assert streamed["content"] == text, "a streamed text stays unchanged"


def is_answer(message: Any) -> bool:
    return types([message]) == ["final_answer"]


@pytest.mark.parametrize(
    "event",
    [
        FinalAnswer(title="Bees", content="They dance.", sources=("https://example.org",)),
        FinalAnswer(content={"title": "Bees", "content": "They dance.", "sources": ["https://example.org"]}),
        FinalAnswer(content='{"title": "Bees", "content": "They dance.", "sources": ["https://example.org"]}'),
        FinalAnswer(content="{'title': 'Bees', 'content': 'They dance.', 'sources': ['https://example.org']}"),
        FinalAnswer(
            content='Final answer: {"title": "Bees", "content": "They dance.", "sources": ["https://example.org"]}'
        ),
    ],
)
def test_structured_answer_is_parsed_in_every_form(event: FinalAnswer) -> None:
    answer = single(messages_after_input(event), "final_answer")
    metadata = answer["metadata"]
    assert metadata["has_structured_data"] is True
    assert (metadata["answer_title"], metadata["answer_content"]) == ("Bees", "They dance.")
    assert (metadata["answer_sources"], metadata["answer_format"]) == (["https://example.org"], "json")
    assert answer["content"] == "## Bees\n\nThey dance.\n\n**Sources**\n\n- https://example.org"


@pytest.mark.parametrize(
    ("content", "title", "shown", "sources"),
    [
        ('{"title": "Bees", "content": "They dance.", "sources": "u"}', "Bees", "They dance.", ["u"]),
        ('```json\n{"title": "Bees", "content": "They dance."}\n```', "Bees", "They dance.", []),
        ('```\n{"content": "They dance.", "sources": null}\n```', "", "They dance.", []),
        ('{"content": null, "sources": ["u", null]}', "", "", ["u"]),
        ('{"title": "Bees", "sources": ["u"]}', "Bees", "", ["u"]),
        ({"title": "Bees", "legs": 6}, "Bees", '{"legs":6}', []),
    ],
)
def test_structured_answer_with_missing_parts_is_parsed(
    content: Any, title: str, shown: str, sources: list[str]
) -> None:
    metadata = single(messages_after_input(FinalAnswer(content=content)), "final_answer")["metadata"]
    assert (metadata["answer_title"], metadata["answer_content"]) == (title, shown)
    assert metadata["answer_sources"] == sources


@pytest.mark.parametrize(
    "content",
    [
        "{'content': ...}",
        r'{"content": "\ud800 x"}',
        r'{"title": "\ud800", "content": "x"}',
        "{'content': 1j}",
        "{'content': {(1, 2): 3}}",
        "{'content': 'x', 'sources': [...]}",
        '{"title": "Bees", "legs": 6}',
        '{"content": "a"} and {"content": "b"}',
    ],
)
def test_text_that_only_looks_structured_stays_a_text(content: str) -> None:
    answer = single(messages_after_input(FinalAnswer(content=content)), "final_answer")
    assert (answer["content"], answer["metadata"]["has_structured_data"]) == (content, False)


def test_text_answer_is_the_content_without_its_prefix() -> None:
    answer = single(messages_after_input(FinalAnswer(content="Final answer: yes")), "final_answer")
    assert (answer["content"], answer["metadata"]["is_final_answer"]) == ("yes", True)
