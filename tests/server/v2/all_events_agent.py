"""An agent that emits every kind of event in one turn."""

from collections.abc import AsyncIterator

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    SourceCited,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.messages import Message
from limelight.sources.base import Context, FileMade

Item = str | AnyEvent | FileMade


async def everything(messages: list[Message], ctx: Context) -> AsyncIterator[Item]:
    """Plans, thinks, calls tools and sub-agents, requests an approval, makes files and answers, or fails on request."""
    for item in (*_planning(), *_thinking(), *_coding(), *_delegating()):
        yield item
    yield ToolStarted(call_id="d", name="delete", args={"path": "a.md"})
    approval = await ctx.approve("delete", {"path": "a.md"}, call_id="d")
    yield ToolFinished(call_id="d", result=f"deleted {approval.args['path']}")
    yield FileMade(name="plot.png", data=b"\x89PNG", media_type="image/png")
    yield FileMade(name="notes [1].txt", data=b"notes", media_type="text/plain")
    yield Usage(model="none", input_tokens=3, output_tokens=4)
    yield SourceCited(title="A book", url="https://example.org/book", text="on page 7")
    yield StepFinished(number=2, input_tokens=30, output_tokens=4, duration_ms=20)
    if messages[-1].text == "fail":
        raise ValueError("the wheel came off")
    yield "word " * 12_000
    yield FinalAnswer(content="They **dance**.", title="Bees", sources=("https://example.org/bees",))


def _planning() -> list[AnyEvent]:
    return [
        StepStarted(number=1, step_kind="planning"),
        PlanDelta(text="First look, "),
        PlanDelta(text="then answer."),
        Plan(text="First look, then answer."),
        StepFinished(number=1, step_kind="planning", input_tokens=5, output_tokens=6, duration_ms=7),
        Plan(items=(Todo("look", "in_progress"), Todo("answer")), update=True),
    ]


def _thinking() -> list[AnyEvent]:
    return [
        StepStarted(number=2),
        ReasoningDelta(message_id="r", text="What do "),
        ReasoningDelta(message_id="r", text="bees do?"),
        ReasoningFinished(message_id="r"),
        TextDelta(message_id="m", text="I look."),
        TextFinished(message_id="m"),
        Status(text="Looking"),
    ]


def _coding() -> list[AnyEvent]:
    return [
        ToolStarted(call_id="p", name="python"),
        ToolArgsDelta(call_id="p", text='{"code": "import math\\nprint(1)"}'),
        ToolReady(call_id="p", args={"code": "import math\nprint(1)"}),
        ToolOutputDelta(call_id="p", text="1\n"),
        ToolOutputDelta(call_id="p", text="a warning\n", stream="stderr"),
        ToolFinished(call_id="p", result=None),
        ToolStarted(call_id="f", name="open", args="{not json"),
        ToolFinished(call_id="f", result="Error: no luck", error="no luck"),
        ToolStarted(call_id="l", name="dump", args={"text": "ä" * 60_000}),
        ToolFinished(call_id="l", result="x" * 300_000),
    ]


def _delegating() -> list[AnyEvent]:
    return [
        ToolStarted(call_id="t", name="task", args={"to": "helper"}),
        AgentStarted(agent_id="a", name="helper", call_id="t"),
        TextDelta(agent_id="a", message_id="ma", text="helping"),
        TextFinished(agent_id="a", message_id="ma"),
        AgentStarted(agent_id="b", name="deeper", parent_id="a"),
        AgentFinished(agent_id="b", error="too deep"),
        AgentFinished(agent_id="a"),
        ToolFinished(call_id="t", result=["helped", 1]),
    ]
