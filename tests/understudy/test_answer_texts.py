"""Answers: short Markdown documents made of tool results, whatever their format."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.understudy.improviser import improvise
from tests.understudy.request_builders import NUMBER, STRING, build_request, read_reply, tool, tool_messages, user

SEARCH = tool("search", query=STRING)
READ = tool("read_file", path=STRING)
TASK = tool("task", "Agents:\n- critic: words\n- poet: verses", description=STRING, subagent_type=STRING)


def final_text(question: str, tools: list[dict[str, Any]], **results: str) -> str:
    """The answer to a question if each tool returns this result."""
    messages: list[Any] = [{"role": "assistant", "content": "hi"}, user(question)]
    for _ in range(8):
        reply = read_reply(improvise(build_request(*messages, tools=tools)))
        if not reply.calls:
            return reply.text
        messages += tool_messages(reply, *(results.get(name, "") for name in reply.names))
    raise AssertionError("no answer after eight replies")


HITS = [
    {"title": "Dances", "url": "https://a.example/dances", "snippet": "Bees dance to show the way."},
    {"title": "Kites", "url": "https://a.example/kites", "snippet": "A kite is a wing."},
]
AS_MARKDOWN = "## Search Results\n\n[Dances](https://a.example/dances)\nBees dance to show the way.\n\n[Kites](https://b.example)\nNo."
AS_LINES = "\n".join(map(str, HITS))


@pytest.mark.parametrize("result", [json.dumps(HITS), repr(HITS), json.dumps({"results": HITS}), AS_MARKDOWN, AS_LINES])
def test_search_results_in_any_format_are_quoted_with_their_source(result: str) -> None:
    text = final_text("Why do bees dance?", [SEARCH], search=result)
    assert text == "Bees dance to show the way.\n\nSource: [Dances](https://a.example/dances)"


def test_comma_separated_values_become_a_table_with_its_source() -> None:
    text = final_text("Which rivers in a.csv are long?", [READ], read_file="river,length\nNile,6650\nAmazon,6400")
    assert text == (
        "`read_file(a.csv)` returned:\n\n| river | length |\n|---|---|\n| Nile | 6650 |\n| Amazon | 6400 |\n\n"
        "Source: `a.csv`"
    )


def test_table_of_a_page_is_quoted_if_its_header_matches() -> None:
    page = "# Rivers\n\nRivers are long.\n\n| river | km |\n|---|---|\n| Nile | 6650 |\n"
    assert "| river | km |\n|---|---|\n| Nile | 6650 |" in final_text("rivers in a.md", [READ], read_file=page)
    assert "Nile" not in final_text("long in a.md", [READ], read_file=page)


@pytest.mark.parametrize(
    ("question", "offered", "result", "part"),
    [
        ("What is 6 * 7?", tool("calculate", expression=STRING), "42", "`calculate(6 * 7)` returned: 42"),
        ("Add 12, 19 and 23", tool("calculate", expression=STRING), "54", "`calculate(12 + 19 + 23)` returned: 54"),
        ("multiply 6 by 7", tool("multiply", a=NUMBER, b=NUMBER), "42", "`multiply(6, 7)` returned: 42"),
        ("rain in Bern", tool("weather", city=STRING), "Sunny, 21 degrees", "`weather(Bern)` returned: Sunny, 21"),
        ("rain", tool("weather"), '{"temp_c": 21, "wind": {"kmh": 5}}', "- **temp c**: 21\n- **wind**: kmh 5"),
        ("rain", tool("weather"), '[{"day": "Mon", "mm": 2}]', "| day | mm |\n|---|---|\n| Mon | 2 |"),
        ("rain", tool("weather"), '{"error": "no such city"}', "`weather()` failed: no such city."),
        ("rain", tool("weather"), "Traceback (most recent call last):\n  x\nKeyError: 'a'", "failed: KeyError: 'a'."),
        ("rain", tool("weather"), "Error: closed.", "`weather()` failed: closed."),
        ("What files are there?", tool("ls"), "['/a.md', '/b.md']", "`ls()` returned:\n\n- /a.md\n- /b.md"),
        ("Hello", tool("ls"), "[]", "I can use these tools: `ls`."),
        ("xylophones", SEARCH, "[]", "I found nothing about xylophones."),
    ],
)
def test_other_results_are_quoted_with_their_call(
    question: str, offered: dict[str, Any], result: str, part: str
) -> None:
    assert part in final_text(question, [offered], **{offered["function"]["name"]: result})


def test_listing_is_left_out_if_something_else_was_found() -> None:
    text = final_text("How do bees dance?", [tool("ls"), SEARCH], ls="['/a.md', '/b.md']", search=json.dumps(HITS))
    assert "a.md" not in text


def test_two_helpers_get_one_half_of_the_question_each_and_both_reports_are_labelled() -> None:
    question = "Ask two helpers at once about tides and kites"
    calls = read_reply(improvise(build_request(question, tools=[TASK])))
    tasks = [calls.arguments(index)["description"] for index in (0, 1)]
    assert [task.partition(".")[0] for task in tasks] == ["Find out: tides", "Find out: kites"]
    reports = ("Tides: the moon pulls.\n\nSource: [Tides](https://a.example/t)", "Kites fly.\n\nSource: `/k.md`")
    messages = [user(question), *tool_messages(calls, *reports)]
    assert read_reply(improvise(build_request(*messages, tools=[TASK]))).text == (
        "**critic**: Tides: the moon pulls.\n\n**poet**: Kites fly.\n\n"
        "### Sources\n\n- [Tides](https://a.example/t)\n- `/k.md`"
    )


def test_two_helpers_look_at_one_subject_from_two_sides() -> None:
    reply = read_reply(improvise(build_request("Two helpers at once about bees", tools=[TASK])))
    first, second = (reply.arguments(index)["description"] for index in (0, 1))
    assert first.startswith("Find out: bees. ")
    assert second.startswith("Find out from another side: bees. ")


def test_report_of_a_sub_agent_is_short() -> None:
    page = "# Bees\n\n" + " ".join(f"Bees do thing number {number} in a way of their own." for number in range(40))
    task = read_reply(improvise(build_request("bees", tools=[TASK]))).arguments()["description"]
    report = final_text(f"{task} Look at a.md", [READ], read_file=page)
    assert len(report) < 500
    assert len(final_text("bees", [TASK], task=report)) < len(report) + 80


@given(st.one_of(st.text(max_size=300), st.recursive(st.integers() | st.text(), st.lists).map(json.dumps)))
def test_any_result_leads_to_an_answer(result: str) -> None:
    for offered in (SEARCH, READ, TASK, tool("weather", x=STRING), tool("run_python", code=STRING), tool("ls")):
        name = offered["function"]["name"]
        assert final_text("How do bees in a.md dance?", [offered], **{name: result}).strip()
