"""Improvisation: calls in a sensible order, at most six, and an answer made of the results."""

import json
from typing import Any

import pytest
from hypothesis import given

from limelight.understudy.answer_texts import NOTICE
from limelight.understudy.improviser import MAX_CALLS, improvise
from limelight.understudy.json_schema import is_valid
from tests.understudy.request_builders import (
    INTEGER,
    NUMBER,
    STRING,
    ReadReply,
    build_request,
    read_reply,
    tool,
    tool_messages,
    user,
)
from tests.understudy.test_json_schema import SCHEMAS

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


def first_reply(text: str, *tools: dict[str, Any], **body: Any) -> ReadReply:
    return read_reply(improvise(build_request(text, tools=list(tools), **body)))


def run_turn(text: str, tools: list[dict[str, Any]], results: dict[str, str] | None = None) -> list[ReadReply]:
    """All replies to a message, up to the one without a call."""
    messages: list[Any] = [user(text)]
    replies: list[ReadReply] = []
    while not replies or replies[-1].calls:
        reply = read_reply(improvise(build_request(*messages, tools=tools)))
        replies.append(reply)
        messages += tool_messages(reply, *((results or {}).get(name, f"{name} is done") for name in reply.names))
        assert len(replies) <= MAX_CALLS + 1
    return replies


def test_deep_agent_plans_lists_reads_delegates_and_answers() -> None:
    replies = run_turn("How do bees dance?", DEEP, RESULTS)
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
    assert replies[3].arguments()["description"].startswith("Find out: How do bees dance? ")
    states = [[item["status"] for item in replies[at].arguments()["todos"]] for at in (0, 4)]
    assert states == [["in_progress", "pending", "pending"], ["completed"] * 3]
    assert replies[-1].text == "They dance.\n\nSource: `/bees.md`"
    assert [NOTICE in reply.text for reply in replies] == [True, *[False] * 5]
    assert all(reply.reasoning for reply in replies[:-1])


def test_delegated_task_gets_no_notice() -> None:
    task = first_reply("bees", TASK).arguments()["description"]
    assert NOTICE not in first_reply(task).text


def test_notice_comes_once_per_conversation() -> None:
    for name in ("LIMELIGHT_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        assert name in NOTICE
    assert first_reply("Hello").text.startswith(NOTICE)
    later = read_reply(improvise(build_request("Hello", {"role": "assistant", "content": "Hi"}, "And now?")))
    assert NOTICE not in later.text
    assert "And now?" in later.text


NUMBERS = {"type": "array", "items": NUMBER}
TEXTS = {"type": "array", "items": STRING}
PROGRAM = """# a program of the understudy
words = ['rain']
texts = {
    'the question': 'rain',
}
for title, text in texts.items():
    found = [word for word in words if word in f'{title} {text}'.lower()]
    print(f'{len(found)} of {len(words)} words in {title}:', ', '.join(found))"""
PLAN = ["Look at what there is", "Find out: Plan about bees", "Write the answer"]
BOTH = (tool("add", a=NUMBER, b=NUMBER), tool("multiply", a=INTEGER, b=INTEGER))


@pytest.mark.parametrize(
    ("message", "offered", "arguments"),
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
def test_arguments_of_each_kind_of_tool(message: str, offered: list[dict[str, Any]], arguments: Any) -> None:
    reply = first_reply(message, *offered)
    assert len(reply.calls) == 1
    assert reply.arguments() == arguments


def test_members_of_an_agno_team_are_found_in_the_prompt() -> None:
    delegate = tool("delegate_task_to_member", member_id=STRING, task=STRING)
    team = {"role": "system", "content": '<member id="poet" name="Poet">\n<member id="cook" name="Cook">'}
    reply = read_reply(improvise(build_request(team, user("Soup: two helpers at once"), tools=[delegate])))
    assert [reply.arguments(at)["member_id"] for at in (0, 1)] == ["poet", "cook"]
    assert reply.arguments(0)["task"] != reply.arguments(1)["task"]
    assert "two helpers" not in reply.calls[0][1]


@pytest.mark.parametrize(
    ("message", "names", "part", "answer"),
    [
        ("try an error", ["read_file"], "/no/such/file", "failed: no such file."),
        ("please, a SLOW tool", ["execute"], "sleep 3", "`execute(sleep 3)` returned: execute is done"),
        ("I want an approval", ["write_file"], "/understudy-note.txt", "returned: write_file is done"),
        ("bees: two helpers at once", ["task", "task"], "critic", "task is done"),
        ("an approval and two helpers at once", ["write_file", "task", "task"], "note", "task is done"),
    ],
)
def test_trigger_phrase_calls_a_tool_of_a_deep_agent(message: str, names: list[str], part: str, answer: str) -> None:
    calls, last = run_turn(message, DEEP, {"read_file": "Error: no such file"})
    assert calls.names == names
    assert part in "".join(arguments for _, arguments in calls.calls)
    assert answer in last.text


@pytest.mark.parametrize(
    ("message", "offered", "name", "part"),
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
def test_trigger_phrase_uses_the_tools_on_offer(message: str, offered: dict[str, Any], name: str, part: str) -> None:
    reply = first_reply(message, offered)
    assert reply.names == [name]
    assert part in reply.calls[0][1]


def test_answer_names_phrases_that_no_tool_can_serve() -> None:
    assert "no tool on offer can do that" in first_reply("a slow tool", tool("ls", path=STRING)).text
    both = first_reply("an approval and a slow tool", tool("ls", path=STRING)).text
    assert "You asked for a slow tool and an approval, but no tool on offer can do that." in both


def test_answer_names_the_unserved_phrase_beside_the_served_one() -> None:
    _, answer = run_turn("try an error and an approval", [tool("read_file", path=STRING)], {"read_file": "Error: no"})
    assert "You asked for an approval, but no tool on offer can do that." in answer.text
    assert "`read_file(/no/such/file.txt)` failed: no." in answer.text


RULES = {"role": "system", "content": "Be kind. A person is asked for approval before delete removes anything."}
FILES = [tool("write_file", file_path=STRING, content=STRING), tool("delete", file_path=STRING), tool("ls")]


def test_tool_that_the_prompt_names_for_approval_deletes_a_note_written_before() -> None:
    asked = [RULES, user("an approval")]
    note = read_reply(improvise(build_request(*asked, tools=FILES)))
    assert (note.names, note.arguments()["file_path"]) == (["write_file"], "understudy-note.txt")
    after = [*asked, *tool_messages(note, "Updated /understudy-note.txt")]
    gone = read_reply(improvise(build_request(*after, tools=FILES)))
    assert (gone.names, gone.arguments()["file_path"].lstrip("/")) == (["delete"], "understudy-note.txt")
    ended = read_reply(improvise(build_request(*after, *tool_messages(gone, "a person said no"), tools=FILES)))
    assert ended.names == []
    assert ended.text.endswith("failed: a person said no.")


def test_approval_without_such_a_prompt_calls_a_tool_that_writes() -> None:
    assert first_reply("an approval", *FILES).names == ["write_file"]


def test_long_answer_has_two_thousand_words_and_no_calls() -> None:
    reply = first_reply("Give me a long answer about bees", *DEEP)
    assert reply.calls == []
    assert 1900 <= len(reply.text.split()) <= 2300
    assert "bees" in reply.text


def test_turn_has_at_most_six_calls_and_none_twice() -> None:
    many = [tool(f"thing{at}", x=STRING) for at in range(20)]
    calls = [call for reply in run_turn("go", many) for call in reply.calls]
    assert len(calls) == MAX_CALLS == len(set(calls))


def test_new_user_message_starts_a_new_turn() -> None:
    messages: list[Any] = [user("bees")]
    for _ in range(2):
        reply = read_reply(improvise(build_request(*messages, tools=[tool("grep", pattern=STRING)])))
        assert reply.names == ["grep"]
        messages += [*tool_messages(reply, "a line"), {"role": "assistant", "content": "done"}, user("bees")]


def test_final_answer_that_is_returned_as_a_result_is_repeated_as_text() -> None:
    offered = [tool("final_answer", answer=STRING), tool("list_files")]
    messages: list[Any] = [user("What is there?")]
    replies: list[ReadReply] = []
    while len(replies) < 4 and (not replies or replies[-1].names):
        replies.append(read_reply(improvise(build_request(*messages, tools=offered))))
        messages += tool_messages(replies[-1], "bees.md")
    assert [reply.names for reply in replies] == [["list_files"], ["final_answer"], []]
    assert replies[-1].text.count("bees.md") == 1


def test_answer_is_an_argument_of_final_answer() -> None:
    offered = [tool("final_answer", answer={"type": "any"}), tool("web_search", query=STRING)]
    replies: list[ReadReply] = []
    messages: list[Any] = [user("New task:\nbees")]
    for _ in range(2):
        reply = read_reply(improvise(build_request(*messages, tools=offered)))
        replies.append(reply)
        written = [
            {"id": "c", "type": "function", "function": {"name": n, "arguments": json.loads(a)}} for n, a in reply.calls
        ]
        messages += [{"role": "assistant", "content": f"Calling tools:\n{written}"}, user("Observation:\nBees dance.")]
    assert [reply.names for reply in replies] == [["web_search"], ["final_answer"]]
    assert replies[1].arguments()["answer"] == f"{NOTICE}\n\nBees dance."


def test_tool_choice_demands_a_tool_or_forbids_all() -> None:
    chosen = {"type": "function", "function": {"name": "write_file"}}
    assert first_reply("bees", *DEEP, tool_choice=chosen).names == ["write_file"]
    assert first_reply("bees", *DEEP, tool_choice="none").calls == []


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("### Task:\nGenerate a concise title for this.\nUSER: how do bees dance", "how do bees dance"),
        ('Generate a title as JSON: { "title": "x" }\nUSER: how "do" it', '{"title": "how do it"}'),
        ("Generate 1-3 broad tags, as JSON.", '{"tags": ["understudy"]}'),
        ("Suggest 3-5 relevant follow-up questions", "What else is there?"),
    ],
)
def test_prompts_for_chat_metadata_get_a_short_answer(message: str, text: str) -> None:
    assert first_reply(message).text == text


def test_response_format_gets_json_that_fits_its_schema() -> None:
    schema = {"type": "object", "properties": {"city": STRING, "n": INTEGER}, "required": ["city", "n"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(first_reply("Paris", response_format=wanted).text) == {"city": "Paris", "n": 1}


def test_prompt_for_a_plan_gets_a_plan() -> None:
    reply = first_reply("Now begin! Here is your task:\n```\nCount bees\n```\nwrite the '<end_plan>' tag")
    assert "Count bees" in reply.text
    assert reply.text.endswith("<end_plan>")


@given(SCHEMAS)
def test_arguments_fit_every_schema(schema: dict[str, Any]) -> None:
    root = {**schema, "$defs": {"Level": {"type": "string", "enum": ["low", "high"]}}}
    for name in ("ls", "grep", "read_file", "add", "task", "write_todos", "sleep", "run_code", "thing"):
        offered = {"type": "function", "function": {"name": name, "parameters": root}}
        reply = first_reply(f"use {name} for 12 bees in a.txt", offered)
        assert reply.names == [name]
        assert is_valid(reply.arguments(), root)


def test_tools_that_change_something_are_called_only_if_named() -> None:
    offered = tool("delete_all", x=STRING), tool("final_answer", answer=STRING)
    assert first_reply("bees", offered[0]).calls == []
    assert "only if you name them" in first_reply("bees", offered[0]).text
    assert first_reply("bees, with delete_all", offered[0]).names == ["delete_all"]
    assert first_reply("bees", *offered, tool_choice="required").names == ["delete_all"]


def test_call_that_is_missing_in_the_request_is_not_repeated() -> None:
    """smolagents drops a call that it could not make, and reports the error only."""
    task, error = "New task:\ntry an error", "Error:\nno such argument\nNow let's retry: do it better"
    for messages in ([user(f"{task}\n{error}")], [user(task), {"role": "assistant", "content": "Hm"}, user(error)]):
        reply = read_reply(improvise(build_request(*messages, tools=[tool("weather", city=STRING)])))
        assert reply.calls == []
    assert reply.text == "A tool failed: no such argument."
