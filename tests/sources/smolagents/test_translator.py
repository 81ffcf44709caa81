"""smolagents' translator alone: reports in, Events out, without threads and smolagents."""

from types import SimpleNamespace
from typing import Any

from limelight.events import (
    AgentFinished,
    AgentStarted,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
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
    Usage,
)
from limelight.grammar import Grammar
from limelight.sources.base import FileMade, Item
from limelight.sources.smolagents.reports import (
    AgentBegan,
    AgentEnded,
    AnswerAccepted,
    CallEnded,
    CallOutput,
    CallReady,
    ImagesObserved,
    ModelDelta,
    ModelReplied,
    PlanEnded,
    StepBegan,
    StepEnded,
    StepFailed,
    StepLimitReached,
)
from limelight.sources.smolagents.translator import AnyReport, SmolagentsTranslator
from limelight.sources.tool_results import ToolResult

TAGS = ("<code>", "</code>")


def delta(content: str | None = None, *calls: Any, agent_id: str = "") -> ModelDelta:
    return ModelDelta(agent_id, SimpleNamespace(content=content, tool_calls=list(calls) or None))


def call(index: int, name: str | None = None, arguments: str | None = None, id: str | None = None) -> Any:
    return SimpleNamespace(index=index, id=id, function=SimpleNamespace(name=name, arguments=arguments))


def replied(content: Any = "", usage: tuple[int, int] | None = None, agent_id: str = "", streamed: bool = True) -> Any:
    tokens = None if usage is None else SimpleNamespace(input_tokens=usage[0], output_tokens=usage[1])
    return ModelReplied(agent_id, SimpleNamespace(content=content, token_usage=tokens), "m", streamed)


def step(number: int = 1, error: str | None = None, agent_id: str = "") -> StepEnded:
    raised = None if error is None else SimpleNamespace(message=error)
    timing = SimpleNamespace(duration=1.5)
    tokens = SimpleNamespace(input_tokens=3, output_tokens=4)
    return StepEnded(agent_id, SimpleNamespace(step_number=number, error=raised, timing=timing, token_usage=tokens))


def ended_step(number: int = 1, **fields: Any) -> StepFinished:
    return StepFinished(number=number, duration_ms=1500, input_tokens=3, output_tokens=4, **fields)


def answered(value: Any) -> AnswerAccepted:
    return AnswerAccepted("", ToolResult(value, []))


def translated(*reports: AnyReport, tags: tuple[str, str] | None = None, structured: bool = False) -> list[Item]:
    """The items for these reports of the main agent, which must be a legal part of a run."""
    translator = SmolagentsTranslator()
    began = AgentBegan("", tags=tags, structured=structured)
    items = [item for report in (began, *reports) for item in translator.feed(report)]
    items += translator.end()
    grammar = Grammar()
    grammar.check(RunStarted(agent="a"))
    for item in items:
        if not isinstance(item, FileMade):
            for missing in grammar.missing_before(item, "left open"):
                grammar.check(missing)
            grammar.check(item)
    return items


def test_step_has_reasoning_and_a_streamed_call() -> None:
    events = translated(
        StepBegan("", 1),
        delta("I "),
        delta("add."),
        delta(None, call(0, "add", '{"a"', "c1")),
        delta(None, call(0, None, ": 1}")),
        replied("I add.", (10, 2)),
        CallReady("", 5, "add", {"a": 1}, "c1"),
        CallEnded("", 5, ToolResult(2, []), None, 0.25),
        step(),
    )
    assert events == [
        StepStarted(number=1),
        ReasoningDelta(message_id="thought-1", text="I "),
        ReasoningDelta(message_id="thought-1", text="add."),
        ReasoningFinished(message_id="thought-1"),
        ToolStarted(call_id="c1", name="add"),
        ToolArgsDelta(call_id="c1", text='{"a"'),
        ToolArgsDelta(call_id="c1", text=": 1}"),
        Usage(model="m", input_tokens=10, output_tokens=2),
        ToolReady(call_id="c1", args={"a": 1}),
        ToolFinished(call_id="c1", result=2, duration_ms=250),
        ended_step(),
    ]


def test_call_that_was_not_streamed_starts_with_its_arguments() -> None:
    events = translated(StepBegan("", 1), replied(), CallReady("", 1, "add", '{"a": '), CallEnded("", 1), step())
    assert events[1:3] == [
        ToolStarted(call_id="call", name="add", args='{"a": '),
        ToolFinished(call_id="call", duration_ms=None),
    ]


def test_final_answer_is_not_a_call_streamed_or_not() -> None:
    events = translated(
        StepBegan("", 1),
        delta(None, call(0, "final_answer", '{"answer": 1}', "c1")),
        replied(),
        CallReady("", 1, "final_answer", {"answer": 1}, "c1"),
        CallEnded("", 1, ToolResult(1, [])),
        step(),
        answered(1),
    )
    assert events == [StepStarted(number=1), ended_step(), FinalAnswer(content=1), RunFinished()]


def test_final_answer_beside_a_call_does_not_take_its_index() -> None:
    events = translated(
        StepBegan("", 1),
        delta(None, call(0, "final_answer", "{}", "c1"), call(1, "add", "{}", "c2")),
        replied(),
        CallReady("", 1, "final_answer", {}, "c1"),
        CallReady("", 2, "add", {}, "c2"),
        CallEnded("", 2, ToolResult("x", [])),
        step(error="only one"),
    )
    assert [e.call_id for e in events if isinstance(e, ToolReady)] == ["c2"]
    assert events[-1] == ended_step(error="only one")


def test_call_without_a_name_does_not_take_another_index() -> None:
    events = translated(
        StepBegan("", 1),
        delta(None, call(0, None, "{}", "c0"), call(1, "add", "{}", "c1")),
        replied(),
        CallReady("", 1, "", {"b": 1}, "c0"),
        CallReady("", 2, "add", {"a": 1}, "c1"),
        CallEnded("", 2, ToolResult("x", [])),
        step(error="no such tool"),
    )
    assert ToolStarted(call_id="c0", name="", args={"b": 1}) in events
    assert ToolReady(call_id="c1", args={"a": 1}) in events


def test_repeated_call_ids_become_unique() -> None:
    one = (replied(), CallReady("", 1, "add", {}, "call_1"), CallEnded("", 1), step())
    two = (replied(), CallReady("", 2, "add", {}, "call_1"), CallEnded("", 2), step(2))
    events = translated(StepBegan("", 1), *one, StepBegan("", 2), *two)
    assert [e.call_id for e in events if isinstance(e, ToolFinished)] == ["call_1", "call_1-2"]


def test_call_that_ends_twice_is_finished_once() -> None:
    events = translated(
        StepBegan("", 1), CallReady("", 1, "add", {}), CallEnded("", 1), CallEnded("", 1), step(), step()
    )
    assert len([e for e in events if isinstance(e, ToolFinished)]) == 1
    assert len([e for e in events if isinstance(e, StepFinished)]) == 1


def test_calls_that_were_never_run_fail_with_their_step() -> None:
    events = translated(
        StepBegan("", 1),
        delta(None, call(0, "add", "{", "c1")),
        replied(),
        StepFailed("", "bad"),
        step(error="bad, really"),
    )
    assert ToolFinished(call_id="c1", error="bad") in events
    assert events[-1] == ended_step(error="bad")


def test_second_reply_in_a_step_is_not_shown() -> None:
    events = translated(
        StepBegan("", 1), delta("A."), replied("A."), delta("judging"), replied("judging", (1, 1)), step()
    )
    assert [e.text for e in events if isinstance(e, ReasoningDelta)] == ["A."]
    assert Usage(model="m", input_tokens=1, output_tokens=1) in events


def test_planning_step_gives_a_plan_and_no_reasoning() -> None:
    def planned(text: str) -> PlanEnded:
        message = SimpleNamespace(content=f"{text}\n<end_plan> and more")
        timing = SimpleNamespace(duration=1.5)
        tokens = SimpleNamespace(input_tokens=3, output_tokens=4)
        plan = SimpleNamespace(plan="wrapped", model_output_message=message, timing=timing, token_usage=tokens)
        return PlanEnded("", plan)

    events = translated(
        StepBegan("", 1, "planning"), delta("1. Go."), replied("1. Go."), planned("1. Go."),
        StepBegan("", 1), step(), StepBegan("", 2, "planning"), planned("2. Stay."),
    )  # fmt: skip
    assert events[:4] == [
        StepStarted(number=1, step_kind="planning"),
        PlanDelta(text="1. Go."),
        Plan(text="1. Go."),
        ended_step(step_kind="planning"),
    ]
    assert events[-2:] == [Plan(text="2. Stay.", update=True), ended_step(2, step_kind="planning")]


def test_answer_at_the_step_limit_is_streamed() -> None:
    events = translated(
        StepBegan("", 1),
        step(),
        StepLimitReached(""),
        delta("Not "),
        delta("yet."),
        replied(),
        step(),
        answered("Not yet."),
    )
    assert events[2:] == [
        TextDelta(message_id="answer-1", text="Not "),
        TextDelta(message_id="answer-1", text="yet."),
        TextFinished(message_id="answer-1"),
        FinalAnswer(content="Not yet.", message_id="answer-1"),
        RunFinished(code="max_steps"),
    ]


def test_answer_that_differs_from_the_streamed_text_has_no_message_id() -> None:
    events = translated(StepLimitReached(""), delta("Not "), answered("Error"))
    assert FinalAnswer(content="Error") in events


def test_run_without_an_answer_has_no_terminal_event() -> None:
    assert translated(StepBegan("", 1), step()) == [StepStarted(number=1), ended_step()]


def test_events_of_parallel_agents_have_their_own_ids() -> None:
    events = translated(
        StepBegan("", 1),
        replied(),
        CallReady("", 1, "helper", {}, "a"),
        CallReady("", 2, "helper", {}, "b"),
        AgentBegan("helper-1", "helper", "", 1),
        AgentBegan("helper-2", "helper", "", 2),
        StepBegan("helper-1", 1),
        StepBegan("helper-2", 1),
        delta("one", agent_id="helper-1"),
        delta("two", agent_id="helper-2"),
        AnswerAccepted("helper-2", ToolResult("report", [])),
        AgentEnded("helper-2"),
        CallEnded("", 2, ToolResult("report", [])),
        AgentEnded("helper-1", "broken"),
        CallEnded("", 1, error="broken"),
        step(),
    )
    assert AgentStarted(agent_id="helper-2", name="helper", call_id="b") in events
    assert ReasoningDelta(agent_id="helper-1", message_id="thought-1", text="one") in events
    assert ReasoningDelta(agent_id="helper-2", message_id="thought-2", text="two") in events
    ends = [e for e in events if isinstance(e, AgentFinished | ToolFinished)]
    assert [getattr(e, "call_id", e.agent_id) for e in ends] == ["helper-2", "b", "helper-1", "a"]
    assert not [e for e in events if isinstance(e, FinalAnswer)]


def test_code_is_streamed_as_arguments_of_the_interpreter() -> None:
    events = translated(
        StepBegan("", 1),
        *(delta(text) for text in ("Now.\n<co", "de>\nprint(", '"ü")\n', "</code>")),
        replied(),
        CallReady("", 1, "python_interpreter", 'print("ü")', "call_1"),
        CallOutput("", 1, "ü\n"),
        CallReady("", 2, "add", {"a": 1}, inner=True),
        CallEnded("", 2, ToolResult(1, [])),
        CallEnded("", 1, ToolResult("", [])),
        CallOutput("", 1, "too late"),
        step(),
        tags=TAGS,
    )
    assert events[1:3] == [
        ReasoningDelta(message_id="thought-1", text="Now."),
        ReasoningFinished(message_id="thought-1"),
    ]
    text = "".join(e.text for e in events if isinstance(e, ToolArgsDelta))
    assert text == '{"code": "print(\\"ü\\")"}'
    assert ToolReady(call_id="main-code", args={"code": 'print("ü")'}) in events
    assert [e.text for e in events if isinstance(e, ToolOutputDelta)] == ["ü\n"]
    assert ToolStarted(call_id="call", name="add", args={"a": 1}) in events


def test_files_belong_to_their_call_and_observed_images_to_their_agent() -> None:
    file = FileMade(name="a.png", data=b"x")
    events = translated(
        StepBegan("", 1),
        CallReady("", 1, "draw", {}, "c1"),
        CallEnded("", 1, ToolResult("[a.png]", [file])),
        ImagesObserved("", [file]),
    )
    assert [e for e in events if isinstance(e, FileMade)] == [FileMade(name="a.png", data=b"x", call_id="c1"), file]
