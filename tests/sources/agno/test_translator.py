"""Agno's translator alone: events in, Events out."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from dataclasses import dataclass
from types import SimpleNamespace as Namespace
from typing import Any

import pytest
from agno.media import Image
from agno.models.message import Citations, UrlCitation
from agno.run.agent import CustomEvent, RunContentEvent, RunEvent
from agno.run.team import RunContentEvent as TeamRunContentEvent
from agno.run.team import TeamRunEvent

from limelight.errors import AgentFailed
from limelight.events import (
    AgentFinished,
    AgentStarted,
    FinalAnswer,
    Plan,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFinished,
    SourceCited,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    Usage,
)
from limelight.sources.agno.tool_calls import RejectedCall, Rejection
from limelight.sources.agno.translator import DROPS, STATUS, AgnoTranslator
from limelight.sources.base import FileMade, Item


def event(name: str, run: str = "main", parent: str | None = None, **fields: Any) -> Any:
    return Namespace(event=name, run_id=run, parent_run_id=parent, **fields)


def tool(call_id: str = "c1", name: str = "add", **fields: Any) -> Any:
    defaults: dict[str, Any] = {"tool_args": {"a": 1}, "result": None, "tool_call_error": None, "metrics": None}
    return Namespace(tool_call_id=call_id, tool_name=name, **{**defaults, **fields})


def fed(translator: AgnoTranslator, *events: Any) -> list[Item]:
    return [item for one in events for item in translator.feed(one)]


def content(text: Any, run: str = "main", **fields: Any) -> Any:
    return event("RunContent", run, content=text, **fields)


def test_every_event_of_agno_is_handled_or_in_drops() -> None:
    names = {kind.value.removeprefix("Team") for kinds in (RunEvent, TeamRunEvent) for kind in kinds}
    handled = AgnoTranslator().handled
    assert names == handled | DROPS, "decide what becomes of these"
    assert handled & DROPS == frozenset()


def test_dropped_and_unknown_events_give_nothing() -> None:
    translator = AgnoTranslator()
    assert fed(translator, event("RunStarted"), *(event(name) for name in sorted(DROPS))) == []
    assert fed(translator, event("SomethingNew")) == []


@pytest.mark.parametrize("name", sorted(STATUS))
def test_background_work_becomes_a_status(name: str) -> None:
    assert fed(AgnoTranslator(), event(f"Team{name}")) == [Status(text=STATUS[name])]


def test_text_is_streamed_and_the_answer_names_the_last_message() -> None:
    translator = AgnoTranslator()
    items = fed(
        translator,
        event("RunStarted"),
        event("ModelRequestStarted"),
        content(""),
        content(None, reasoning_content="Hm."),
        content("One"),
        content(" two."),
        event("ModelRequestCompleted", model="m", input_tokens=3, output_tokens=2),
        event("RunCompleted", content="One two."),
    )
    assert [*items, *translator.end()] == [
        StepStarted(number=1),
        ReasoningDelta(message_id="msg-1", text="Hm."),
        ReasoningFinished(message_id="msg-1"),
        TextDelta(message_id="msg-2", text="One"),
        TextDelta(message_id="msg-2", text=" two."),
        TextFinished(message_id="msg-2"),
        Usage(model="m", input_tokens=3, output_tokens=2),
        StepFinished(number=1, input_tokens=3, output_tokens=2),
        FinalAnswer(content="One two.", message_id="msg-2"),
        RunFinished(),
    ]
    assert translator.ended and translator.feed(content("late")) == []


@pytest.mark.parametrize("kind", [RunContentEvent, TeamRunContentEvent])
def test_content_beside_a_piece_of_text_is_translated(kind: Any) -> None:
    page = Citations(urls=[UrlCitation(url="https://a.example", title="A")])
    picture = Image(content=b"png", id="p", mime_type="image/png")
    pieces: list[dict[str, Any]] = [
        {"content": "One"},
        {"content": " two", "citations": page},
        {"content": " three", "image": picture},
        {"content": " four", "reasoning_content": "Hm."},
        {"content": "Five"},
        {"content": " six"},
    ]
    translator = AgnoTranslator()
    items = fed(translator, *(kind(run_id="main", **piece) for piece in pieces))
    assert [type(item).__name__ for item in items] == [
        "TextDelta",
        "TextDelta",
        "SourceCited",
        "TextDelta",
        "FileMade",
        "TextFinished",
        "ReasoningDelta",
        "ReasoningFinished",
        "TextDelta",
        "TextDelta",
        "TextDelta",
    ]
    said = [(item.message_id, item.text) for item in items if isinstance(item, TextDelta)]
    assert [text for _, text in said] == ["One", " two", " three", " four", "Five", " six"]
    assert [message_id for message_id, _ in said] == ["msg-1"] * 3 + ["msg-3"] * 3
    assert translator.end()[-2] == FinalAnswer(content=" fourFive six", message_id="msg-3")


def test_answer_that_was_not_streamed_has_no_message() -> None:
    translator = AgnoTranslator()
    fed(translator, event("RunStarted"), event("RunCompleted", content="All."))
    assert translator.end() == [FinalAnswer(content="All."), RunFinished()]


def test_object_content_is_the_answer() -> None:
    translator = AgnoTranslator()
    fed(translator, event("RunStarted"), content({"sum": 5}, content_type="Sum"), event("RunCompleted", content="x"))
    assert translator.end() == [FinalAnswer(content={"sum": 5}), RunFinished()]


def test_agnos_duration_is_used_only_for_parallel_tools() -> None:
    translator = AgnoTranslator()
    quick = Namespace(duration=0.05)
    together = fed(
        translator,
        event("ToolCallStarted", tool=tool("c1")),
        event("ToolCallStarted", tool=tool("c2")),
        event("ToolCallCompleted", tool=tool("c1", result="5", metrics=quick)),
        event("ToolCallCompleted", tool=tool("c2", result="6", metrics=quick)),
        event("ToolCallStarted", tool=tool("c3")),
        event("ToolCallCompleted", tool=tool("c3", result="7", metrics=quick)),
    )
    ends = [item for item in together if isinstance(item, ToolFinished)]
    assert [(end.call_id, end.result, end.duration_ms) for end in ends] == [
        ("c1", "5", 50),
        ("c2", "6", 50),
        ("c3", "7", None),
    ]


def test_call_that_fails_twice_is_finished_once() -> None:
    translator = AgnoTranslator()
    failed = tool(result="no", tool_call_error=True)
    items = fed(
        translator,
        event("ToolCallStarted", tool=tool()),
        event("ToolCallCompleted", tool=failed),
        event("ToolCallError", tool=failed, error="no"),
    )
    assert items == [ToolStarted(call_id="c1", name="add", args={"a": 1}), ToolFinished(call_id="c1", error="no")]
    assert fed(
        translator, event("ToolCallStarted", tool=tool("c2")), event("ToolCallError", tool=tool("c2"), error="gone")
    )[-1] == ToolFinished(call_id="c2", error="gone")


def test_repeated_call_ids_become_unique() -> None:
    translator = AgnoTranslator()
    again = [event("ToolCallStarted", tool=tool()), event("ToolCallCompleted", tool=tool(result="5"))] * 2
    calls = [item.call_id for item in fed(translator, *again) if isinstance(item, ToolStarted | ToolFinished)]
    assert calls == ["c1", "c1", "c1-2", "c1-2"]


def delegation(call_id: str, member: str = "helper") -> Any:
    return tool(call_id, "delegate_task_to_member", tool_args={"member_id": member, "task": "help"})


def test_parallel_delegations_may_end_in_any_order() -> None:
    translator = AgnoTranslator()
    items = fed(
        translator,
        event("TeamRunStarted"),
        event("TeamToolCallStarted", tool=delegation("d1")),
        event("TeamToolCallStarted", tool=delegation("d2")),
        event("RunStarted", "r1", "main", agent_id="helper", agent_name="Helper"),
        event("RunStarted", "r2", "main", agent_id="helper", agent_name="Helper"),
        event("RunContent", "r2", "main", content="Two."),
        event("RunCompleted", "r2", "main", content="Two."),
        event("RunCompleted", "r1", "main", content=""),
        event("TeamToolCallCompleted", tool=delegation("d1")),
    )
    started = [(i.agent_id, i.name, i.call_id) for i in items if isinstance(i, AgentStarted)]
    assert started == [("helper", "Helper", "d1"), ("helper-2", "Helper", "d2")]
    assert [i.agent_id for i in items if isinstance(i, AgentFinished)] == ["helper-2", "helper"]


def test_delegation_ends_after_its_member_that_waits() -> None:
    translator = AgnoTranslator()
    items = fed(
        translator,
        event("TeamRunStarted"),
        event("TeamToolCallStarted", tool=delegation("d1")),
        event("RunStarted", "r1", "main", agent_id="helper", agent_name="helper"),
        event("RunPaused", "r1", "main"),
        event("TeamToolCallCompleted", tool=delegation("d1")),
        event("TeamRunPaused"),
    )
    assert not any(isinstance(item, ToolFinished | AgentFinished) for item in items)
    call, run, shown = translator.await_approval(tool("x", "danger"), "r1")
    assert shown == [ToolStarted(agent_id="helper", call_id="x", name="danger", args={"a": 1})]
    assert translator.finish_call(run, call, "", "rejected") == [
        ToolFinished(agent_id="helper", call_id="x", error="rejected")
    ]
    items = fed(
        translator,
        event("RunContinued", "r1", "main"),
        event("RunContent", "r1", "main", content="Well."),
        event("RunCompleted", "r1", "main", content="Well."),
    )
    assert items[-2:] == [AgentFinished(agent_id="helper"), ToolFinished(call_id="d1", result="Well.")]


def test_failed_member_fails_its_call_and_failed_main_agent_raises() -> None:
    translator = AgnoTranslator()
    items = fed(
        translator,
        event("TeamRunStarted"),
        event("TeamToolCallStarted", tool=delegation("d1")),
        event("RunStarted", "r1", "main", agent_id="helper", agent_name="helper"),
        event("RunError", "r1", "main", content="out of order"),
        event("TeamToolCallCompleted", tool=delegation("d1")),
    )
    assert items[-2:] == [
        AgentFinished(agent_id="helper", error="out of order"),
        ToolFinished(call_id="d1", error="out of order"),
    ]
    with pytest.raises(AgentFailed, match="no more"):
        translator.feed(event("TeamRunError", content="no more"))


def test_connection_error_names_the_address_of_the_model() -> None:
    translator = AgnoTranslator(address="http://127.0.0.1:9/v1")
    with pytest.raises(AgentFailed, match=r"^Connection error: http://127\.0\.0\.1:9/v1$"):
        translator.feed(event("RunError", content="Connection error."))
    with pytest.raises(AgentFailed, match=r"^no more$"):
        translator.feed(event("RunError", content="no more"))


def test_run_that_agno_cancels_is_cancelled_once() -> None:
    translator = AgnoTranslator()
    items = fed(translator, event("RunStarted"), event("RunCancelled", reason="why not"), event("RunCompleted"))
    assert items == [RunCancelled(reason="why not")]
    assert translator.end() == []


def test_step_limit_ends_the_run() -> None:
    translator = AgnoTranslator(max_steps=1)
    items = fed(
        translator, event("RunStarted"), event("ModelRequestStarted"), content("Hm."), event("ModelRequestStarted")
    )
    assert items[-2:] == [FinalAnswer(content="Hm.", message_id="msg-1"), RunFinished(code="max_steps")]
    assert translator.ended


@dataclass
class Progress(CustomEvent):
    share: float = 0.0


def test_custom_event_is_output_of_its_tool_and_the_result_is_that_of_agno() -> None:
    translator = AgnoTranslator()
    sent = Progress(share=0.5)
    result = f"{sent}there"
    sent.tool_call_id, sent.run_id = "c1", "main"
    items = fed(
        translator,
        event("ToolCallStarted", tool=tool()),
        sent,
        event("ToolCallCompleted", tool=tool(result=result)),
    )
    assert items[1:] == [
        ToolOutputDelta(call_id="c1", text='{"share":0.5}\n'),
        ToolFinished(call_id="c1", result=result),
    ]
    assert fed(translator, event("CustomEvent", content="By the way.", tool_call_id=None)) == [
        Status(text="By the way.")
    ]


def test_citations_are_shown_once() -> None:
    page = Namespace(url="https://bees.example", title="Bees")
    found = Namespace(references=[{"name": "Hives", "content": "A hive is …", "meta_data": {"url": "https://h"}}, "a"])
    cited: dict[str, Any] = {"citations": Namespace(urls=[page], documents=None), "references": [found]}
    items = fed(AgnoTranslator(), content("x", **cited), event("RunCompleted", content="x", **cited))
    assert [item for item in items if isinstance(item, SourceCited)] == [
        SourceCited(title="Bees", url="https://bees.example"),
        SourceCited(title="Hives", url="https://h", text="A hive is …"),
        SourceCited(title="a", text="a"),
    ]


def test_media_are_yielded_once_and_a_url_is_a_source() -> None:
    drawn = Namespace(id="i1", content=b"\x89PNG", mime_type="image/png", filename="bee.png", url=None)
    linked = Namespace(id="i2", content=None, url="https://bees.example/bee.png", filepath=None)
    done = event("ToolCallCompleted", tool=tool(result="ok"), images=[drawn, linked], videos=None)
    items = fed(AgnoTranslator(), event("ToolCallStarted", tool=tool()), done, event("RunCompleted", images=[drawn]))
    assert [item for item in items if isinstance(item, FileMade | SourceCited)] == [
        FileMade(name="bee.png", data=b"\x89PNG", media_type="image/png", call_id="c1"),
        SourceCited(title="simplenamespace.bin", url="https://bees.example/bee.png"),
    ]


def test_medium_on_the_disk_is_not_read_by_the_translator() -> None:
    stored = Namespace(id="i1", content=None, url=None, filepath="/nowhere/bee.png")
    done = event("ToolCallCompleted", tool=tool(result="ok"), images=[stored])
    items = fed(AgnoTranslator(), event("ToolCallStarted", tool=tool()), done)
    (file,) = [item for item in items if isinstance(item, FileMade)]
    assert (file.name, file.media_type, file.call_id) == ("bee.png", "image/png", "c1")
    assert callable(file.data)


def test_reasoning_steps_are_shown_once() -> None:
    step = Namespace(title="Look", reasoning="Where?", result=None)
    translator = AgnoTranslator()
    items = fed(
        translator,
        event("ReasoningStarted"),
        event("ReasoningStep", content=step),
        event("ReasoningCompleted", content=Namespace(reasoning_steps=[step])),
        event("ReasoningCompleted", content=Namespace(reasoning_steps=[step])),
        event("ReasoningContentDelta", reasoning_content="More"),
    )
    assert [item.text for item in items if isinstance(item, ReasoningDelta)] == [
        "**Look**\nWhere?\n\n",
        "**Look**\nWhere?\n\n",
        "More",
    ]


def test_tasks_become_a_plan() -> None:
    translator = AgnoTranslator()
    items = fed(
        translator,
        event("TeamTaskCreated", task_id="t1", title="Look", status="pending"),
        event("TeamTaskUpdated", task_id="t1", title="", status="failed"),
        event("TeamTaskStateUpdated", tasks=[Namespace(id="t1", title="Look", status="failed")]),
        event("TeamTaskIterationStarted", iteration=2, max_iterations=10),
    )
    assert items == [
        Plan(items=(Todo("Look"),)),
        Plan(items=(Todo("Look (failed)", "completed"),), update=True),
        Status(text="Round 2 of at most 10"),
    ]


def test_rejected_call_is_shown_in_its_step() -> None:
    """Events of the request itself may arrive after the rejection, and are shown before it."""
    translator = AgnoTranslator()
    fed(translator, event("RunStarted"))
    translator.rejections.append(Rejection("main", 1, RejectedCall("c9", "nothing", "{", "no such tool")))
    items = fed(
        translator,
        event("ModelRequestStarted"),
        content("Well."),
        event("ModelRequestStarted"),
        content("Done."),
        event("RunCompleted", content="Well.Done."),
    )
    calls = [ToolStarted(call_id="c9", name="nothing", args="{"), ToolFinished(call_id="c9", error="no such tool")]
    at = items.index(calls[0])
    assert items[at : at + 2] == calls
    assert items[at - 1] == TextFinished(message_id="msg-1") and isinstance(items[at + 2], StepFinished)
    assert translator.rejections == []


def test_rejected_calls_that_were_not_reported_are_shown_at_the_end() -> None:
    translator = AgnoTranslator()
    fed(translator, event("RunStarted"), content("Well."), event("RunCompleted", content="Well."))
    function = {"name": "nothing", "arguments": "{"}
    asked = Namespace(role="assistant", content="", tool_calls=[{"id": "c9", "function": function}], tool_call_id=None)
    reply = Namespace(role="tool", content="Error: no such tool", tool_calls=None, tool_call_id="c9")
    items = translator.end(Namespace(messages=[asked, reply]))
    assert items[:2] == [
        ToolStarted(call_id="c9", name="nothing", args="{"),
        ToolFinished(call_id="c9", error="no such tool"),
    ]
