"""The v2 dialect: fields and ids of messages, streams, steps, tool calls, sub-agents and the end of a run."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from limelight.dialects.v2.message_schema import PANES
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ArtifactMade,
    FinalAnswer,
    Outcome,
    Plan,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.runs.truncation import fit
from tests.dialects.transcripts import SCRIPTS
from tests.dialects.v2.messages import complete, messages_after_input, messages_of, single, text_events, types
from tests.support.strategies import legal_runs

FIELDS = {"role", "content", "metadata", "message_id", "timestamp", "step_number"}


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_every_message_has_the_documented_fields_and_a_pane(run: list[AnyEvent]) -> None:
    for message in messages_of(run):
        assert set(message) == FIELDS
        metadata = message["metadata"]
        assert metadata["message_type"] in PANES
        assert metadata["status"] in ("streaming", "done")
        code = metadata["message_type"] == "tool_invocation" and metadata.get("language") == "python"
        assert metadata["component"] == ("webide" if code else PANES[metadata["message_type"]])
        assert message["step_number"] == metadata.get("step_number")


@pytest.mark.requirement("v2-increments")
@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_increments_of_a_stream_add_up_to_its_last_message(run: list[AnyEvent]) -> None:
    joined: dict[str, str] = {}
    ended: set[str] = set()
    for message in messages_of(run):
        metadata = message["metadata"]
        stream_id = metadata.get("stream_id")
        if stream_id is None:
            continue
        assert message["message_id"] == stream_id
        assert stream_id not in ended
        if metadata.get("is_initial_stream"):
            assert (stream_id not in joined, message["content"]) == (True, "")
            joined[stream_id] = ""
        elif metadata["is_delta"]:
            joined[stream_id] += message["content"]
        else:
            assert message["content"] == joined[stream_id]
            ended.add(stream_id)
    assert ended == set(joined)


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_complete_messages_have_unique_ids(run: list[AnyEvent]) -> None:
    ids = [message["message_id"] for message in complete(messages_of(run))]
    assert len(set(ids)) == len(ids)


@settings(max_examples=40)
@given(legal_runs(cut=False))
def test_run_without_streaming_has_only_complete_messages(run: list[AnyEvent]) -> None:
    started = run[0]
    assert isinstance(started, RunStarted)
    messages = messages_of([msgspec.structs.replace(started, enable_streaming=False), *run[1:]])
    assert not [message for message in messages if message["metadata"].get("streaming")]
    assert types(messages) == types(complete(messages_of(run)))


def test_second_turn_of_a_session_has_other_ids() -> None:
    def ids(run: list[AnyEvent]) -> set[str]:
        return {message["message_id"] for message in messages_of(run)}

    _, first, *_ = SCRIPTS.values()
    started = first[0]
    assert isinstance(started, RunStarted)
    assert not ids(first) & ids([msgspec.structs.replace(started, turn=2), *first[1:]])


# Steps


def test_user_input_is_the_first_message() -> None:
    (echo,) = messages_of([RunStarted(agent="a", input="Why?")])
    assert (echo["role"], echo["content"], echo["step_number"]) == ("user", "Why?", None)
    assert echo["metadata"] == {"component": "chat", "message_type": "user", "status": "done"}


def code_events(args_text: str, args: dict[str, Any] | str, **ready: Any) -> list[AnyEvent]:
    """The events of a call of Python whose arguments stream in pieces of seven characters."""
    pieces = [args_text[at : at + 7] for at in range(0, len(args_text), 7)]
    return [
        ToolStarted(call_id="c", name="python_interpreter"),
        *(ToolArgsDelta(call_id="c", text=piece) for piece in pieces),
        ToolReady(call_id="c", args=args, **ready),
        ToolFinished(call_id="c", result=""),
    ]


def invocations(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in complete(messages) if message["metadata"]["message_type"] == "tool_invocation"]


@pytest.mark.requirement("code-while-written")
def test_code_grows_in_the_code_pane_under_one_stream_id() -> None:
    found = messages_after_input(*code_events('{"code": "a = 1\\nb = \\u00e9"}', {"code": "a = 1\nb = é"}))
    stream = [message for message in found if message["metadata"]["message_type"] == "tool_invocation"]
    assert {message["metadata"]["component"] for message in stream} == {"webide"}
    assert len({message["message_id"] for message in stream}) == 1
    assert len(stream) > 5
    assert "".join(message["content"] for message in stream[:-1]) == "```python\na = 1\nb = é\n```"
    (last,) = invocations(found)
    assert last["content"] == "```python\na = 1\nb = é\n```"
    assert (last["metadata"]["code"], last["metadata"]["code_lines"]) == ("a = 1\nb = é", 2)
    assert types(complete(found))[1:4] == ["tool_call", "tool_invocation", "observation"]


def test_code_that_differs_from_the_streamed_code_is_a_second_message() -> None:
    found = messages_after_input(*code_events('{"code": "final_answer = 1"}', {"code": "final_answer_variable = 1"}))
    assert [one["metadata"]["code"] for one in invocations(found)] == ["final_answer = 1", "final_answer_variable = 1"]


@pytest.mark.parametrize(
    ("args_text", "args", "code"),
    [
        ('{"code": "a = ', '{"code": "a = ', "a = "),
        ("a = 1", "a = 1", "a = 1"),
        ("", {"code": "a = 1"}, "a = 1"),
        ('{"code": "a = ', {"code": "a = 1"}, "a = 1"),
        ('{"x": 1, "script": "a"}', {"x": 1, "script": "a"}, "a"),
        ('{"x": "a"}', {"x": "a"}, '{"x":"a"}'),
    ],
)
def test_code_in_unusual_arguments_is_one_message(args_text: str, args: dict[str, Any] | str, code: str) -> None:
    (last,) = invocations(messages_after_input(*code_events(args_text, args)))
    assert (last["metadata"]["code"], last["content"]) == (code, f"```python\n{code}\n```")


def test_streamed_code_that_the_log_truncates_stays_complete() -> None:
    code = "value = 1\n" * 4_000
    text = msgspec.json.encode({"code": code}).decode()
    kept = [event for one in code_events(text, {"code": code}) for event in fit(one, "run_0", 10**6).events]
    found = messages_after_input(*kept)
    (last,) = invocations(found)
    assert last["content"] == f"```python\n{code}\n```"
    assert last["metadata"]["truncated"] is True
    assert last["metadata"]["result_url"]


def test_code_of_several_pages_is_split() -> None:
    code = "value = 1\n" * 12_000
    text = msgspec.json.encode({"code": code}).decode()
    kept = [event for one in code_events(text, {"code": code}) for event in fit(one, "run_0", 10**6).events]
    pages = invocations(messages_after_input(*kept))
    assert "".join(page["content"] for page in pages) == f"```python\n{code}\n```"
    assert [page["metadata"].get("continued", False) for page in pages] == [True, True, False]


def test_code_without_streaming_is_one_message_with_a_safe_fence() -> None:
    args = {"code": "text = (\n```\n)"}
    text = msgspec.json.encode(args).decode()
    whole = invocations(messages_after_input(*code_events(text, args), enable_streaming=False))
    assert [one["content"] for one in whole] == [f"````python\n{args['code']}\n````"]


def test_action_of_a_code_agent_has_all_messages_in_order() -> None:
    found = messages_after_input(
        StepStarted(number=3),
        ReasoningDelta(message_id="r", text="I add. " * 20),
        ReasoningFinished(message_id="r"),
        ToolStarted(call_id="c", name="python_interpreter"),
        ToolReady(call_id="c", args={"code": "import math\nprint(1)"}),
        ToolOutputDelta(call_id="c", text="1\n"),
        ToolFinished(call_id="c", result=2, duration_ms=1500),
        StepFinished(number=3, input_tokens=1200, output_tokens=34, duration_ms=2500),
        framework="smolagents",
    )
    shown = complete(found)
    assert types(shown) == [
        "action_header",
        "action_thought",
        "tool_call",
        "tool_invocation",
        "execution_logs",
        "observation",
        "action_footer",
        "separator",
    ]
    assert {message["step_number"] for message in shown} == {3}
    header, thought, call, code, logs, result, footer, separator = shown
    assert header["content"] == "**Step 3**"
    assert thought["metadata"]["thoughts_content"] == ("I add. " * 20)[:60] + "..."
    assert thought["content"] == "I add. " * 20
    assert (call["content"], call["metadata"]["is_python_interpreter"]) == ("", True)
    assert code["content"] == "```python\nimport math\nprint(1)\n```"
    assert code["metadata"]["component"] == "webide"
    assert {key: code["metadata"][key] for key in ("code", "language", "code_lines", "has_imports")} == {
        "code": "import math\nprint(1)",
        "language": "python",
        "code_lines": 2,
        "has_imports": True,
    }
    assert (logs["content"], logs["metadata"]["component"]) == ("1\n", "terminal")
    assert (result["content"], result["metadata"]["component"]) == ("2", "terminal")
    assert result["metadata"]["execution_duration"] == 1.5
    assert footer["content"] == "**Step 3** | Input tokens: 1,200 | Output tokens: 34 | Duration: 2.50s"
    usage = {"input_tokens": 1200, "output_tokens": 34, "total_tokens": 1234}
    assert (footer["metadata"]["token_usage"], footer["metadata"]["timing"]) == (usage, {"duration": 2.5})
    assert separator["content"] == "-----"


@pytest.mark.requirement("v2-steps")
@settings(max_examples=100)
@given(legal_runs(cut=False))
def test_every_header_has_a_footer(run: list[AnyEvent]) -> None:
    kinds = Counter(types(messages_of(run)))
    assert kinds["planning_header"] == kinds["planning_footer"]
    assert kinds["action_header"] == kinds["action_footer"]


def test_agent_without_steps_gets_one_for_each_text_and_its_calls() -> None:
    def call(call_id: str) -> list[AnyEvent]:
        return [ToolStarted(call_id=call_id, name="look", args={}), ToolFinished(call_id=call_id, result="x")]

    found = messages_after_input(
        *text_events("One.", "a"), *call("1"), *call("2"), *text_events("Two.", "b"), *call("3")
    )
    steps = [message["content"] for message in complete(found) if "action_header" in types([message])]
    assert steps == ["**Step 1**", "**Step 2**"]
    calls = [message["step_number"] for message in found if "tool_call" in types([message])]
    assert calls == [1, 1, 2]


STEP = ["action_header", "action_thought", "tool_call", "tool_invocation", "observation", "action_footer", "separator"]


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("agent_id", ["", "s"])
def test_text_beside_a_call_is_in_the_step_of_the_call(agent_id: str, streams: bool) -> None:
    """A model may write text and calls in one message: the text, or its end, then comes after the start of the call."""
    text = TextDelta(agent_id=agent_id, message_id="m", text="I look.")
    found = messages_after_input(
        *([AgentStarted(agent_id="s", name="helper")] if agent_id else []),
        StepStarted(agent_id=agent_id, number=1),
        *([text] if streams else []),
        ToolStarted(agent_id=agent_id, call_id="c", name="look"),
        *([] if streams else [text]),
        TextFinished(agent_id=agent_id, message_id="m"),
        ToolReady(agent_id=agent_id, call_id="c", args={}),
        ToolFinished(agent_id=agent_id, call_id="c", result="x"),
        StepFinished(agent_id=agent_id, number=1),
        StepStarted(agent_id=agent_id, number=2),
    )
    first = [message for message in complete(found) if message["step_number"] == 1]
    assert types(first) == STEP


def test_report_of_a_sub_agent_is_in_its_step() -> None:
    found = messages_after_input(
        AgentStarted(agent_id="s", name="helper"),
        StepStarted(agent_id="s", number=1),
        TextDelta(agent_id="s", message_id="m", text="Done."),
        TextFinished(agent_id="s", message_id="m"),
        StepFinished(agent_id="s", number=1),
        AgentFinished(agent_id="s"),
    )
    shown = ["agent_start", "action_header", "action_thought", "action_footer", "separator", "agent_end"]
    assert types(complete(found)) == shown


@pytest.mark.requirement("v2-steps")
@pytest.mark.parametrize("error", [None, "it broke"])
def test_thought_comes_before_the_footer_of_its_step(error: str | None) -> None:
    """In a graph of two nodes, the first text may be the answer until the second node begins."""
    found = messages_after_input(
        StepStarted(number=1, step_kind="look"),
        *text_events("I looked.", "a"),
        StepFinished(number=1, step_kind="look", error=error),
        StepStarted(number=2, step_kind="tell"),
        *text_events("I tell.", "b"),
        StepFinished(number=2, step_kind="tell", error=error),
        FinalAnswer(content="I tell.", message_id="b"),
        RunFinished(),
    )
    broke = [] if error is None else ["error"]
    end = [*broke, "action_footer", "separator"]
    assert types(complete(found)) == ["action_header", "action_thought", *end, "action_header", *end, "final_answer"]


@pytest.mark.parametrize("end", [RunFailed(code="x", message="no"), RunCancelled()])
def test_thought_comes_before_the_footer_if_the_run_ends(end: AnyEvent) -> None:
    found = messages_after_input(
        StepStarted(number=1), *text_events("I looked."), StepFinished(number=1, duration_ms=5), end
    )
    assert types(complete(found))[:-1] == ["action_header", "action_thought", "action_footer", "separator"]
    assert single(found, "action_footer")["metadata"]["timing"] == {"duration": 0.005}


CUT_OFF: list[tuple[AnyEvent, str, Outcome, list[str]]] = [
    (RunCancelled(), "stopped", "stopped", ["status"]),
    (RunCancelled(), "stopped", "failed", ["error", "status"]),
    (RunFailed(code="run_timeout", message="too long"), "too long", "stopped", ["error"]),
    (RunFailed(code="agent_error", message="boom"), "boom", "", ["error"]),
    (RunFailed(code="agent_error", message="boom"), "something else", "", ["error", "error"]),
]


def test_stopped_step_has_no_error_of_its_own() -> None:
    found = messages_after_input(
        StepStarted(number=1),
        StepFinished(number=1, error="lost", outcome="stopped"),
        RunFailed(code="x", message="something else"),
    )
    assert types(complete(found)) == ["action_header", "action_footer", "separator", "error"]
    assert single(found, "error")["content"] == "Error: something else"


@pytest.mark.parametrize(("end", "reason", "outcome", "expected"), CUT_OFF)
def test_end_of_the_run_is_reported_once_and_a_stop_is_not_an_error(
    end: AnyEvent, reason: str, outcome: Outcome, expected: list[str]
) -> None:
    found = messages_after_input(
        StepStarted(number=1),
        *text_events("Hm."),
        ToolStarted(call_id="c", name="look", args={}),
        ToolFinished(call_id="c", result=f"Error: {reason}", error=reason, outcome=outcome),
        StepFinished(number=1, error=reason, outcome=outcome),
        end,
    )
    kinds = types(complete(found))
    assert [kind for kind in kinds if kind in ("error", "status")] == expected
    assert kinds.count("action_footer") == 1


def test_end_of_a_sub_agent_is_reported_once() -> None:
    found = messages_after_input(
        AgentStarted(agent_id="h", name="helper"),
        StepStarted(agent_id="h", number=1),
        StepFinished(agent_id="h", number=1, error="stopped"),
        AgentFinished(agent_id="h", error="stopped"),
        RunCancelled(),
    )
    assert types(complete(found)) == [
        "agent_start",
        "action_header",
        "action_footer",
        "separator",
        "agent_end",
        "status",
    ]


def test_error_of_a_step_comes_before_the_next_message() -> None:
    broke = StepFinished(number=1, error="no such tool")
    for next_ in (StepStarted(number=2), TextDelta(message_id="n", text="Hm."), Plan(text="Otherwise.")):
        kinds = types(complete(messages_after_input(StepStarted(number=1), *text_events("Hm."), broke, next_)))
        assert kinds[:5] == ["action_header", "action_thought", "error", "action_footer", "separator"], next_


def test_implicit_step_stays_open_while_its_tools_run() -> None:
    found = messages_after_input(
        ToolStarted(call_id="c", name="look", args={}),
        *text_events("Meanwhile."),
        ToolFinished(call_id="c", result="seen"),
        *text_events("Now."),
        RunCancelled(),
    )
    first = ["action_header", "tool_call", "tool_invocation", "observation", "action_thought"]
    assert types(complete(found))[:7] == [*first, "action_footer", "separator"]


@pytest.mark.parametrize("agent_id", ["", "helper"])
def test_step_ends_after_its_open_texts(agent_id: str) -> None:
    texts = [TextDelta(agent_id=agent_id, message_id=name, text="Hm.") for name in "ab"]
    over = [TextFinished(agent_id=agent_id, message_id=name) for name in "ab"]
    found = messages_after_input(
        AgentStarted(agent_id="helper", name="helper"),
        StepStarted(agent_id=agent_id, number=1),
        *texts,
        StepFinished(agent_id=agent_id, number=1, duration_ms=5),
        *over,
        AgentFinished(agent_id="helper"),
        RunCancelled(),
    )
    kinds = [kind for kind in types(complete(found)) if kind not in ("agent_start", "agent_end", "status")]
    assert kinds == ["action_header", "action_thought", "action_thought", "action_footer", "separator"]


def test_messages_of_a_sub_agent_have_its_name() -> None:
    found = messages_after_input(
        ToolStarted(call_id="t", name="task", args={}),
        AgentStarted(agent_id="s", name="reader", call_id="t"),
        TextDelta(agent_id="s", message_id="m", text="I read."),
        TextFinished(agent_id="s", message_id="m"),
        AgentFinished(agent_id="s"),
        ToolFinished(call_id="t", result="done"),
    )
    named = [message["metadata"] for message in found if "agent_id" in message["metadata"]]
    assert {(data["agent_id"], data["agent_name"], data["depth"]) for data in named} == {("s", "reader", 1)}
    assert {"agent_start", "action_thought", "agent_end"} <= {data["message_type"] for data in named}


# Tools


@pytest.mark.parametrize(
    ("args", "summary"),
    [
        ({"query": "capital of France"}, "query=capital of France"),
        ({"a": 1, "b": [2], "c": "3", "d": 4}, "a=1, b=[2], c=3 … (4 args)"),
        ({"text": "x" * 50}, f"text={'x' * 40}..."),
        ("not json", "not json"),
        ({}, ""),
    ],
)
def test_badge_has_a_summary_of_the_arguments(args: Any, summary: str) -> None:
    found = messages_after_input(ToolStarted(call_id="c", name="search", args=args))
    assert single(found, "tool_call")["metadata"]["tool_args_summary"] == summary


def test_every_call_of_a_step_has_an_invocation() -> None:
    started = [ToolStarted(call_id=str(number), name="search", args={"n": number}) for number in range(3)]
    assert types(messages_after_input(*started)).count("tool_invocation") == 3


def test_agent_declares_its_python_tools() -> None:
    event = ToolStarted(call_id="c", name="run", args={"code": "1"})
    assert single(messages_after_input(event), "tool_invocation")["metadata"]["component"] == "chat"
    found = messages_after_input(event, python_tools=("run",))
    assert single(found, "tool_invocation")["metadata"]["component"] == "webide"


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        ("no such file", "ToolError"),
        ("FileNotFoundError: no such file", "FileNotFoundError"),
        ("FileNotFoundError", "FileNotFoundError"),
        ("FileNotFoundError('no such file')", "FileNotFoundError"),
        ("Code execution failed at line 'f()' due to: ZeroDivisionError: division by zero", "ZeroDivisionError"),
        ("the Error is that there is none", "ToolError"),
    ],
)
def test_observation_of_a_failed_tool_has_the_error(error: str, error_type: str) -> None:
    found = messages_after_input(
        ToolStarted(call_id="c", name="open", args={}),
        ToolFinished(call_id="c", result=f"Error: {error}", error=error),
    )
    metadata = single(found, "observation")["metadata"]
    assert (metadata["error"], metadata["has_error"], metadata["error_type"]) == (True, True, error_type)


def test_image_is_sent_as_a_link() -> None:
    event = ArtifactMade(artifact_id="art_1", name="plot.png", media_type="image/png", size=3)
    image = single(messages_after_input(event), "observation_image")
    assert image["content"] == "![Image](/artifacts/art_1)"
    assert (image["metadata"]["image_path"], image["metadata"]["mime_type"]) == ("/artifacts/art_1", "image/png")


# The end of a run


def test_failure_has_class_code_and_error_id() -> None:
    failed = RunFailed(code="agent_error", message="RuntimeError: no", error_id="err_1")
    error = single(messages_after_input(failed), "error")
    assert error["content"] == "Error: RuntimeError: no"
    expected = {"error": True, "error_type": "RuntimeError", "code": "agent_error", "error_id": "err_1"}
    assert expected.items() <= error["metadata"].items()
    unnamed = single(messages_after_input(RunFailed(code="run_timeout", message="too long")), "error")
    assert unnamed["metadata"]["error_type"] == "RunTimeout"


def test_stop_is_a_status() -> None:
    assert single(messages_after_input(RunCancelled(reason="enough")), "status")["content"] == "Stopped"
