# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Input objects and context of real graphs, through a server."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from limelight.events import ApprovalRequested, RunFailed, RunFinished, RunStarted
from limelight.sources.base import Options
from tests.sources.langgraph import input_graphs
from tests.sources.live_turn import FinishedRun, record_of, serve_agent
from tests.support.server import collect


async def run(
    target: Any,
    data: Path,
    question: str | None = None,
    *,
    settings: dict[str, Any] | None = None,
    allowed: bool | tuple[str, ...] = False,
    **body: Any,
) -> FinishedRun:
    """Run one turn of a graph, with the `input` and `context` of its settings, and the context keys of requests."""
    options = Options(**(settings or {}))
    async with serve_agent(lambda _: target, "", data, options=options, context_from_request=allowed) as server:
        return await server.run(question, **body)


def answer_of(finished: FinishedRun) -> Any:
    assert isinstance(finished.terminal, RunFinished), finished.terminal
    return finished.answer


@pytest.mark.requirement("graph-input")
@pytest.mark.parametrize(
    ("target", "values", "answer"),
    [
        (input_graphs.typed_dict_input(), {"topic": "bees", "audience": "all"}, "bees for all, any length"),
        (
            input_graphs.pydantic_input(),
            {"person": {"name": "Ada", "born": "1815-12-10"}, "days": 3, "places": ["Rome"]},
            "Ada (1815) spends 3 days in Rome",
        ),
        (input_graphs.dataclass_input(), {"company": "Acme", "notes": "big"}, "Acme: size; big"),
        (input_graphs.numbers(), {"numbers": [1, 2], "factor": 2}, {"total": 6}),
        (input_graphs.typed_function, {"item": "tea", "count": 2}, "2 x tea"),
        (input_graphs.dataclass_function, {"text": "tea"}, "tea (3)"),
        (input_graphs.dict_function, {"a": 1, "b": [2]}, "a=1, b=[2]"),
    ],
)
@pytest.mark.parametrize("form", ["input", "question"])
async def test_input_object_reaches_the_graph(
    target: Any, values: dict[str, Any], answer: Any, form: str, tmp_path: Path
) -> None:
    text = msgspec.json.encode(values).decode()
    finished = await (run(target, tmp_path, input=values) if form == "input" else run(target, tmp_path, text))
    assert answer_of(finished) == answer
    started = finished.one(RunStarted)
    assert started.input_values == values
    if form == "question":
        assert started.input == text
    else:
        assert all(f"{key}: " in started.input for key in values)


async def test_question_and_input_are_combined(tmp_path: Path) -> None:
    finished = await run(input_graphs.messages_and_topic(), tmp_path, "What is new", input={"topic": "bees"})
    assert answer_of(finished) == "What is new about bees"
    started = finished.one(RunStarted)
    assert (started.input, started.input_values) == ("What is new", {"topic": "bees"})


async def test_input_without_a_question_adds_no_message(tmp_path: Path) -> None:
    finished = await run(input_graphs.messages_and_topic(), tmp_path, input={"topic": "bees"})
    assert answer_of(finished) == "nothing about bees"


async def test_objects_without_all_keys_of_their_typed_dict_reach_the_graph(tmp_path: Path) -> None:
    values = {"lines": [{"id": "1"}, {"id": "2", "grade": 0}]}
    assert answer_of(await run(input_graphs.partial_values(), tmp_path, input=values)) == {"graded": ["2"]}


async def test_messages_of_the_input_are_used(tmp_path: Path) -> None:
    values = {"topic": "bees", "messages": [{"role": "user", "content": "Tell me"}]}
    assert answer_of(await run(input_graphs.messages_and_topic(), tmp_path, input=values)) == "Tell me about bees"


async def test_later_turn_keeps_the_values_of_the_first(tmp_path: Path) -> None:
    async with serve_agent(lambda _: input_graphs.messages_and_topic(), "", tmp_path) as server:
        await server.run("one", session_id="a", input={"topic": "bees"})
        second = await server.run("two", session_id="a")
        third = await server.run("three", session_id="a", input={"topic": "ants"})
    assert answer_of(second) == "two about bees"
    assert answer_of(third) == "three about ants"


async def test_answer_of_a_later_turn_does_not_repeat_earlier_input(tmp_path: Path) -> None:
    async with serve_agent(lambda _: input_graphs.typed_dict_input(), "", tmp_path) as server:
        await server.run(None, session_id="a", input={"topic": "bees", "audience": "all"})
        second = await server.run("ants", session_id="a")
        third = await server.run(None, session_id="a", input={"style": "long"})
    assert (answer_of(second), answer_of(third)) == ("ants for all, any length", "ants for all, long")


async def test_plain_question_still_fits_a_graph_with_one_text(tmp_path: Path) -> None:
    finished = await run(input_graphs.one_text_and_work(), tmp_path, "a letter")
    assert answer_of(finished) == {"documents": ["a"], "draft": "draft of a letter"}
    assert finished.one(RunStarted).input_values is None


async def test_json_question_that_does_not_fit_is_a_question(tmp_path: Path) -> None:
    for text in ('{"task": 1}', '{"other": "x"}', "{}", '{"task": "x"', "[1]"):
        finished = await run(input_graphs.one_text_and_work(), tmp_path / text.strip("{}[]").replace('"', ""), text)
        assert answer_of(finished)["draft"] == f"draft of {text}"
        assert finished.one(RunStarted).input_values is None


async def test_missing_input_of_a_question_fails_with_its_keys(tmp_path: Path) -> None:
    finished = await run(input_graphs.pydantic_input(), tmp_path, "go")
    assert isinstance(finished.terminal, RunFailed)
    message = finished.terminal.message
    assert "Send the values as `input`" in message and "person, days" in message


async def test_defaults_of_the_settings_begin_a_conversation(tmp_path: Path) -> None:
    settings = {"input": {"audience": "children", "style": "short"}}
    target = input_graphs.typed_dict_input()
    assert answer_of(await run(target, tmp_path / "1", "bees", settings=settings)) == "bees for children, short"
    given = await run(target, tmp_path / "2", "ants", settings=settings, input={"style": "long"})
    assert answer_of(given) == "ants for children, long"


async def test_defaults_do_not_replace_what_the_conversation_has(tmp_path: Path) -> None:
    options = Options(input={"topic": "bees"})
    async with serve_agent(lambda _: input_graphs.messages_and_topic(), "", tmp_path, options=options) as server:
        first = await server.run("one", session_id="a")
        await server.run("two", session_id="a", input={"topic": "ants"})
        third = await server.run("three", session_id="a")
    assert (answer_of(first), answer_of(third)) == ("one about bees", "three about ants")


async def test_required_user_id_is_that_of_the_run(tmp_path: Path) -> None:
    finished = await run(input_graphs.needs_user(), tmp_path, input={"amount": 3})
    assert answer_of(finished) == "local pays 3"


async def test_nested_value_that_does_not_fit_its_class_fails_with_its_key(tmp_path: Path) -> None:
    values = {"person": {"name": "Ada", "born": "soon"}, "days": 3}
    finished = await run(input_graphs.pydantic_input(), tmp_path, input=values)
    assert isinstance(finished.terminal, RunFailed)
    assert "person does not fit Person" in finished.terminal.message


async def test_large_values_are_in_the_text_of_the_input(tmp_path: Path) -> None:
    values = {"topic": "x" * 20_000}
    async with serve_agent(lambda _: input_graphs.messages_and_topic(), "", tmp_path) as server:
        finished = await server.run("go", input=values)
        started = finished.one(RunStarted)
        assert started.input_values is None and started.input.startswith("go\n\ntopic: xxx")
        run_id = finished.records[0].run_id
        text = (await server.served.http.get(f"/runs/{run_id}/input")).text
    assert text == f"go\n\ntopic: {values['topic']}"


# Context


@pytest.mark.requirement("graph-context")
async def test_missing_context_fails_before_the_graph_runs(tmp_path: Path) -> None:
    finished = await run(input_graphs.with_dataclass_context(), tmp_path, "hi")
    assert isinstance(finished.terminal, RunFailed)
    message = finished.terminal.message
    assert "needs the context tone, language" in message
    assert "[agents.agent]" in message and "context_from_request" in message
    assert "TypeError" not in message
    assert [type(event) for event in finished.events] == [RunStarted, RunFailed]


@pytest.mark.parametrize(
    ("target", "context", "answer"),
    [
        (input_graphs.with_dataclass_context(), {"tone": "calm", "language": "de"}, "calm de small local"),
        (input_graphs.with_model_context(), {"tone": "calm", "temperature": 1}, "calm 1.0"),
        (input_graphs.with_typed_dict_context(), {"tone": "calm"}, "calm"),
        (input_graphs.with_typed_dict_context(), {}, "no tone"),
        (input_graphs.with_old_config(input_graphs.PersonaDict), {"tone": "calm"}, "calm local"),
        (input_graphs.with_old_config(), {"tone": "calm"}, "calm local"),
        (input_graphs.with_configurable_node(), {"greeting": "polite"}, "good day"),
    ],
)
@pytest.mark.parametrize("place", ["settings", "request"])
async def test_context_reaches_the_graph(
    target: Any, context: dict[str, Any], answer: str, place: str, tmp_path: Path
) -> None:
    if place == "settings":
        finished = await run(target, tmp_path, "hi", settings={"context": context})
    else:
        finished = await run(target, tmp_path, "hi", context=context, allowed=True)
    assert answer_of(finished) == answer


async def test_context_of_a_request_wins_over_the_settings(tmp_path: Path) -> None:
    settings = {"context": {"tone": "calm", "language": "de", "model": "large"}}
    finished = await run(
        input_graphs.with_dataclass_context(),
        tmp_path,
        "hi",
        settings=settings,
        context={"tone": "loud"},
        allowed=("tone",),
    )
    assert answer_of(finished) == "loud de large local"


@pytest.mark.parametrize("key", ["user_id", "thread_id", "checkpoint_id", "__pregel_read"])
async def test_reserved_context_is_refused(key: str, tmp_path: Path) -> None:
    async with serve_agent(lambda _: input_graphs.with_old_config(), "", tmp_path, context_from_request=True) as server:
        body = {"messages": [{"role": "user", "content": "hi"}], "context": {key: "x"}}
        problem = await server.served.problem("POST", "/chat/stream", json=body)
    assert (problem["status"], problem["code"]) == (422, "invalid")
    assert problem["errors"] == [{"path": f"context.{key}", "message": f"{key!r} is reserved: only the server sets it"}]


async def test_run_that_waits_over_a_restart_keeps_its_context_and_input(tmp_path: Path) -> None:
    async def serve(ask: bool, run_id: str = "", approval_id: str = "") -> Any:
        options = Options(context={"language": "en"})
        target = input_graphs.interrupted_with_context()
        async with serve_agent(lambda _: target, "", tmp_path, options=options, context_from_request=True) as server:
            if ask:
                values = {"input": {"topic": "bees"}, "context": {"tone": "calm"}}
                async for frame in server.served.ask("go", format="records", **values):
                    record = record_of(frame)
                    if isinstance(record.event, ApprovalRequested):
                        return record.run_id, record.event.approval_id
            address = f"/runs/{run_id}/approvals/{approval_id}"
            assert (await server.served.http.post(address, json={"decision": "approve"})).status_code == 200
            await collect(server.served.stream("GET", f"/runs/{run_id}/stream"))
            return (await server.served.http.get(f"/runs/{run_id}/answer")).text

    assert await serve(False, *await serve(True)) == "True calm bees"
