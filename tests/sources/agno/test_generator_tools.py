"""Agno: the output of tools that are generators is live, and such tools have their own durations."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from agno.db.sqlite import AsyncSqliteDb
from agno.tools import tool

from limelight import status
from limelight.events import Status, ToolOutputDelta
from limelight.sources.agno.tool_calls import OwnEvent
from tests.sources.agno.agno_scenarios import HELPER, answering, calling, plain, team
from tests.sources.conformance import ANSWER
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in

pytestmark = pytest.mark.usefixtures("agno_models")


def count(upto: int) -> Iterator[str]:
    """Count."""
    for number in range(1, upto + 1):
        yield f"{number} "


async def recite(seconds: float) -> AsyncIterator[str]:
    """Recite."""
    yield "To be "
    await asyncio.sleep(seconds)
    yield "or not."


def broken() -> Iterator[str]:
    """Break."""
    yield "first"
    raise ValueError("it broke")


def pieces(run: FinishedRun, name: str) -> list[str]:
    return [delta.text for delta in run.all(ToolOutputDelta, call_id=run.call(name).call_id)]


@pytest.mark.requirement("agno-generator-tools")
async def test_texts_are_live_output_and_the_result_is_all_of_them(tmp_path: Path, requests: Requests) -> None:
    script = answering(
        "- steps: [{tool_calls: [{name: count, arguments: {upto: 3}}, {name: recite, arguments: {seconds: 0.6}}]}]"
    )
    run = await run_agent(lambda endpoint: plain(endpoint, tools=[count, recite]), script, tmp_path)
    counted, recited = run.call("count"), run.call("recite")
    assert pieces(run, "count") == ["1 ", "2 ", "3 "] and pieces(run, "recite") == ["To be ", "or not."]
    assert (counted.result, recited.result) == ("1 2 3 ", "To be or not.")
    durations = [call.finished.duration_ms or 0 for call in (counted, recited)]
    assert durations[0] < durations[1] and durations[1] >= 590
    assert [text for role, text in conversation_in(requests[-1]) if role == "tool"] == ["1 2 3 ", "To be or not."]


async def test_failing_generator_keeps_its_output_and_its_error(tmp_path: Path) -> None:
    run = await run_agent(
        lambda endpoint: plain(endpoint, tools=[broken]), answering(calling("broken", "{}")), tmp_path
    )
    call = run.call("broken")
    assert (pieces(run, "broken"), call.error) == (["first"], "it broke")
    assert run.answer == ANSWER


async def test_ordinary_generator_runs_in_a_thread_and_belongs_to_its_agent(tmp_path: Path) -> None:
    threads: list[bool] = []

    def where() -> Iterator[str]:
        """Say where."""
        threads.append(threading.current_thread() is threading.main_thread())
        status("here")
        yield "done"

    def make(endpoint: ModelEndpoint) -> Any:
        return team(endpoint, members=[plain(endpoint, name="helper", tools=[where])])

    run = await run_agent(make, HELPER % ("where", "{}"), tmp_path)
    assert threads == [False]
    assert run.one(Status, text="here").agent_id == "helper"
    assert pieces(run, "where") == ["done"] and run.call("where").result == "done"
    assert run.call("delegate_task_to_member").result == "The sum is five."


async def test_approved_generator_is_live_too(tmp_path: Path) -> None:
    asking = tool(requires_confirmation=True)(count)
    run = await run_agent(
        lambda endpoint: plain(endpoint, tools=[asking]),
        answering(calling("count", "{upto: 2}")),
        tmp_path,
        decide=lambda _: {"decision": "approve"},
    )
    assert pieces(run, "count") == ["1 ", "2 "] and run.call("count").result == "1 2 "


async def test_decorated_generators_are_live_too(tmp_path: Path) -> None:
    script = answering(calling("recite", "{seconds: 0.01}"), calling("count", "{upto: 2}"))
    tools = [tool()(recite), tool()(count)]
    run = await run_agent(lambda endpoint: plain(endpoint, tools=tools), script, tmp_path)
    assert pieces(run, "recite") == ["To be ", "or not."] and run.call("recite").result == "To be or not."
    assert pieces(run, "count") == ["1 ", "2 "] and run.call("count").result == "1 2 "


async def test_shown_results_stay_the_texts_of_the_agent(tmp_path: Path) -> None:
    shown = tool(show_result=True, stop_after_tool_call=True)(count)
    run = await run_agent(
        lambda endpoint: plain(endpoint, tools=[shown]), answering(calling("count", "{upto: 2}")), tmp_path
    )
    assert run.text() == "1 2 " and pieces(run, "count") == []


async def test_agent_that_stores_its_events_is_saved_without_those_of_limelight(
    tmp_path: Path, requests: Requests
) -> None:
    file = tmp_path / "own.db"
    db = AsyncSqliteDb(db_file=str(file))

    def make(endpoint: ModelEndpoint) -> Any:
        return plain(endpoint, tools=[count], db=db, store_events=True, add_history_to_context=True)

    async with serve_agent(make, answering(calling("count", "{upto: 2}")), tmp_path) as server:
        run = await server.run("first", session_id="a")
        await server.run("second", session_id="a")
    await db.close()
    assert pieces(run, "count") == ["1 ", "2 "]
    assert ("user", "first") in conversation_in(requests[-1])
    stored = file.read_bytes()
    assert b"ToolCallStarted" in stored and OwnEvent.NAME.value.encode() not in stored
