"""The source of docs/your-own-source.md: the scenarios of all sources, and the page's own claims."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelMessage, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from limelight import plugins
from limelight.agents.local_sources import with_sources
from limelight.agents.resolve import resolve_agents
from limelight.config import load_settings
from limelight.events import AnyEvent, FinalAnswer, RunCancelled, RunFailed, TextDelta, Usage
from limelight.message_formats import from_pydantic_ai
from limelight.sources.base import Source
from tests.sources.conformance import Case
from tests.sources.live_turn import AgentServer, ModelEndpoint, serve_agent
from tests.sources.pydantic_ai.page import PageSource, page_code
from tests.sources.pydantic_ai.pydantic_ai_scenarios import CASES, CLIENTS
from tests.sources.suite import SourceSuite
from tests.support.server import serving

HERE = ModelEndpoint("", "")


@pytest.fixture(autouse=True)
def page_source_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the source known to `wrap`, as an entry point would."""
    find = plugins.find

    def find_with_page(group: str) -> dict[str, Any]:
        return find(group) | ({"pydantic_ai": PageSource} if group == "sources" else {})

    monkeypatch.setattr(plugins, "find", find_with_page)


@pytest.fixture(autouse=True)
async def clients_are_closed() -> AsyncIterator[None]:
    yield
    while CLIENTS:
        await CLIENTS.pop().close()


class TestPage(SourceSuite):
    source: ClassVar[type[Source]] = PageSource
    cases: ClassVar[Mapping[str, Case]] = CASES


# The files of the page


@pytest.mark.requirement("local-sources")
@pytest.mark.parametrize("way", ["option", "configuration"])
async def test_agent_of_the_page_is_served_with_the_source_of_the_page(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the source is in the file only
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = page_code()
    (tmp_path / "my_source.py").write_text(code.source)
    (tmp_path / "my_agent.py").write_text(code.agent)
    if way == "option":
        settings = with_sources(load_settings(environ={}), ["my_source.py:PydanticAISource"])
        agents = resolve_agents(settings, ["my_agent.py:agent"]).agents
    else:
        (tmp_path / "config.toml").write_text(
            '[sources]\npydantic_ai = "my_source.py:PydanticAISource"\n[agents.agent]\ntarget = "my_agent.py:agent"\n'
        )
        agents = resolve_agents(load_settings(environ={})).agents
    assert [(agent.name, agent.source.framework) for agent in agents] == [("agent", "pydantic_ai")]
    async with serving(agents=agents, data=tmp_path / "data") as served:
        run = await AgentServer(served, HERE).run("How many bees?")
    assert run.call("count_bees").result == 40_000
    assert run.answer == '{"count_bees":40000}'


# A model of the test


class ScriptedModel:
    """A function model that records what it gets, and streams what the test gives."""

    def __init__(self, *replies: list[Any]) -> None:
        self.replies = list(replies)
        self.histories: list[list[ModelMessage]] = []
        self.closed = asyncio.Event()

    async def stream(self, messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
        self.histories.append(list(messages))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        try:
            for piece in reply:
                if piece is None:
                    await asyncio.Event().wait()
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            self.closed.set()

    def agent(self, **options: Any) -> Any:
        def make(_: ModelEndpoint) -> object:
            return Agent(FunctionModel(stream_function=self.stream), **options)

        return make

    def said(self) -> list[tuple[str, str]]:
        """The messages of the last request, by role and text."""
        return [(message.role, message.text) for message in from_pydantic_ai(self.histories[-1])]


async def test_reasoning_text_and_calls_are_streamed(tmp_path: Path) -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    model = ScriptedModel(
        [
            {0: DeltaThinkingPart(content="Let ")},
            {0: DeltaThinkingPart(content="me.")},
            {1: DeltaToolCall(name="add", tool_call_id="c1")},
            {1: DeltaToolCall(json_args='{"a": 2,')},
            {1: DeltaToolCall(json_args=' "b": 3}')},
        ],
        ["It is ", "five."],
    )
    async with serve_agent(model.agent(tools=[add]), "", tmp_path) as server:
        run = await server.run("go")
    assert run.reasoning() == "Let me."
    assert (run.call("add").args_text, run.call("add").result) == ('{"a": 2, "b": 3}', 5)
    assert [event.text for event in run.all(TextDelta)] == ["It is ", "five."]
    assert run.one(FinalAnswer).message_id == run.all(TextDelta)[0].message_id
    assert run.one(Usage).output_tokens > 0


async def test_session_continues_with_tool_calls_and_after_a_restart(tmp_path: Path) -> None:
    async def look() -> str:
        return "a bee"

    model = ScriptedModel([{0: DeltaToolCall(name="look", json_args="{}", tool_call_id="c")}], ["A bee."])
    make = model.agent(tools=[look])
    async with serve_agent(make, "", tmp_path) as server:
        await server.run("Look!", session_id="s")
        await server.run("Again?", session_id="s")
    earlier = [("user", "Look!"), ("assistant", ""), ("tool", "a bee"), ("assistant", "A bee."), ("user", "Again?")]
    assert model.said() == earlier
    async with serve_agent(make, "", tmp_path) as server:
        await server.run("Sure?", session_id="s")
    assert model.said() == [*earlier, ("assistant", "A bee."), ("user", "Sure?")]


async def test_sent_files_and_system_messages_reach_the_model(tmp_path: Path) -> None:
    model = ScriptedModel(["ok"])
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    content = [{"type": "text", "text": "see"}, picture]
    async with serve_agent(model.agent(), "", tmp_path) as server:
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
        await server.run(messages=messages)
    request: Any = model.histories[-1][-1]
    (prompt,) = [part for part in request.parts if isinstance(part, UserPromptPart)]
    assert isinstance(prompt.content[1], BinaryContent) and prompt.content[1].data == b"hello"
    assert request.instructions == "Be brief."


async def test_stop_ends_the_request_to_the_model_and_keeps_the_text(tmp_path: Path) -> None:
    model = ScriptedModel(["Half ", "of ", None])

    def said_half(event: AnyEvent) -> bool:
        return isinstance(event, TextDelta)

    async with serve_agent(model.agent(), "", tmp_path) as server:
        run = await server.run_until(said_half)
        await asyncio.wait_for(model.closed.wait(), 10)
    assert isinstance(run.terminal, RunCancelled)
    assert run.text().startswith("Half ")


async def test_error_of_the_model_fails_the_run_with_its_message(tmp_path: Path) -> None:
    model = ScriptedModel(["Half ", ValueError("no such model")])
    async with serve_agent(model.agent(), "", tmp_path) as server:
        run = await server.run()
    assert isinstance(run.terminal, RunFailed)
    assert "no such model" in run.terminal.message


async def test_structured_output_is_the_answer(tmp_path: Path) -> None:
    model = ScriptedModel([{0: DeltaToolCall(name="final_result", json_args='{"response": 5}', tool_call_id="c")}])
    async with serve_agent(model.agent(output_type=int), "", tmp_path) as server:
        run = await server.run()
    assert (run.answer, run.one(FinalAnswer).message_id) == (5, None)
