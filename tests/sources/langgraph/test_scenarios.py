# pyright: reportMissingTypeStubs=false
"""LangGraph: the scenarios of all sources, and LangGraph's own cases."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langgraph.graph import StateGraph

from limelight.events import RunFinished
from limelight.sources.base import Source
from limelight.sources.langgraph import LangGraphSource
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.conformance import Case
from tests.sources.langgraph.langgraph_scenarios import CASES, HELPER, deep, plain, small_graph
from tests.sources.langgraph.state_judge import StateJudge
from tests.sources.live_turn import FinishedRun, ModelEndpoint, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.sources.suite import SourceSuite


class TestLangGraph(SourceSuite):
    source: ClassVar[type[Source]] = LangGraphSource
    cases: ClassVar[Mapping[str, Case]] = CASES

    def maker(self, case: Case) -> StateJudge:
        return StateJudge(case.make)

    async def check(self, make: Callable[[ModelEndpoint], object], run: FinishedRun) -> None:
        """Check that the log holds every message and result that was written to the state, once and in order."""
        assert isinstance(make, StateJudge)
        if isinstance(run.terminal, RunFinished):
            await make.check(run)


# Accepted targets


def test_accepts_does_not_import_langgraph() -> None:
    code = (
        "import sys; from limelight.sources.langgraph import LangGraphSource as S; "
        "assert not S.accepts(lambda: 1) and not S.accepts(object()); "
        "sys.exit(any(name.partition('.')[0] in ('langgraph', 'langchain_core') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_accepts_compiled_and_uncompiled_graphs() -> None:
    builder = small_graph()
    assert LangGraphSource.accepts(builder)
    assert LangGraphSource.accepts(builder.compile())
    assert not LangGraphSource.accepts(StateGraph)


async def test_runs_do_not_change_the_given_graph(tmp_path: Path) -> None:
    graph = small_graph().compile()
    async with serve_agent(lambda _: graph, "", tmp_path) as server:
        assert (await server.run("twice")).answer == "twice twice"
    assert graph.checkpointer is None


# Memory

REMEMBER = """
- match: my name
  turns:
    - steps: [{text: Hello Ada.}]
- match: number
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{text: It is five.}]
- match: o
  turns:
    - steps: [{text: I see.}]
"""
FIRST = ("user", "my name is Ada")


async def test_session_continues_and_other_sessions_are_isolated(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run("my name is Ada", session_id="a")
        await server.run("a number", session_id="a")
        await server.run("and now?", session_id="a")
        await server.run("who am I?", session_id="b")
    calls = [("assistant", "[add]"), ("tool", "5"), ("assistant", "It is five.")]
    assert conversation_in(requests[-2]) == [
        FIRST, ("assistant", "Hello Ada."), ("user", "a number"), *calls, ("user", "and now?"),
    ]  # fmt: skip
    assert conversation_in(requests[-1]) == [("user", "who am I?")]


async def test_session_continues_after_a_restart(tmp_path: Path, requests: Requests) -> None:
    for question in ("my name is Ada", "and now?"):
        async with serve_agent(plain, REMEMBER, tmp_path) as server:
            await server.run(question, session_id="a")
    assert conversation_in(requests[-1]) == [FIRST, ("assistant", "Hello Ada."), ("user", "and now?")]


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "my name is Ada"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "2"},
    {"role": "assistant", "content": "Hello Ada."},
]
AS_SENT = [FIRST, ("assistant", "[add]"), ("tool", "2"), ("assistant", "Hello Ada.")]


async def test_history_of_a_request_is_added_once(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        asked = [*HISTORY, {"role": "user", "content": "and now?"}]
        await server.run(messages=asked, chat_id="a")
        assert conversation_in(requests[-1]) == [*AS_SENT, ("user", "and now?")]
        again = [*asked, {"role": "assistant", "content": "I see!"}, {"role": "user", "content": "go on"}]
        await server.run(messages=again, chat_id="a")
        kept = [*AS_SENT, ("user", "and now?"), ("assistant", "I see."), ("user", "go on")]
        assert conversation_in(requests[-1]) == kept
        edited = [{"role": "user", "content": "my name is Bob"}, *HISTORY[3:], {"role": "user", "content": "go on"}]
        await server.run(messages=edited, chat_id="a")
        expected = [("user", "my name is Bob"), ("assistant", "Hello Ada."), ("user", "go on")]
        assert conversation_in(requests[-1]) == expected
        await server.run("my name is Carl", chat_id="a")
        assert conversation_in(requests[-1]) == [("user", "my name is Carl")]


async def test_system_messages_are_applied_for_one_turn(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        instructed = [{"role": "system", "content": "Speak like a pirate."}, {"role": "user", "content": "hello"}]
        await server.run(messages=instructed, session_id="a")
        await server.run("go on", session_id="a")
    assert [m["role"] for m in requests[0]["messages"]] == ["system", "user"]
    assert "pirate" not in str(requests[1]["messages"])


async def test_forget_deletes_the_state(tmp_path: Path) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run("my name is Ada", session_id="a")
        await server.run("hello", session_id="b")
        assert threads(tmp_path) == 2
        (await server.served.http.delete("/sessions/a")).raise_for_status()
        assert threads(tmp_path) == 1


def threads(data: Path) -> int:
    with closing(sqlite3.connect(data / "langgraph.db")) as db:
        return db.execute("SELECT count(DISTINCT thread_id) FROM checkpoints").fetchone()[0]


# Requests to the model


@pytest.mark.requirement("same-requests")
async def test_model_gets_the_same_requests_with_and_without_limelight(tmp_path: Path, requests: Requests) -> None:
    script = HELPER % ("add", "{a: 2, b: 3}")
    async with Understudy(parse_scripts(script)) as understudy:
        graph = deep(ModelEndpoint(understudy.base_url, understudy.key))
        async for _ in graph.astream({"messages": [("user", "go")]}, stream_mode="messages"):
            pass
    alone = [(r["messages"], r["tools"]) for r in requests]
    requests.clear()
    async with serve_agent(deep, script, tmp_path) as server:
        await server.run("go")
    assert [(r["messages"], r["tools"]) for r in requests] == alone


async def test_sent_files_reach_the_model(tmp_path: Path, requests: Requests) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    content = [{"type": "text", "text": "what is this?"}, picture]
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run(messages=[{"role": "user", "content": content}])
    assert requests[0]["messages"][-1]["content"] == content
