"""The function source: accepted functions, their items, and the events that the source adds."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from typing import Any

import pytest

from limelight.errors import BadEvent
from limelight.events import (
    AgentFinished,
    AgentStarted,
    FinalAnswer,
    RunFailed,
    RunFinished,
    RunStarted,
    Status,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.grammar import Grammar
from limelight.messages import Message
from limelight.sources.base import Approval, FileMade, Item, Turn, first_line
from limelight.sources.function import FunctionSource, FunctionTranslator
from limelight.sources.thread_bridge import READ_AHEAD
from tests.sources.fake_turn import FakeContext, new_turn
from tests.support.wait import eventually


async def run_agent(target: Callable[..., Any], turn: Turn | None = None) -> list[Item]:
    """The items of a turn, which must be a legal run."""
    items = [item async for item in FunctionSource(target).run(turn or new_turn())]
    grammar = Grammar()
    grammar.check(RunStarted(agent="a"))
    for item in items:
        if not isinstance(item, FileMade):
            grammar.check(item)
    assert grammar.terminal is not None
    return items


def translated(*items: object) -> list[Item]:
    """The items of the translator alone."""
    translator = FunctionTranslator()
    return [*(event for item in items for event in translator.feed(item)), *translator.end()]


def says(message_id: str, *texts: str) -> list[Item]:
    return [*(TextDelta(message_id=message_id, text=text) for text in texts), TextFinished(message_id=message_id)]


# Functions


async def test_async_generator_streams_text() -> None:
    async def agent(messages: list[Message], ctx: FakeContext) -> AsyncGenerator[str]:
        yield messages[-1].text
        yield f" {ctx.user.name}"

    assert await run_agent(agent, new_turn("hello")) == [
        *says("msg-1", "hello", " Ada"),
        FinalAnswer(content="hello Ada", message_id="msg-1"),
        RunFinished(),
    ]


async def test_coroutine_returns_its_answer_as_text() -> None:
    async def agent(messages: list[Message], ctx: FakeContext) -> str:
        await asyncio.sleep(0)
        return "an answer"

    assert await run_agent(agent) == [
        *says("msg-1", "an answer"),
        FinalAnswer(content="an answer", message_id="msg-1"),
        RunFinished(),
    ]


@pytest.mark.parametrize("answer", [{"a": 1}, [1, 2], 5])
async def test_coroutine_that_returns_a_value_answers_without_text(answer: Any) -> None:
    async def agent(messages: list[Message], ctx: FakeContext) -> Any:
        return answer

    assert await run_agent(agent) == [FinalAnswer(content=answer), RunFinished()]


async def test_coroutine_that_returns_none_has_an_empty_answer() -> None:
    async def agent(messages: list[Message], ctx: FakeContext) -> None:
        return None

    assert await run_agent(agent) == [FinalAnswer(content=""), RunFinished()]


async def test_sync_generator_runs_in_its_own_thread() -> None:
    threads: list[int] = []

    def agent(messages: list[Message], ctx: FakeContext) -> Generator[object]:
        threads.append(threading.get_ident())
        yield "from "
        yield Status(text="busy")
        yield "a thread"

    assert await run_agent(agent) == [
        *says("msg-1", "from "),
        Status(text="busy"),
        *says("msg-2", "a thread"),
        FinalAnswer(content="a thread", message_id="msg-2"),
        RunFinished(),
    ]
    assert threads[0] != threading.get_ident()


async def test_long_sync_generator_yields_everything_in_order() -> None:
    def agent(messages: list[Message], ctx: FakeContext) -> Generator[str]:
        for number in range(10 * READ_AHEAD):
            yield f"{number} "

    items = await run_agent(agent)
    texts = [item.text for item in items if isinstance(item, TextDelta)]
    assert texts == [f"{number} " for number in range(10 * READ_AHEAD)]


async def test_sync_generator_waits_for_its_reader_and_is_closed_with_it() -> None:
    made: list[int] = []
    closed = threading.Event()

    def agent(messages: list[Message], ctx: FakeContext) -> Generator[str]:
        try:
            for number in range(100_000):
                made.append(number)
                yield "x"
        finally:
            closed.set()

    running = FunctionSource(agent).run(new_turn())
    await anext(running)
    await eventually(lambda: len(made) > READ_AHEAD)
    await running.aclose()
    await eventually(closed.is_set)
    assert len(made) <= 2 * READ_AHEAD + 5  # those on their way, and those behind them


async def test_sync_generator_ends_at_stop_between_two_items() -> None:
    turn = new_turn()

    def agent(messages: list[Message], ctx: FakeContext) -> Generator[str]:
        yield "before"
        ctx.cancelled = True
        yield "noticed"
        raise AssertionError("it was stopped before this")

    items = [item async for item in FunctionSource(agent).run(turn)]
    assert [item.text for item in items if isinstance(item, TextDelta)] == ["before", "noticed"]


@pytest.mark.parametrize("kind", ["async generator", "coroutine", "generator"])
async def test_exception_of_the_function_is_raised_unchanged(kind: str) -> None:
    async def async_generator(messages: list[Message], ctx: FakeContext) -> AsyncGenerator[str]:
        yield "x"
        raise LookupError("broke")

    async def coroutine(messages: list[Message], ctx: FakeContext) -> str:
        raise LookupError("broke")

    def generator(messages: list[Message], ctx: FakeContext) -> Generator[str]:
        yield "x"
        raise LookupError("broke")

    agents = {"async generator": async_generator, "coroutine": coroutine, "generator": generator}
    with pytest.raises(LookupError, match="broke"):
        await run_agent(agents[kind])


async def test_closing_the_stream_ends_the_function() -> None:
    ended: list[str] = []

    async def agent(messages: list[Message], ctx: FakeContext) -> AsyncGenerator[str]:
        try:
            yield "x"
            yield "never read"
        finally:
            ended.append("yes")

    running = FunctionSource(agent).run(new_turn())
    assert await anext(running) == TextDelta(message_id="msg-1", text="x")
    await running.aclose()
    assert ended == ["yes"]


def test_accepts_only_generators_and_coroutine_functions() -> None:
    async def async_generator() -> AsyncGenerator[str]:
        yield ""

    async def coroutine() -> None: ...

    def generator() -> Iterable[str]:
        yield ""

    def function() -> None: ...

    assert all(map(FunctionSource.accepts, [async_generator, coroutine, generator]))
    assert not any(map(FunctionSource.accepts, [function, FunctionSource, 5, None, "agent"]))
    with pytest.raises(TypeError, match="5 is not a function"):
        FunctionSource(5)


def test_description_is_the_first_line_of_the_docstring() -> None:
    async def agent() -> None:
        """Finds things.

        And more.
        """

    assert FunctionSource(agent).description == "Finds things."
    assert [first_line(text) for text in (None, "", "\n  a\n  b")] == ["", "", "a"]


# Items


def test_none_and_empty_text_give_no_event() -> None:
    assert translated(None, "", None) == [FinalAnswer(content=""), RunFinished()]


def test_subclass_of_str_becomes_plain_text() -> None:
    class Accessor(str): ...

    delta = FunctionTranslator().feed(Accessor("a"))[0]
    assert isinstance(delta, TextDelta) and type(delta.text) is str


@pytest.mark.parametrize("item", [5, b"bytes", ["list"], object(), {"kind": "status"}])
def test_item_of_another_type_is_a_bad_event_that_names_it(item: object) -> None:
    with pytest.raises(BadEvent, match=f"an agent yields text, events or files, not {type(item).__name__}"):
        FunctionTranslator().feed(item)


def test_other_item_ends_the_message_and_the_last_message_is_the_answer() -> None:
    assert translated("a", "b", Status(text="s"), "c") == [
        *says("msg-1", "a", "b"),
        Status(text="s"),
        *says("msg-2", "c"),
        FinalAnswer(content="c", message_id="msg-2"),
        RunFinished(),
    ]


def test_event_of_a_sub_agent_leaves_the_message_open() -> None:
    sub = AgentStarted(agent_id="a", name="sub")
    assert translated("x", sub, Status(agent_id="a", text="s"), AgentFinished(agent_id="a"), "y") == [
        TextDelta(message_id="msg-1", text="x"),
        sub,
        Status(agent_id="a", text="s"),
        AgentFinished(agent_id="a"),
        TextDelta(message_id="msg-1", text="y"),
        TextFinished(message_id="msg-1"),
        FinalAnswer(content="xy", message_id="msg-1"),
        RunFinished(),
    ]


def test_text_events_of_the_function_are_the_answer() -> None:
    delta, other = TextDelta(message_id="mine", text="a"), TextDelta(agent_id="sub", message_id="theirs", text="b")
    assert translated(delta, other, delta)[-2:] == [FinalAnswer(content="aa", message_id="mine"), RunFinished()]


def test_answer_that_was_not_streamed_has_no_message() -> None:
    assert translated(Status(text="s"), FinalAnswer(content={"a": 1})) == [
        Status(text="s"),
        FinalAnswer(content={"a": 1}),
        RunFinished(),
    ]


def test_explicit_run_finished_is_kept_and_gets_the_answer_before_it() -> None:
    assert translated("a", RunFinished(code="max_steps")) == [
        *says("msg-1", "a"),
        FinalAnswer(content="a", message_id="msg-1"),
        RunFinished(code="max_steps"),
    ]
    assert translated(FinalAnswer(content="x"), RunFinished()) == [FinalAnswer(content="x"), RunFinished()]


def test_explicit_run_failed_is_the_end() -> None:
    failed = RunFailed(code="mine", message="no")
    assert translated("a", failed) == [*says("msg-1", "a"), failed]


def test_file_is_passed_to_the_engine() -> None:
    file = FileMade(name="a.txt", data=b"x")
    assert translated("a", file)[:3] == [*says("msg-1", "a"), file]


# Call ids

OfACall = ToolStarted | ToolArgsDelta | ToolReady | ToolOutputDelta | ToolFinished | FileMade


def test_repeated_call_ids_become_unique_in_all_events_of_a_call() -> None:
    once = [
        ToolStarted(call_id="call_1", name="t"),
        ToolArgsDelta(call_id="call_1", text="{}"),
        ToolReady(call_id="call_1", args={}),
        ToolOutputDelta(call_id="call_1", text="x"),
        FileMade(name="a", data=b"", call_id="call_1"),
        ToolFinished(call_id="call_1"),
    ]
    found: list[str] = [item.call_id for item in translated(*once, *once) if isinstance(item, OfACall)]
    assert found == ["call_1"] * 6 + ["call_1-2"] * 6


def test_call_without_an_id_gets_one() -> None:
    start, end = ToolStarted(call_id="", name="t", args={}), ToolFinished(call_id="", result="r")
    found = [item.call_id for item in translated(start, end, start, end) if isinstance(item, OfACall)]
    assert found == ["call", "call", "call-2", "call-2"]


def test_event_without_a_call_gets_no_call_id() -> None:
    start, sub = ToolStarted(call_id="", name="t", args={}), AgentStarted(agent_id="a", name="n")
    assert translated(start, sub)[1] == sub


def test_two_open_calls_with_one_id_end_in_their_order() -> None:
    start, end = ToolStarted(call_id="x", name="t", args={}), ToolFinished(call_id="x", result="r")
    found = [item.call_id for item in translated(start, start, end, end) if isinstance(item, OfACall)]
    assert found == ["x", "x-2", "x", "x-2"]


@pytest.mark.parametrize(("decision", "goes_on"), [("approve", True), ("edit", True), ("reject", False)])
def test_approval_is_true_unless_rejected(decision: Any, goes_on: bool) -> None:
    assert bool(Approval(decision, {})) is goes_on
