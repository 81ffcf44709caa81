# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""LangGraph's translator alone: parts in, legal Events out."""

import inspect
import re
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, get_args

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.messages.utils import _convert_to_message  # pyright: ignore[reportPrivateUsage]
from langgraph.pregel import _tools  # pyright: ignore[reportPrivateUsage]
from langgraph.types import StreamMode

from limelight.events import (
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    FinalAnswer,
    ReasoningDelta,
    RunStarted,
    SourceCited,
    Status,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.grammar import Grammar, unseen_result
from limelight.sources.base import Approval, FileMade, with_defaults
from limelight.sources.langgraph.approvals import Interrupted, interrupt_of, resume_value
from limelight.sources.langgraph.stream_parts import MODES, call_ids_in, part_of
from limelight.sources.langgraph.tasks import is_message_form
from limelight.sources.langgraph.tool_calls import GraphCall
from limelight.sources.langgraph.translator import DROPS, MODEL_MESSAGES, LangGraphTranslator

META = {"langgraph_node": "model", "langgraph_checkpoint_ns": "model:m1", "ls_model_name": "any"}


class Run:
    """A translator with a grammar that checks its events."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.translator = LangGraphTranslator(clock=clock)
        self.grammar = Grammar()
        self.events: list[AnyEvent] = []
        self._take([RunStarted(agent="x")])

    def feed(self, type_: str, data: Any, *ns: str) -> None:
        self._take(self.translator.feed(part_of({"type": type_, "ns": ns, "data": data})))

    def say(self, content: Any, *ns: str, id: str = "m1", meta: Any = META, **fields: Any) -> None:
        self.feed("messages", (AIMessageChunk(content=content, id=id, **fields), meta), *ns)

    def tool(self, event: str, call_id: str = "c1", *ns: str, **fields: Any) -> None:
        self.feed("tools", {"event": event, "tool_call_id": call_id, **fields}, *ns)

    def end(self, answer: Any = None, raw_id: str | None = None) -> FinalAnswer:
        self._take(self.translator.end(answer, raw_id))
        return self.of(FinalAnswer)[0]

    def broken(self, error: str) -> None:
        self._take(self.translator.failed(error))

    def _take(self, items: Any) -> None:
        for item in items:
            if not isinstance(item, FileMade):
                self.grammar.check(item)
                self.events.append(with_defaults(item))

    def of(self, kind: Any) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def text(self) -> str:
        return "".join(e.text for e in self.of(TextDelta))

    @property
    def thoughts(self) -> list[str]:
        found: dict[str, str] = {}
        for event in self.of(ReasoningDelta):
            found[event.message_id] = found.get(event.message_id, "") + event.text
        return list(found.values())


@pytest.fixture
def run() -> Run:
    return Run()


# Texts


def test_complete_message_after_its_chunks_is_not_shown_again(run: Run) -> None:
    run.say("")
    run.say("All ")
    run.say("done.")
    run.say("", chunk_position="last")
    run.feed("messages", (AIMessage("All done.", id="m1"), META))
    answer = run.end("All done.", "m1")
    assert run.text == answer.content == "All done."
    assert answer.message_id == run.of(TextDelta)[0].message_id
    assert len(run.of(TextFinished)) == 1


def test_responses_api_blocks_with_changing_ids_are_one_text(run: Run) -> None:
    run.say([], id="resp_1")
    run.say([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Let me "}], "index": 0}], id="lc_1")
    run.say([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "think."}], "index": 0}], id="lc_1")
    run.say([], id="msg_1")
    run.say([{"type": "text", "text": "All ", "index": 1}], id="lc_1")
    note = {"type": "url_citation", "title": "Bees", "url": "https://bees.example/"}
    run.say([{"type": "text", "text": "done.", "annotations": [note], "index": 1}], id="lc_1")
    run.say([], id="resp_1", chunk_position="last", usage_metadata=cost(5, 2))
    assert run.end("All done.", "msg_1").message_id is not None
    assert (run.text, run.thoughts) == ("All done.", ["Let me think."])
    assert (run.of(SourceCited)[0].title, run.of(SourceCited)[0].url) == ("Bees", "https://bees.example/")


def test_reasoning_after_text_gets_another_id(run: Run) -> None:
    run.say([{"type": "thinking", "thinking": "First."}])
    run.say([{"type": "text", "text": "One. "}])
    run.say([{"type": "thinking", "thinking": "Second."}])
    run.say([{"type": "text", "text": "Two."}])
    run.say("", chunk_position="last")
    assert (run.text, run.thoughts) == ("One. Two.", ["First.", "Second."])
    assert run.end("One. Two.", "m1").message_id is not None


def test_reasoning_content_is_shown_as_reasoning(run: Run) -> None:
    run.say("", additional_kwargs={"reasoning_content": "Let me think."})
    run.say("Done.")
    run.end("Done.", "m1")
    assert (run.text, run.thoughts) == ("Done.", ["Let me think."])


def test_message_that_reuses_an_id_is_another_message(run: Run) -> None:
    run.say("one", chunk_position="last")
    run.say("two", chunk_position="last")
    assert run.end("two", "m1").message_id == run.of(TextDelta)[1].message_id
    assert [e.text for e in run.of(TextDelta)] == ["one", "two"]
    assert len({e.message_id for e in run.of(TextDelta)}) == 2


def test_messages_of_earlier_turns_are_not_shown(run: Run) -> None:
    run.translator.add_earlier(["old", None])
    for message in (AIMessage("old answer", id="old"), HumanMessage("old question", id="q"), RemoveMessage(id="old")):
        run.feed("messages", (message, META))
    assert run.events[1:] == []


def test_equal_answers_are_distinguished_by_their_message_id(run: Run) -> None:
    run.say("Yes.", id="a", chunk_position="last")
    run.say("Yes.", id="b", chunk_position="last")
    assert run.end("Yes.", "a").message_id == run.of(TextDelta)[0].message_id


def test_answer_that_was_not_streamed_has_no_message_id(run: Run) -> None:
    run.say("Something else.", chunk_position="last")
    assert run.end("The answer.").message_id is None


def cost(input_tokens: int, output_tokens: int) -> Any:
    total = input_tokens + output_tokens
    return {"input_tokens": input_tokens, "output_tokens": output_tokens, "total_tokens": total}


def test_usage_is_shown_once(run: Run) -> None:
    run.say("Hi.", usage_metadata=cost(10, 0))
    run.say("", usage_metadata=cost(0, 3), chunk_position="last")
    run.feed("messages", (AIMessage("Hi.", id="m1", usage_metadata=cost(10, 3)), META))
    assert [(u.input_tokens, u.output_tokens) for u in run.of(Usage)] == [(10, 0), (0, 3)]


# Calls


def chunk(args: str, *, name: str | None = None, id: str | None = None, index: int = 0) -> Any:
    return {"type": "tool_call_chunk", "name": name, "args": args, "id": id, "index": index}


def test_streamed_call_starts_runs_and_ends_once(run: Run) -> None:
    run.say("", tool_call_chunks=[chunk("", name="add", id="c1")])
    run.say("", tool_call_chunks=[chunk('{"a": 1, ')])
    run.say("", tool_call_chunks=[chunk('"b": 2}')])
    run.tool("tool-started", tool_name="add", input={"a": 1, "b": 2})
    run.say("", tool_call_chunks=[chunk("too late")])
    run.tool("tool-output-delta", delta={"half": "way"})
    run.tool("tool-finished", output=ToolMessage("3", tool_call_id="c1"))
    run.tool("tool-output-delta", delta="after the end")
    run.tool("tool-finished", output=ToolMessage("4", tool_call_id="c1"))
    run.feed("messages", (ToolMessage("3", tool_call_id="c1"), META))
    kinds = [ToolStarted, ToolArgsDelta, ToolArgsDelta, ToolReady, ToolOutputDelta, ToolFinished]
    assert [type(event) for event in run.events[1:]] == kinds
    assert (run.of(ToolReady)[0].args, run.of(ToolFinished)[0].result) == ({"a": 1, "b": 2}, "3")


def test_events_of_unknown_calls_are_ignored(run: Run) -> None:
    run.say("", tool_call_chunks=[chunk("{}")])
    run.tool("tool-finished", "unknown", output="x")
    run.tool("tool-error", "unknown", message="x")
    run.feed("messages", (ToolMessage("x", tool_call_id="unknown"), META))
    assert run.events[1:] == []


def test_unknown_tool_event_is_ignored(run: Run) -> None:
    run.tool("tool-started", tool_name="add", input={})
    run.tool("tool-paused")
    assert [type(event) for event in run.events[1:]] == [ToolStarted]


def test_call_without_a_result_ends_with_the_run_and_has_not_failed(run: Run) -> None:
    run.say("", tool_call_chunks=[chunk('{"a": ', name="add", id="c1")])
    run.end("x")
    assert run.of(ToolReady)[0].args == '{"a": '
    assert run.of(ToolFinished) == [unseen_result("", "c1")]


def test_call_that_is_open_when_the_graph_raises_is_stopped(run: Run) -> None:
    run.say("", tool_call_chunks=[chunk("{}", name="add", id="c1")])
    run.broken("ValueError: no")
    ended = run.of(ToolFinished)[0]
    assert (ended.error, ended.outcome, ended.result_seen) == ("cut off: ValueError: no", "stopped", True)


# Tools that nodes run

FIRST_RUN, SECOND_RUN = "01a1eb0d-73c6-76d3-bd1c-d5b373334b62", "01a1eb0d-73c7-7471-bf45-3db3171234bd"


def made(run: Run, *calls: tuple[str, Any]) -> None:
    """The model makes calls of `add`, and a node gets them."""
    named: list[Any] = [{"name": "add", "args": args, "id": call_id, "type": "tool_call"} for call_id, args in calls]
    message = AIMessage("", id="m1", tool_calls=named)
    run.feed("messages", (message, META))
    run.feed("tasks", {"id": "a1", "name": "act", "input": {"messages": [message]}})


def returned(run: Run, *messages: Any, key: str = "messages") -> None:
    run.feed("tasks", {"id": "a1", "name": "act", "result": {key: [*messages]}, "error": None, "interrupts": []})


def ends(run: Run) -> list[tuple[str, Any, str | None]]:
    return [(finished.call_id, finished.result, finished.error) for finished in run.of(ToolFinished)]


def test_runs_of_a_node_are_matched_by_their_arguments(run: Run) -> None:
    made(run, ("c1", {"a": 1}), ("c2", {"a": 2}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 2})
    run.tool("tool-started", SECOND_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-finished", SECOND_RUN, output="one")
    run.tool("tool-finished", FIRST_RUN, output="two")
    assert ends(run) == []
    returned(run)
    assert sorted(ends(run)) == [("c1", "one", None), ("c2", "two", None)]


def test_run_with_other_arguments_is_a_call_of_its_own(run: Run) -> None:
    made(run, ("c1", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 2})
    run.tool("tool-finished", FIRST_RUN, output="two")
    run.tool("tool-started", SECOND_RUN, tool_name="other", input={"a": 1})
    run.tool("tool-finished", SECOND_RUN, output="else")
    returned(run, {"role": "tool", "content": "one", "tool_call_id": "c1"})
    assert ends(run) == [(FIRST_RUN, "two", None), (SECOND_RUN, "else", None), ("c1", "one", None)]


def test_run_with_unknown_arguments_is_matched_by_name(run: Run) -> None:
    made(run, ("c1", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="add")
    run.tool("tool-finished", FIRST_RUN, output="one")
    returned(run)
    assert ends(run) == [("c1", "one", None)]


def test_run_after_a_failed_run_belongs_to_the_same_call(run: Run) -> None:
    made(run, ("c1", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-error", FIRST_RUN, message="no luck")
    run.tool("tool-started", SECOND_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-finished", SECOND_RUN, output="one")
    returned(run)
    assert ends(run) == [("c1", "one", None)]


def test_run_after_a_successful_run_is_a_call_of_its_own(run: Run) -> None:
    made(run, ("c1", {"a": 1}))
    for run_id, output in ((FIRST_RUN, "first"), (SECOND_RUN, "second")):
        run.tool("tool-started", run_id, tool_name="add", input={"a": 1})
        run.tool("tool-finished", run_id, output=output)
    returned(run)
    assert sorted(ends(run)) == [(SECOND_RUN, "second", None), ("c1", "first", None)]


def test_failed_run_fails_its_call_when_the_node_ends(run: Run) -> None:
    made(run, ("c1", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-error", FIRST_RUN, message="no luck")
    returned(run)
    assert ends(run) == [("c1", "Error: no luck", "no luck")]


def test_duration_of_a_run_excludes_the_rest_of_its_node() -> None:
    now = [0.0]
    run = Run(lambda: now[0])
    made(run, ("c1", {"a": 1}))
    now[0] = 1.0
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    now[0] = 3.0
    run.tool("tool-finished", FIRST_RUN, output="one")
    now[0] = 10.0
    returned(run)
    assert run.of(ToolFinished)[0].duration_ms == 2000


def test_duration_of_a_call_without_a_run_is_that_of_its_node() -> None:
    now = [0.0]
    run = Run(lambda: now[0])
    made(run, ("c1", {"a": 1}))
    now[0] = 4.0
    returned(run, {"role": "tool", "content": "one", "tool_call_id": "c1"})
    assert run.of(ToolFinished)[0].duration_ms == 4000


# Tools that parallel tasks run


Given = Callable[[Any, Any], Any]
"""Makes the input of a task from a call and the message with all calls."""


def fan_out(run: Run, *calls: tuple[str, Any], given: Given = lambda call, _: {"call": call}) -> None:
    """The model makes calls of `add`, and each gets a task with the id of the call."""
    named: list[Any] = [{"name": "add", "args": args, "id": call_id, "type": "tool_call"} for call_id, args in calls]
    message = AIMessage("", id="m1", tool_calls=named)
    run.feed("messages", (message, META))
    for call in named:
        run.feed("tasks", {"id": f"task-{call['id']}", "name": "worker", "input": given(call, message)})


def worker_returned(run: Run, call_id: str, *messages: Any) -> None:
    result = {"messages": [*messages]}
    run.feed("tasks", {"id": f"task-{call_id}", "name": "worker", "result": result, "error": None, "interrupts": []})


def answer_to(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "content": f"{call_id} done", "tool_call_id": call_id}


GIVEN: list[Given] = [
    lambda call, _: call,
    lambda call, _: {"call": call},
    lambda call, message: {"call": call, "messages": [message]},
    lambda call, message: {"call": call, "messages": [message.model_dump()]},
    lambda call, _: {"work": {"calls": [call]}},
    lambda call, _: {"tool_call_id": call["id"], "args": call["args"]},
    lambda call, _: {"call": {"id": call["id"], "type": "function", "function": {"name": "add", "arguments": "{}"}}},
    lambda call, _: {"text": str(call)},
    lambda _, message: {"messages": [message]},
]


@pytest.mark.parametrize("given", GIVEN)
def test_run_of_a_parallel_task_ends_with_the_message_of_its_task(run: Run, given: Any) -> None:
    fan_out(run, ("c1", {"a": 1}), ("c2", {"a": 2}), given=given)
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-finished", FIRST_RUN, output="raw")
    run.tool("tool-started", SECOND_RUN, tool_name="add", input={"a": 2})
    run.tool("tool-finished", SECOND_RUN, output="raw")
    worker_returned(run, "c2", answer_to("c2"))
    assert ends(run) == [("c2", "c2 done", None)]
    worker_returned(run, "c1", answer_to("c1"))
    assert ends(run)[1:] == [("c1", "c1 done", None)]


@pytest.mark.parametrize("given", GIVEN)
def test_run_matched_to_an_equal_call_moves_to_the_call_of_its_message(run: Run, given: Any) -> None:
    fan_out(run, ("c1", {"a": 1}), ("c2", {"a": 1}), given=given)
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-error", FIRST_RUN, message="no luck")
    worker_returned(run, "c2", {**answer_to("c2"), "status": "error"})
    run.tool("tool-started", SECOND_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-finished", SECOND_RUN, output="raw")
    worker_returned(run, "c1", answer_to("c1"))
    assert [started.call_id for started in run.of(ToolStarted)] == ["c1", "c2"]
    assert ends(run) == [("c2", "Error: c2 done", "c2 done"), ("c1", "c1 done", None)]


def test_equal_calls_exchange_runs_when_the_first_message_belongs_to_the_other() -> None:
    now = [0.0]
    run = Run(lambda: now[0])
    fan_out(run, ("c1", {"a": 1}), ("c2", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-started", SECOND_RUN, tool_name="add", input={"a": 1})
    now[0] = 1.0
    run.tool("tool-finished", FIRST_RUN, output="raw")
    worker_returned(run, "c2", answer_to("c2"))
    now[0] = 5.0
    run.tool("tool-finished", SECOND_RUN, output="raw")
    worker_returned(run, "c1", answer_to("c1"))
    assert ends(run) == [("c2", "c2 done", None), ("c1", "c1 done", None)]
    assert [finished.duration_ms for finished in run.of(ToolFinished)] == [1000, 5000]


def test_tool_started_by_id_after_a_failed_run_does_not_get_its_duration() -> None:
    now = [0.0]
    run = Run(lambda: now[0])
    made(run, ("c1", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    now[0] = 1.0
    run.tool("tool-error", FIRST_RUN, message="busy")
    run.tool("tool-started", "c1", tool_name="add", input={"a": 1})
    now[0] = 5.0
    run.tool("tool-finished", "c1", output=ToolMessage("c1 done", tool_call_id="c1"))
    assert ends(run) == [("c1", "c1 done", None)]
    assert [finished.duration_ms for finished in run.of(ToolFinished)] == [None]  # the engine measures it


def test_run_of_a_parallel_task_without_a_message_ends_with_its_value(run: Run) -> None:
    fan_out(run, ("c1", {"a": 1}), ("c2", {"a": 2}), given=lambda call, _: {"text": str(call)})
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": 1})
    run.tool("tool-finished", FIRST_RUN, output="one")
    worker_returned(run, "c1")
    assert ends(run) == []
    worker_returned(run, "c2")
    assert ends(run) == [("c1", "one", None)]


def test_search_in_a_large_task_input_is_limited(run: Run) -> None:
    call: Any = {"name": "add", "args": {}, "id": "c1", "type": "tool_call"}
    deep: Any = call
    for _ in range(2000):
        deep = [deep]
    assert call_ids_in({"rows": [{"row": [number]} for number in range(10_000)], "call": call}) == ["c1"]
    assert call_ids_in({"deep": deep}) == []


# Runs that differ from their calls


def test_converted_argument_is_matched_to_the_only_call_with_the_name(run: Run) -> None:
    made(run, ("c1", {"a": "x, y"}), ("c2", {"a": ["z"]}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": ["x", "y"]})
    run.tool("tool-finished", FIRST_RUN, output="two")
    returned(run, answer_to("c1"), answer_to("c2"))
    assert ends(run) == [("c1", "c1 done", None), ("c2", "c2 done", None)]


def test_converted_argument_that_fits_two_calls_is_a_call_of_its_own(run: Run) -> None:
    made(run, ("c1", {"a": "x"}), ("c2", {"a": "y"}))
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={"a": ["x"]})
    run.tool("tool-finished", FIRST_RUN, output="one")
    returned(run, answer_to("c1"), answer_to("c2"))
    assert ends(run) == [(FIRST_RUN, "one", None), ("c1", "c1 done", None), ("c2", "c2 done", None)]


@pytest.mark.parametrize("is_live", [True, False])
def test_run_with_the_name_of_the_call_replaces_a_guessed_run(run: Run, is_live: bool) -> None:
    made(run, ("c1", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="check", input={"a": 1})
    if not is_live:
        run.tool("tool-finished", FIRST_RUN, output="fine")
    run.tool("tool-started", SECOND_RUN, tool_name="add", input={"a": 1})
    if is_live:
        run.tool("tool-finished", FIRST_RUN, output="fine")
    run.tool("tool-finished", SECOND_RUN, output="one")
    returned(run, answer_to("c1"))
    assert [(started.call_id, started.name) for started in run.of(ToolStarted)] == [("c1", "add"), (FIRST_RUN, "check")]
    assert ends(run) == [(FIRST_RUN, "fine", None), ("c1", "c1 done", None)]


def test_failed_run_with_another_name_does_not_fail_a_call_with_a_result(run: Run) -> None:
    made(run, ("c1", {"a": 1}))
    run.tool("tool-started", FIRST_RUN, tool_name="check", input={"a": 1})
    run.tool("tool-error", FIRST_RUN, message="no luck")
    returned(run, answer_to("c1"))
    assert ends(run) == [("c1", "c1 done", None)]


def test_run_without_arguments_is_not_matched_to_another_name(run: Run) -> None:
    made(run, ("c1", {}))
    run.tool("tool-started", FIRST_RUN, tool_name="check", input={})
    run.tool("tool-finished", FIRST_RUN, output="fine")
    returned(run, answer_to("c1"))
    assert ends(run) == [(FIRST_RUN, "fine", None), ("c1", "c1 done", None)]


# Calls without ids


def test_streamed_calls_without_id_and_index_are_two_calls(run: Run) -> None:
    for args in ('{"a": 1}', '{"a": 2}'):
        run.say("", tool_call_chunks=[{**chunk(args, name="add", id=None), "index": None}])
    run.end("x")
    assert [ready.args for ready in run.of(ToolReady)] == [{"a": 1}, {"a": 2}]


def test_returned_calls_without_ids_are_not_shown_again(run: Run) -> None:
    calls: list[Any] = [{"name": "add", "args": {"a": 1}, "id": None, "type": "tool_call"}] * 2
    run.feed("messages", (AIMessage("", id="m1", tool_calls=calls), META))
    returning = {"langgraph_node": "edit", "langgraph_checkpoint_ns": "edit:e1"}
    run.feed("messages", (AIMessage("", id="m2", tool_calls=calls), returning))
    assert len(run.of(ToolStarted)) == 2


# Results of nodes


@pytest.mark.parametrize("key", ["messages", "results", "anything"])
@pytest.mark.parametrize(
    "result",
    [
        {"role": "tool", "content": "one", "tool_call_id": "c1"},
        {"type": "tool", "content": "one", "tool_call_id": "c1", "status": "success"},
        ("tool", "one"),
        ["tool", "one"],
        {"role": "tool", "content": "one"},
        dumpd(ToolMessage("one", tool_call_id="c1")),
    ],
)
def test_result_in_every_form_ends_its_call(run: Run, result: Any, key: str) -> None:
    made(run, ("c1", {"a": 1}))
    returned(run, result, key=key)
    assert ends(run) == [("c1", "one", None)]


REPLY = AIMessage("I add.", id="m1", tool_calls=[{"name": "add", "args": {}, "id": "c1", "type": "tool_call"}])


@pytest.mark.parametrize(
    "form",
    [
        REPLY.model_dump(),
        dumpd(REPLY),
        {"role": "assistant", "content": "I add.", "tool_calls": REPLY.tool_calls},
        AIMessage("I add.", id="other", tool_calls=REPLY.tool_calls),
        {"role": "assistant", "content": " I add.\n"},
        ("ai", "I add."),
    ],
)
def test_streamed_message_is_not_shown_again_in_any_form(run: Run, form: Any) -> None:
    meta = {"langgraph_node": "work", "langgraph_checkpoint_ns": "work:w1"}
    run.feed("tasks", {"id": "w1", "name": "work", "input": {"messages": [HumanMessage("go")]}})
    run.say("I ", meta={**meta, "ls_model_name": "any"})
    run.say("add.", tool_call_chunks=[chunk("{}", name="add", id="c1")], meta={**meta, "ls_model_name": "any"})
    run.say("", chunk_position="last", meta={**meta, "ls_model_name": "any"})
    run.tool("tool-started", FIRST_RUN, tool_name="add", input={})
    run.tool("tool-finished", FIRST_RUN, output="done")
    result = {"role": "tool", "content": "done", "tool_call_id": "c1"}
    if isinstance(form, AIMessage):
        run.feed("messages", (form, meta))
    run.feed("tasks", {"id": "w1", "name": "work", "result": {"messages": [form, result]}, "error": None})
    assert run.text == "I add."
    assert [started.call_id for started in run.of(ToolStarted)] == ["c1"]
    assert ends(run) == [("c1", "done", None)]


@pytest.mark.parametrize("key", ["examples", "roles"])
def test_messages_under_other_keys_are_not_shown(run: Run, key: str) -> None:
    made(run)
    returned(run, {"role": "assistant", "content": "An example."}, ("ai", "Another."), key=key)
    assert run.text == ""


@pytest.mark.parametrize(
    "item",
    [{"role": "assistant"}, ("ai", 3), ("ai", "a", "b"), {"type": "tool"}, {"role": ["ai"], "content": ""}, 7, "ai"],
)
def test_data_that_resembles_a_message_is_ignored(run: Run, item: Any) -> None:
    made(run, ("c1", {}))
    returned(run, item)
    assert (run.text, ends(run)) == ("", [])


def test_every_message_form_of_langchain_is_recognized() -> None:
    """The forms are those of `convert_to_messages`; a new one fails here."""
    source = inspect.getsource(_convert_to_message)
    assert re.findall(r"isinstance\(message, (\w+)\)", source) == ["BaseMessage", "Sequence", "str", "dict"]
    for message in (AIMessage("x"), ToolMessage("x", tool_call_id="c")):
        for form in (message.model_dump(), dumpd(message), {"role": message.type, "content": "x"}):
            assert is_message_form(form)


def test_invalid_call_is_shown_with_its_text(run: Run) -> None:
    bad: Any = {"type": "invalid_tool_call", "name": "add", "args": '{"a": ', "id": None, "error": "no JSON"}
    run.feed("messages", (AIMessage("", id="m1", invalid_tool_calls=[bad]), META))
    assert (run.of(ToolStarted)[0].name, run.of(ToolStarted)[0].args) == ("add", '{"a": ')


# Namespaces


def test_graphs_of_one_task_are_separate_sub_agents(run: Run) -> None:
    call = {"name": "delegate", "args": {}, "id": "c1"}
    run.feed("tasks", {"id": "t1", "name": "tools", "input": [call]})
    for at, place in enumerate((["tools:t1"], ["tools:t1", "1"], ["tools:t1", "2"])):
        meta = {"langgraph_checkpoint_ns": "|".join([*place, "model:x"]), "lc_agent_name": "helper"}
        run.say(f"text {at}", *place, id=f"m{at}", meta=meta)
    agents = run.of(AgentStarted)
    assert [a.agent_id for a in agents] == ["helper-1", "helper-2", "helper-3"]
    assert {(a.parent_id, a.call_id) for a in agents} == {("", "c1")}
    run.tool("tool-finished", output=ToolMessage("done", tool_call_id="c1"))
    assert not run.grammar.agents


def test_node_named_planning_is_not_a_planning_step(run: Run) -> None:
    """A step of the kind `planning` has a plan, and only frameworks that plan have such steps."""
    run.feed("tasks", {"id": "p1", "name": "planning", "input": {}})
    assert [(s.number, s.step_kind) for s in run.of(StepStarted)] == [(1, "plan")]


def test_tool_node_is_not_a_step(run: Run) -> None:
    call = {"name": "add", "args": {}, "id": "c1"}
    run.feed("tasks", {"id": "m1", "name": "model", "input": {}})
    run.feed("tasks", {"id": "m1", "name": "model", "result": {}, "error": None, "interrupts": []})
    run.feed("tasks", {"id": "t1", "name": "tools", "input": {"tool_call": call}})
    run.feed("tasks", {"id": "h1", "name": "Any.before_model", "input": {}})
    assert [(s.number, s.step_kind) for s in run.of(StepStarted)] == [(1, "action")]


def test_values_of_a_subgraph_are_ignored(run: Run) -> None:
    run.feed("values", {"a": 1})
    run.feed("values", {"b": 1}, "sub:1")
    assert run.translator.values == {"a": 1}


@pytest.mark.parametrize(
    ("data", "text"),
    [("word", "word"), ({"progress": "half"}, "half"), (3, "3"), (object, "object"), ("", None), (None, None)],
)
def test_custom_data_becomes_a_status(run: Run, data: Any, text: str | None) -> None:
    run.feed("custom", data)
    statuses = [status.text for status in run.of(Status)]
    assert (statuses == []) if text is None else (text in statuses[0])


# Interrupts


def open_call(name: str, args: Any, raw_id: str) -> GraphCall:
    return GraphCall("", raw_id, name, raw_id, args)


def test_action_requests_are_matched_to_their_calls(run: Run) -> None:
    calls = [open_call("rm", {"p": 1}, "a"), open_call("rm", {"p": 2}, "b"), open_call("rm", '{"p": ', "c")]
    requests = [{"name": "rm", "args": {"p": 2}}, {"name": "rm", "args": {"p": 1}}, {"name": "rm", "args": {"p": 3}}]
    stop = interrupt_of(Interrupted("i", {"action_requests": requests}), "", calls)
    assert [q.call.call_id for q in stop.requests if q.call] == ["b", "a", "c"]
    answers = [Approval("approve", {}), Approval("edit", {"p": 9}), Approval("reject", {}, "no")]
    assert resume_value(stop, answers) == {
        "decisions": [
            {"type": "approve"},
            {"type": "edit", "edited_action": {"name": "rm", "args": {"p": 9}}},
            {"type": "reject", "message": "no"},
        ]
    }


def test_interrupt_reported_in_every_namespace_is_taken_once(run: Run) -> None:
    stop = {"id": "i1", "value": "Sure?"}
    run.feed("tasks", {"id": "x", "name": "ask", "input": {}}, "sub:1")
    run.feed("tasks", {"id": "x", "name": "ask", "interrupts": [stop], "error": None, "result": {}}, "sub:1")
    run.feed("tasks", {"id": "1", "name": "sub", "interrupts": [stop], "error": None, "result": {}})
    (waiting,) = run.translator.take_interrupts()
    assert waiting.requests[0].agent_id == "sub-1"
    assert run.translator.take_interrupts() == []
    assert not run.of(ApprovalRequested)


# Drops


def test_every_message_type_and_mode_is_translated_or_in_drops() -> None:
    messages = {arm.model_fields["type"].default for arm in _message_types()}
    assert messages - {*MODEL_MESSAGES, "tool"} == {name.partition(" ")[2] for name in DROPS if _is_type(name)}
    assert set(get_args(StreamMode)) - set(MODES) == {n.partition(" ")[2] for n in DROPS if n.startswith("mode ")}


def _is_type(name: str) -> bool:
    return name.startswith("message ") and name not in ("message of a middleware", "message again")


def _message_types() -> list[Any]:
    annotated = get_args(AnyMessage)[0]
    return [*(get_args(arm)[0] for arm in get_args(annotated)), RemoveMessage]


def test_every_tool_event_of_langgraph_is_handled() -> None:
    emitted = set(re.findall(r'"event": "(tool-[a-z-]+)"', inspect.getsource(_tools)))
    handled = set(re.findall(r'case "(tool-[a-z-]+)"', inspect.getsource(sys.modules[LangGraphTranslator.__module__])))
    assert emitted == handled


# Cost


@pytest.mark.parametrize("ns", [(), ("tools:t1",)])
def test_late_token_takes_as_many_function_calls_as_an_early_one(ns: tuple[str, ...]) -> None:
    """The count does not depend on the machine; `benchmarks/frameworks` measures the time."""
    meta = {**META, "langgraph_checkpoint_ns": "|".join([*ns, "model:m1"])}
    translator = LangGraphTranslator()

    def calls_of_a_token() -> int:
        part = part_of({"type": "messages", "ns": ns, "data": (AIMessageChunk(content="word ", id="m1"), meta)})
        calls: list[str] = []
        sys.setprofile(lambda _, event, __: calls.append(event) if event in ("call", "c_call") else None)
        try:
            translator.feed(part)
        finally:
            sys.setprofile(None)
        return len(calls)

    counts = [calls_of_a_token() for _ in range(1_000)]
    assert 0 < counts[-1] <= counts[1]
