# pyright: reportMissingTypeStubs=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
"""LangGraph's translator with random parts: the events are always legal."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from limelight.events import AnyEvent, RunStarted
from limelight.grammar import Grammar
from limelight.sources.base import FileMade
from limelight.sources.langgraph.stream_parts import part_of
from limelight.sources.langgraph.translator import LangGraphTranslator

CALL_IDS = st.sampled_from(["c1", "c2", ""])
RUN_IDS = st.sampled_from(["01a1eb0d-73c6-76d3-bd1c-d5b373334b62", "01a1eb0d-73c7-7471-bf45-3db3171234bd"])
TASK_IDS = st.sampled_from(["t1", "t2", "m1"])
PLACES = st.sampled_from([(), ("tools:t1",), ("tools:t1", "1"), ("tools:t2",), ("sub:m1",), ("tools:t1", "tools:t2")])
NAMES = st.sampled_from(["add", "task", ""])
CALLS = st.builds(lambda id, name: {"id": id, "name": name, "args": {}, "type": "tool_call"}, CALL_IDS, NAMES)
PIECES = st.builds(
    lambda id, name, args, index: {"id": id, "name": name, "args": args, "index": index, "type": "tool_call_chunk"},
    st.none() | CALL_IDS,
    st.none() | NAMES,
    st.sampled_from(["", "{", "}"]),
    st.sampled_from([0, 1, None]),
)
CONTENTS = st.sampled_from(
    ["", "word ", [{"type": "text", "text": "x"}], [{"type": "thinking", "thinking": "hm"}], ["plain"]]
)
RESULTS = st.builds(
    lambda id, content, status: ToolMessage(content, tool_call_id=id, status=status),
    CALL_IDS,
    st.sampled_from(["", "done", "null"]),
    st.sampled_from(["success", "error"]),
)
OUTPUTS = st.one_of(RESULTS, st.just("text"), st.none(), RESULTS.map(lambda m: Command(update={"messages": [m]})))
MESSAGES: st.SearchStrategy[AnyMessage] = st.one_of(
    st.builds(
        lambda id, content, pieces, last: AIMessageChunk(
            content=content, id=id, tool_call_chunks=pieces, chunk_position="last" if last else None
        ),
        st.sampled_from(["a", "b"]),
        CONTENTS,
        st.lists(PIECES, max_size=2),
        st.booleans(),
    ),
    st.builds(lambda id, calls: AIMessage("whole", id=id, tool_calls=calls), st.sampled_from("ab"), st.lists(CALLS)),
    RESULTS,
    st.just(HumanMessage("go", id="q")),
)
FORMS = st.one_of(
    st.builds(lambda id, content: {"role": "tool", "content": content, "tool_call_id": id}, CALL_IDS, st.just("done")),
    st.just(("tool", "done")),
    st.just(("ai", "word ")),
    st.builds(
        lambda calls: {"role": "assistant", "content": "whole", "tool_calls": calls}, st.lists(CALLS, max_size=2)
    ),
    RESULTS,
)
STATES = st.builds(
    lambda calls, forms: {"messages": [*forms, AIMessage("", tool_calls=calls)]},
    st.lists(CALLS),
    st.lists(FORMS, max_size=2),
)
METADATA = st.builds(
    lambda place, task: {"langgraph_node": "model", "langgraph_checkpoint_ns": "|".join([*place, f"tools:{task}"])},
    PLACES,
    TASK_IDS,
)
STOPS = st.lists(st.builds(lambda id: {"id": id, "value": "Sure?"}, st.sampled_from(["i1", "i2"])), max_size=2)
DATA = st.one_of(
    st.tuples(st.just("messages"), st.tuples(MESSAGES, METADATA)),
    st.tuples(
        st.just("tools"),
        st.builds(
            lambda event, id, name, output: {
                "event": event,
                "tool_call_id": id,
                "tool_name": name,
                "input": {},
                "output": output,
                "delta": "x",
                "message": "e",
            },
            st.sampled_from(["tool-started", "tool-output-delta", "tool-finished", "tool-error"]),
            CALL_IDS | RUN_IDS,
            NAMES,
            OUTPUTS,
        ),
    ),
    st.tuples(
        st.just("tasks"),
        st.builds(
            lambda id, calls: {"id": id, "name": "tools" if calls else "model", "input": calls},
            TASK_IDS,
            st.lists(CALLS) | STATES,
        ),
    ),
    st.tuples(
        st.just("tasks"),
        st.builds(
            lambda id, stops, error, key, forms: {
                "id": id,
                "name": "x",
                "interrupts": stops,
                "error": error,
                "result": {key: forms},
            },
            TASK_IDS,
            STOPS,
            st.sampled_from([None, "broke"]),
            st.sampled_from(["messages", "other", "__return__"]),
            st.lists(FORMS, max_size=3),
        ),
    ),
    st.tuples(st.just("custom"), st.sampled_from(["word", {"n": 1}])),
)


def legal(grammar: Grammar, items: Any) -> None:
    """Check the events as the engine does, which adds only the events that are missing before an end."""
    for item in items:
        if isinstance(item, FileMade):
            continue
        event: AnyEvent = item
        for missing in grammar.missing_before(event, "cut off"):
            grammar.check(missing)
        grammar.check(event)


@given(st.lists(st.tuples(DATA, PLACES), max_size=25), st.sampled_from(["ends", "breaks", "stops"]))
def test_events_are_legal_for_random_parts(parts: list[Any], how: str) -> None:
    translator, grammar = LangGraphTranslator(), Grammar()
    grammar.check(RunStarted(agent="x"))
    for (type_, data), ns in parts:
        legal(grammar, translator.feed(part_of({"type": type_, "ns": ns, "data": data})))
        translator.take_interrupts()
    if how == "stops":
        legal(grammar, translator.stopped())
        return
    legal(grammar, translator.failed("broke") if how == "breaks" else translator.end("answer", None))
    assert how == "breaks" or grammar.terminal is not None
    assert not (grammar.calls or grammar.agents or grammar.texts or grammar.reasonings or grammar.steps)
