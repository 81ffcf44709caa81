"""Improvisation: sensible calls in a sensible order, an end after six, and an answer that is made of what came back."""

import json
from typing import Any

import pytest
from hypothesis import given

from limelight.understudy.answer_text import NOTICE
from limelight.understudy.improviser import MOST_CALLS, improvise
from limelight.understudy.schema_check import fits
from tests.understudy.requests import INTEGER, NUMBER, STRING, Read, answered, read, request_of, tool, user
from tests.understudy.test_schema_examples import SCHEMAS

TODO = {
    "type": "object",
    "properties": {"content": STRING, "status": {"enum": ["pending", "in_progress", "completed"]}},
}
TODOS = {"type": "array", "items": {**TODO, "required": ["content", "status"]}}
TASK = tool("task", "Agents:\n- general-purpose: all\n- critic: words", description=STRING, subagent_type=STRING)
DEEP = [
    tool("write_todos", todos=TODOS),
    tool("ls", path=STRING),
    tool("read_file", "Give an absolute path.", ["file_path"], file_path=STRING, offset=INTEGER),
    tool("write_file", "Give an absolute path.", file_path=STRING, content=STRING),
    tool("edit_file", file_path=STRING, old_string=STRING, new_string=STRING),
    tool("glob", "", ["pattern"], pattern=STRING, path=STRING),
    tool("grep", "", ["pattern"], pattern=STRING, path=STRING),
    tool("execute", command=STRING),
    TASK,
]
RESULTS = {"ls": "/rivers.md\n/bees.md", "grep": "/bees.md:3: bees dance", "read_file": "# Bees\nThey dance."}


def first(text: str, *tools: dict[str, Any], **body: Any) -> Read:
    return read(improvise(request_of(text, tools=list(tools), **body)))


def whole_turn(text: str, tools: list[dict[str, Any]], results: dict[str, str] | None = None) -> list[Read]:
    """All replies to a message, until there is one without a call."""
    messages: list[Any] = [user(text)]
    replies: list[Read] = []
    while not replies or replies[-1].calls:
        said = read(improvise(request_of(*messages, tools=tools)))
        replies.append(said)
        messages += answered(said, *((results or {}).get(name, f"{name} is done") for name in said.names))
        assert len(replies) <= MOST_CALLS + 1
    return replies


def test_a_deep_agent_plans_looks_reads_delegates_and_answers() -> None:
    replies = whole_turn("How do bees dance?", DEEP, RESULTS)
    assert [reply.names for reply in replies] == [
        ["write_todos"],
        ["ls", "grep"],
        ["read_file"],
        ["task"],
        ["write_todos"],
        [],
    ]
    assert replies[1].arguments(0) == {"path": "/"}
    assert replies[1].arguments(1) == {"pattern": "dance"}
    assert replies[2].arguments() == {"file_path": "/bees.md"}
    assert replies[3].arguments()["subagent_type"] == "critic"
    assert replies[3].arguments()["description"].startswith("Look into how bees dance. ")
    states = [[item["status"] for item in replies[at].arguments()["todos"]] for at in (0, 4)]
    assert states == [["in_progress", "pending", "pending"], ["completed"] * 3]
    assert replies[-1].text == (
        "bees dance\n\n### What I found\n\n- **The critic**: task is done\n\nSource: `/bees.md`"
    )
    assert [NOTICE in reply.text for reply in replies] == [True, *[False] * 5]
    assert all(reply.reasoning for reply in replies[:-1])


def test_a_helper_does_not_say_again_who_it_is() -> None:
    task = first("bees", TASK).arguments()["description"]
    assert NOTICE not in first(task).text


def test_it_says_who_it_is_once_in_a_conversation() -> None:
    for name in ("LIMELIGHT_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        assert name in NOTICE
    assert first("Hello").text.startswith(NOTICE)
    later = read(improvise(request_of("Hello", {"role": "assistant", "content": "Hi"}, "And now?")))
    assert NOTICE not in later.text
    assert "And now?" in later.text


NUMBERS = {"type": "array", "items": NUMBER}
TEXTS = {"type": "array", "items": STRING}
PROGRAM = """wanted = ['rain']
texts = {
    'the question': 'rain',
}
for title, text in texts.items():
    found = [word for word in wanted if word in f'{title} {text}'.lower()]
    print(f'{len(found)} of {len(wanted)} words in {title}:', ', '.join(found))"""
PLAN = ["See what there is", "Find out about bees", "Put the answer together"]
BOTH = (tool("add", a=NUMBER, b=NUMBER), tool("multiply", a=INTEGER, b=INTEGER))


@pytest.mark.parametrize(
    ("asked", "offered", "arguments"),
    [
        ("multiply 3 by 4", BOTH, {"a": 3, "b": 4}),
        ("What is 2.5 + 4?", [tool("calculator", expression=STRING)], {"expression": "2.5 + 4"}),
        ("Add 1, 2 and 3", [tool("sum_up", numbers=NUMBERS)], {"numbers": [1, 2, 3]}),
        ("bee dances", [tool("web_search", query=STRING)], {"query": "bee dances"}),
        ("bee dances", [tool("search", words=TEXTS)], {"words": ["bee", "dances"]}),
        ("Look at notes.txt", [tool("read_file", path=STRING)], {"path": "notes.txt"}),
        ("See https://example.org/a", [tool("visit", url=STRING)], {"url": "https://example.org/a"}),
        ("What is here?", [tool("list_files", directory=STRING)], {"directory": "."}),
        ("go", [tool("weather", city=STRING, unit={"enum": ["C", "F"]})], {"city": "anything", "unit": "C"}),
        ("What is the weather in New York?", [tool("weather", city=STRING)], {"city": "New York"}),
        ("go", [tool("ping")], {}),
        ("go", [tool("add", a=INTEGER, b={"type": "integer", "minimum": 5})], {"a": 1, "b": 5}),
        ("rain", [tool("run_python", code=STRING)], {"code": PROGRAM}),
        ("use `save`", [tool("ls"), tool("save", text=STRING)], {"text": "A note of the understudy about save."}),
        ("Plan about bees", [tool("make_plan", steps=TEXTS)], {"steps": PLAN}),
    ],
)
def test_recipes(asked: str, offered: list[dict[str, Any]], arguments: Any) -> None:
    said = first(asked, *offered)
    assert len(said.calls) == 1
    assert said.arguments() == arguments


def test_members_of_a_team_are_found() -> None:
    delegate = tool("delegate_task_to_member", member_id=STRING, task=STRING)
    team = {"role": "system", "content": '<member id="poet" name="Poet">\n<member id="cook" name="Cook">'}
    said = read(improvise(request_of(team, user("Soup: two helpers at once"), tools=[delegate])))
    assert [said.arguments(at)["member_id"] for at in (0, 1)] == ["poet", "cook"]
    assert said.arguments(0)["task"] != said.arguments(1)["task"]
    assert "two helpers" not in said.calls[0][1]


@pytest.mark.parametrize(
    ("asked", "names", "part", "told"),
    [
        ("try an error", ["read_file"], "/no/such/file", "`read_file` failed: no such file."),
        ("please, a SLOW tool", ["execute"], "sleep 3", "`execute` says: execute is done."),
        ("I want an approval", ["write_file"], "/understudy-note.txt", "I wrote `/understudy-note.txt`."),
        ("bees: two helpers at once", ["task", "task"], "critic", "### Critic\n\ntask is done"),
        ("an approval and two helpers at once", ["write_file", "task", "task"], "note", "Two helpers report."),
    ],
)
def test_provocations(asked: str, names: list[str], part: str, told: str) -> None:
    said, answer = whole_turn(asked, DEEP, {"read_file": "Error: no such file"})
    assert said.names == names
    assert part in "".join(arguments for _, arguments in said.calls)
    assert told in answer.text


@pytest.mark.parametrize(
    ("asked", "offered", "name", "part"),
    [
        ("try an error", tool("run_code", code=STRING), "run_code", "1 / 0"),
        ("try an error", tool("divide", a=NUMBER, b=NUMBER), "divide", '"b": 0'),
        ("try an error", tool("weather", city=STRING), "weather", "no_such_argument"),
        ("a slow tool", tool("nap", "Sleeps for a while.", seconds={"type": "integer", "maximum": 2}), "nap", "1"),
        ("a slow tool", tool("sleep", seconds=NUMBER), "sleep", "3"),
        ("a slow tool", tool("python_interpreter", code=STRING), "python_interpreter", "time.sleep"),
        ("an approval", tool("launch", "Needs approval of a person.", what=STRING), "launch", "anything"),
        ("an approval", tool("delete_file", path=STRING), "delete_file", "understudy-note.txt"),
    ],
)
def test_provocations_with_other_tools(asked: str, offered: dict[str, Any], name: str, part: str) -> None:
    said = first(asked, offered)
    assert said.names == [name]
    assert part in said.calls[0][1]


def test_what_cannot_be_provoked_is_said() -> None:
    assert "no tool on offer can do that" in first("a slow tool", tool("ls", path=STRING)).text
    both = first("an approval and a slow tool", tool("ls", path=STRING)).text
    assert "You asked for a slow tool and an approval, but no tool on offer can do that." in both


def test_what_cannot_be_provoked_is_said_beside_what_can() -> None:
    _, answer = whole_turn("try an error and an approval", [tool("read_file", path=STRING)], {"read_file": "Error: no"})
    assert "You asked for an approval, but no tool on offer can do that." in answer.text
    assert "`read_file` failed: no." in answer.text


RULES = {"role": "system", "content": "Be kind. A person is asked for approval before delete removes anything."}
FILES = [tool("write_file", file_path=STRING, content=STRING), tool("delete", file_path=STRING), tool("ls")]


def test_what_the_instructions_say_needs_an_approval_is_called_and_finds_something_to_delete() -> None:
    asked = [RULES, user("an approval")]
    note = read(improvise(request_of(*asked, tools=FILES)))
    assert (note.names, note.arguments()["file_path"]) == (["write_file"], "understudy-note.txt")
    after = [*asked, *answered(note, "Updated /understudy-note.txt")]
    gone = read(improvise(request_of(*after, tools=FILES)))
    assert (gone.names, gone.arguments()["file_path"].lstrip("/")) == (["delete"], "understudy-note.txt")
    ended = read(improvise(request_of(*after, *answered(gone, "a person said no"), tools=FILES)))
    assert ended.names == []
    assert ended.text.endswith("`delete` was not done: a person said no.")


def test_without_such_instructions_a_tool_that_writes_is_tried() -> None:
    assert first("an approval", *FILES).names == ["write_file"]


def test_a_long_answer() -> None:
    said = first("Give me a long answer about bees", *DEEP)
    assert said.calls == []
    assert 1900 <= len(said.text.split()) <= 2300
    assert "bees" in said.text


def test_never_more_than_six_calls_and_none_twice() -> None:
    many = [tool(f"thing{at}", x=STRING) for at in range(20)]
    calls = [call for reply in whole_turn("go", many) for call in reply.calls]
    assert len(calls) == MOST_CALLS == len(set(calls))


def test_a_new_message_begins_anew() -> None:
    messages: list[Any] = [user("bees")]
    for _ in range(2):
        said = read(improvise(request_of(*messages, tools=[tool("grep", pattern=STRING)])))
        assert said.names == ["grep"]
        messages += [*answered(said, "a line"), {"role": "assistant", "content": "done"}, user("bees")]


def test_a_loop_that_hands_the_answer_back_gets_it_in_words() -> None:
    offered = [tool("final_answer", answer=STRING), tool("list_files")]
    messages: list[Any] = [user("What is there?")]
    replies: list[Read] = []
    while len(replies) < 4 and (not replies or replies[-1].names):
        replies.append(read(improvise(request_of(*messages, tools=offered))))
        messages += answered(replies[-1], "bees.md")
    assert [reply.names for reply in replies] == [["list_files"], ["final_answer"], []]
    assert replies[-1].text.count("bees.md") == 1


def test_an_answer_goes_through_final_answer() -> None:
    offered = [tool("final_answer", answer={"type": "any"}), tool("web_search", query=STRING)]
    replies: list[Read] = []
    messages: list[Any] = [user("New task:\nbees")]
    for _ in range(2):
        said = read(improvise(request_of(*messages, tools=offered)))
        replies.append(said)
        written = [
            {"id": "c", "type": "function", "function": {"name": n, "arguments": json.loads(a)}} for n, a in said.calls
        ]
        messages += [{"role": "assistant", "content": f"Calling tools:\n{written}"}, user("Observation:\nBees dance.")]
    assert [reply.names for reply in replies] == [["web_search"], ["final_answer"]]
    assert replies[1].arguments()["answer"] == f"{NOTICE}\n\nBees dance."


def test_one_tool_can_be_demanded_and_all_can_be_refused() -> None:
    chosen = {"type": "function", "function": {"name": "write_file"}}
    assert first("bees", *DEEP, tool_choice=chosen).names == ["write_file"]
    assert first("bees", *DEEP, tool_choice="none").calls == []


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("### Task:\nGenerate a concise title for this.\nUSER: how do bees dance", "how do bees dance"),
        ('Generate a title as JSON: { "title": "x" }\nUSER: how "do" it', '{"title": "how do it"}'),
        ("Generate 1-3 broad tags, as JSON.", '{"tags": ["understudy"]}'),
        ("Suggest 3-5 relevant follow-up questions", "What else is there?"),
    ],
)
def test_chores_get_a_short_answer(asked: str, text: str) -> None:
    assert first(asked).text == text


def test_json_is_given_where_json_is_wanted() -> None:
    schema = {"type": "object", "properties": {"city": STRING, "n": INTEGER}, "required": ["city", "n"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(first("Paris", response_format=wanted).text) == {"city": "Paris", "n": 1}


def test_a_plan_is_written_where_one_is_wanted() -> None:
    said = first("Now begin! Here is your task:\n```\nCount bees\n```\nwrite the '<end_plan>' tag")
    assert "Count bees" in said.text
    assert said.text.endswith("<end_plan>")


@given(SCHEMAS)
def test_every_tool_is_called_with_arguments_that_fit(schema: dict[str, Any]) -> None:
    whole = {**schema, "$defs": {"Level": {"type": "string", "enum": ["low", "high"]}}}
    for name in ("ls", "grep", "read_file", "add", "task", "write_todos", "sleep", "run_code", "thing"):
        offered = {"type": "function", "function": {"name": name, "parameters": whole}}
        said = first(f"use {name} for 12 bees in a.txt", offered)
        assert said.names == [name]
        assert fits(said.arguments(), whole)


def test_tools_that_change_things_wait_for_their_name() -> None:
    offered = tool("delete_all", x=STRING), tool("final_answer", answer=STRING)
    assert first("bees", offered[0]).calls == []
    assert "only if you name them" in first("bees", offered[0]).text
    assert first("bees, with delete_all", offered[0]).names == ["delete_all"]
    assert first("bees", *offered, tool_choice="required").names == ["delete_all"]


def test_a_call_that_the_framework_forgot_is_not_made_again() -> None:
    """smolagents leaves a call out of its memory that it could not make, and reports the error only."""
    task, error = "New task:\ntry an error", "Error:\nno such argument\nNow let's retry: do it better"
    for messages in ([user(f"{task}\n{error}")], [user(task), {"role": "assistant", "content": "Hm"}, user(error)]):
        said = read(improvise(request_of(*messages, tools=[tool("weather", city=STRING)])))
        assert said.calls == []
    assert said.text == "A tool failed: no such argument."
