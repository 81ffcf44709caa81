"""Answers: short documents made of what tools returned, whatever form it has; nothing raw, nothing cut badly."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.understudy.improviser import improvise
from tests.understudy.requests import NUMBER, STRING, answered, read, request_of, tool, user

SEARCH = tool("search", query=STRING)
READ = tool("read_file", path=STRING)
TASK = tool("task", "Agents:\n- critic: words\n- poet: verses", description=STRING, subagent_type=STRING)


def told(question: str, offered: list[dict[str, Any]], **results: str) -> str:
    """The answer to a question, if each tool returns this."""
    messages: list[Any] = [{"role": "assistant", "content": "hi"}, user(question)]
    for _ in range(8):
        said = read(improvise(request_of(*messages, tools=offered)))
        if not said.calls:
            return said.text
        messages += answered(said, *(results.get(name, "") for name in said.names))
    raise AssertionError("no end")


HITS = [
    {"title": "Dances", "url": "https://a.example/dances", "snippet": "Bees dance to show the way."},
    {"title": "Kites", "url": "https://a.example/kites", "snippet": "A kite is a wing."},
]
WRITTEN = "## Search Results\n\n[Dances](https://a.example/dances)\nBees dance to show the way.\n\n[Kites](https://b.example)\nNo."


@pytest.mark.parametrize("form", [json.dumps(HITS), repr(HITS), json.dumps({"results": HITS}), WRITTEN])
def test_a_search_in_any_form_is_told_with_its_source(form: str) -> None:
    said = told("Why do bees dance?", [SEARCH], search=form)
    assert said == "Bees dance to show the way.\n\nSource: [Dances](https://a.example/dances)"


def test_a_table_stays_a_table_and_says_who_comes_first() -> None:
    said = told("Which rivers in a.csv are the longest?", [READ], read_file="river,length_km\nNile,6650\nAmazon,6400")
    assert said.startswith("By length km, Nile comes first with 6650, followed by Amazon (6400).")
    assert "| river | length km |\n|---|---|\n| Nile | 6650 |" in said
    assert said.endswith("Source: `a.csv`")


@pytest.mark.parametrize(
    ("question", "offered", "result", "part"),
    [
        ("Add 12, 19 and 23", tool("calculate", expression=STRING), "54", "The sum of 12, 19 and 23 is 54."),
        ("What is 6 * 7?", tool("calculate", expression=STRING), "42", "6 × 7 = 42."),
        ("multiply 6 by 7", tool("multiply", a=NUMBER, b=NUMBER), "42", "6 × 7 = 42."),
        ("rain in Bern", tool("weather", city=STRING), "Sunny, 21 degrees", "`weather` says: Sunny, 21 degrees."),
        ("rain", tool("weather"), '{"temp_c": 21, "wind": {"kmh": 5}}', "- **temp c**: 21\n- **wind kmh**: 5"),
        ("rain", tool("weather"), '[{"day": "Mon", "mm": 2}]', "| day | mm |\n|---|---|\n| Mon | 2 |"),
        ("rain", tool("weather"), '{"error": "no such city"}', "`weather` failed: no such city."),
        ("rain", tool("weather"), "Traceback (most recent call last):\n  x\nKeyError: 'a'", "failed: KeyError: 'a'."),
        ("rain", tool("weather"), "Error: closed.", "`weather` failed: closed."),
        ("What files are there?", tool("ls"), "['/a.md', '/b.md']", "There are two files: `a.md` and `b.md`."),
        ("Hello", tool("ls"), "[]", "I can use `ls` here"),
        ("xylophones", SEARCH, "[]", "I found nothing about xylophones."),
    ],
)
def test_results_become_sentences(question: str, offered: dict[str, Any], result: str, part: str) -> None:
    assert part in told(question, [offered], **{offered["function"]["name"]: result})


def test_a_listing_is_no_answer_to_another_question() -> None:
    said = told("How do bees dance?", [tool("ls"), SEARCH], ls="['/a.md', '/b.md']", search=json.dumps(HITS))
    assert "a.md" not in said


def test_two_helpers_get_a_half_each_and_their_reports_a_heading_each() -> None:
    offered = [TASK]
    said = read(improvise(request_of("Ask two helpers at once about tides and kites", tools=offered)))
    tasks = [said.arguments(at)["description"] for at in (0, 1)]
    assert [task.partition(".")[0] for task in tasks] == ["Look into tides", "Look into kites"]
    assert said.reasoning == "I ask two helpers at once: one looks into tides, the other into kites."
    reports = ("The moon pulls.\n\nSource: [Tides](https://a.example/t)", "A kite is a wing.\n\nSource: `/k.md`")
    messages = [user("Ask two helpers at once about tides and kites"), *answered(said, *reports)]
    assert read(improvise(request_of(*messages, tools=offered))).text == (
        "Two helpers looked into tides and kites; this is what they report.\n\n### Tides\n\nThe moon pulls.\n\n"
        "### Kites\n\nA kite is a wing.\n\n### Sources\n\n- [Tides](https://a.example/t)\n- `/k.md`"
    )


def test_one_topic_is_looked_at_from_two_sides() -> None:
    said = read(improvise(request_of("Two helpers at once about bees", tools=[TASK])))
    first, second = (said.arguments(at)["description"] for at in (0, 1))
    assert first.startswith("Look into bees. ")
    assert second.startswith("Look into bees from another side. ")


def test_a_report_is_shorter_than_the_page_and_not_told_whole() -> None:
    page = "# Bees\n\n" + " ".join(f"Bees do thing number {at} in a way of their own." for at in range(40))
    task = read(improvise(request_of("bees", tools=[TASK]))).arguments()["description"]
    report = told(f"{task} Look at a.md", [READ], read_file=page)
    assert len(report) < 500
    assert len(told("bees", [TASK], task=report)) < len(report) + 80


@given(st.one_of(st.text(max_size=300), st.recursive(st.integers() | st.text(), st.lists).map(json.dumps)))
def test_whatever_comes_back_there_is_an_answer(result: str) -> None:
    for offered in (SEARCH, READ, TASK, tool("weather", x=STRING), tool("run_python", code=STRING), tool("ls")):
        name = offered["function"]["name"]
        assert told("How do bees in a.md dance?", [offered], **{name: result}).strip()
