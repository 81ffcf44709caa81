"""Agno: the scenarios of all sources, and Agno's own cases."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agno.agent import Agent
from agno.media import Image
from agno.run import RunContext
from agno.tools.function import ToolResult
from pydantic import BaseModel

from limelight.events import (
    AgentFinished,
    AgentStarted,
    ArtifactMade,
    FinalAnswer,
    SourceLink,
    StepFinished,
    TextDelta,
)
from limelight.sources.agno import AgnoSource
from limelight.sources.base import Source
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.agno.agno_scenarios import CASES, HELPER, ONE_TOOL, answering, calling, delegating, plain, team
from tests.sources.agno.scripts import REMEMBER
from tests.sources.conformance import ANSWER, Case
from tests.sources.live_turn import ModelEndpoint, run_agent, serve_agent
from tests.sources.recorded_requests import Requests
from tests.sources.suite import SourceSuite

pytestmark = pytest.mark.usefixtures("agno_models")


@pytest.fixture(autouse=True)
def _same_tasks(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Make the random ids of Agno's tasks the same in every run."""
    numbers = count(1)
    monkeypatch.setattr("agno.team.task.uuid4", lambda: f"task-{next(numbers):03}")


class TestAgno(SourceSuite):
    source: ClassVar[type[Source]] = AgnoSource
    cases: ClassVar[Mapping[str, Case]] = CASES


# Accepted targets


def test_accepts_does_not_import_agno() -> None:
    code = (
        "import sys; from limelight.sources.agno import AgnoSource as S; "
        "assert not S.accepts(lambda: 1) and not S.accepts(object()); "
        "Agent = type('Agent', (), {}); assert not S.accepts(Agent()); "
        "sys.exit(any(name.partition('.')[0] == 'agno' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_accepts_agents_teams_and_subclasses() -> None:
    class Own(Agent):
        pass

    endpoint = ModelEndpoint("http://127.0.0.1:1/v1", "key")
    assert AgnoSource.accepts(plain(endpoint)) and AgnoSource.accepts(team(endpoint))
    assert AgnoSource.accepts(Own())
    assert not AgnoSource.accepts(Agent)


def test_description_is_that_of_the_agent() -> None:
    assert AgnoSource(Agent(description="Counts beans.\nAll day.")).description == "Counts beans."
    assert AgnoSource(Agent(role="Counts peas.")).description == "Counts peas."
    assert AgnoSource(Agent()).description == ""


def visible(agent: Any) -> dict[str, Any]:
    """The attributes of an agent, without the connection of its model."""
    fields = {name: value for name, value in vars(agent).items() if name not in ("members", "model")}
    fields["members"] = [visible(member) for member in getattr(agent, "members", None) or ()]
    return fields


@pytest.mark.parametrize(("make", "script"), [(plain, ONE_TOOL), (team, HELPER % ("add", "{a: 2, b: 3}"))])
async def test_runs_do_not_change_the_given_object(make: Any, script: str, tmp_path: Path) -> None:
    given: list[Any] = []

    def made(endpoint: ModelEndpoint) -> Any:
        given.append(make(endpoint))
        return given[0]

    async with serve_agent(made, script, tmp_path) as server:
        before = visible(given[0])
        first, second = await asyncio.gather(
            server.run(session_id="a", messages=INSTRUCTED), server.run(session_id="b", messages=INSTRUCTED)
        )
        assert visible(given[0]) == before
        assert first.answer == second.answer == ANSWER
        assert given[0].db is None and not given[0].add_history_to_context
        plainly = await given[0].arun("go")  # and it can be used beside Limelight
        assert plainly.content == ANSWER


INSTRUCTED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]


@pytest.mark.requirement("same-requests")
async def test_model_gets_the_same_requests_with_and_without_limelight(tmp_path: Path, requests: Requests) -> None:
    for make, script in ((plain, ONE_TOOL), (team, HELPER % ("add", "{a: 2, b: 3}"))):
        requests.clear()
        async with Understudy(parse_scripts(script)) as understudy:
            agent: Any = make(ModelEndpoint(understudy.base_url, understudy.key))
            [event async for event in agent.arun("go", stream=True, stream_events=True)]
        without = [(request["messages"], request.get("tools")) for request in requests]
        requests.clear()
        async with serve_agent(make, script, tmp_path / agent.name) as server:
            await server.run()
        assert [(request["messages"], request.get("tools")) for request in requests] == without
        assert len(without) > 1


# Instructions and dependencies


async def test_system_messages_are_applied_for_one_turn(tmp_path: Path, requests: Requests) -> None:
    brief = {"role": "system", "content": "Be brief."}
    for number, options in enumerate(({}, {"instructions": "You act."}, {"system_message": "You act."})):
        requests.clear()
        async with serve_agent(
            lambda endpoint, o=options: plain(endpoint, **o), REMEMBER, tmp_path / str(number)
        ) as server:
            await server.run(messages=[brief, {"role": "user", "content": "hi?"}], session_id="a")
            await server.run("again?", session_id="a")
        instructions = [
            "".join(m["content"] for m in request["messages"] if m["role"] in ("system", "developer"))
            for request in requests
        ]
        assert "Be brief." in instructions[0] and "Be brief." not in instructions[1]
        assert all(("You act." in text) == bool(options) for text in instructions)


async def test_tools_get_the_user_and_the_session(tmp_path: Path) -> None:
    seen: list[Any] = []

    def who(run_context: RunContext) -> str:
        """Record the user."""
        seen.append((run_context.user_id, run_context.dependencies))
        return "done"

    options: dict[str, Any] = {"tools": [who], "dependencies": {"user_name": "mine", "key": 1}}
    script = answering(calling("who", "{}"))
    async with serve_agent(lambda endpoint: plain(endpoint, **options), script, tmp_path) as server:
        await server.run(session_id="a")
    assert seen == [("local", {"user_name": "mine", "key": 1, "session_id": "a", "user_id": "local"})]


async def test_sent_images_reach_the_model(tmp_path: Path, requests: Requests) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    content = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run(messages=[{"role": "user", "content": content}])
    sent = requests[-1]["messages"][-1]["content"]
    assert any(part.get("image_url", {}).get("url") == url for part in sent)


# Results of all kinds


async def test_files_of_tools_are_artifacts_once(tmp_path: Path) -> None:
    def paint() -> ToolResult:
        """Paint."""
        return ToolResult(content="painted", images=[Image(content=b"\x89PNG\r\n\x1a\n", mime_type="image/png")])

    script = answering(calling("paint", "{}"), calling("paint", "{}"))
    run = await run_agent(lambda endpoint: plain(endpoint, tools=[paint]), script, tmp_path)
    made = run.all(ArtifactMade)
    assert [(a.media_type, a.size) for a in made] == [("image/png", 8)] * 2
    assert [a.call_id for a in made] == [run.call("paint", 0).call_id, run.call("paint", 1).call_id]
    assert run.call("paint").result == "painted"


class Report(BaseModel):
    title: str
    content: str
    sources: list[str]


async def test_answer_of_an_output_schema_is_an_object(tmp_path: Path) -> None:
    script = """- steps: [{text: '{"title": "Bees", "content": "They hum.", "sources": ["a", "b"]}'}]"""
    run = await run_agent(lambda endpoint: plain(endpoint, output_schema=Report, tools=[]), script, tmp_path)
    links = (SourceLink("a"), SourceLink("b"))
    answer = FinalAnswer(title="Bees", content="They hum.", sources=("a", "b"), source_links=links)
    assert run.one(FinalAnswer) == answer
    assert run.all(TextDelta) == []


async def test_structured_answer_of_a_member_is_its_text(tmp_path: Path) -> None:
    script = f"""
- match: "help:"
  turns:
    - steps: [{{text: '{{"title": "Bees", "content": "", "sources": []}}'}}]
- turns:
    - steps: [{{tool_calls: [{delegating("helper", "help: now")}]}}]
    - steps: [{{text: All done.}}]
"""

    def make(endpoint: ModelEndpoint) -> Any:
        return team(endpoint, members=[plain(endpoint, name="helper", output_schema=Report, tools=[])])

    run = await run_agent(make, script, tmp_path)
    assert run.text("helper") == '{"title":"Bees","content":"","sources":[]}'
    assert run.text() == run.answer == ANSWER


# Members


async def test_team_continues_after_a_member_has_failed(tmp_path: Path) -> None:
    script = f"""
- match: "help:"
  turns:
    - steps: [{{error: {{status: 500, message: out of order}}}}]
- turns:
    - steps: [{{tool_calls: [{delegating("helper", "help: now")}]}}]
    - steps: [{{text: All done.}}]
"""
    run = await run_agent(team, script, tmp_path)
    assert run.one(AgentFinished).error == "out of order"
    assert run.call("delegate_task_to_member").error == "out of order"
    assert run.answer == ANSWER


async def test_one_call_can_delegate_to_all_members(tmp_path: Path) -> None:
    script = """
- match: "help:"
  turns:
    - steps: [{text: Here I am.}]
- turns:
    - steps: [{tool_calls: [{name: delegate_task_to_members, arguments: {task: "help: now"}}]}]
    - steps: [{text: All done.}]
"""

    def make(endpoint: ModelEndpoint) -> Any:
        return team(endpoint, members=[plain(endpoint, name=n) for n in ("one", "two")], delegate_to_all_members=True)

    run = await run_agent(make, script, tmp_path)
    call = run.call("delegate_task_to_members")
    assert {(a.name, a.call_id) for a in run.all(AgentStarted)} == {("one", call.call_id), ("two", call.call_id)}
    assert run.answer == ANSWER


REFUSED = """
- match: "help: x"
  turns:
    - steps: [{tool_calls: [{name: nothing_like_it, arguments: {a: 2}, id: u1}]}]
    - steps: [{text: The sum is five.}]
- match: go
  turns:
    - steps: [{tool_calls: [
        {name: delegate_task_to_member, arguments: {member_id: helper, task: "help: x"}, id: c1},
        {name: nor_this, raw: '{"a": ', id: u2}]}]
    - steps: [{text: All done.}]
"""


async def test_rejected_calls_are_shown_in_their_steps(tmp_path: Path) -> None:
    """They come before the answer, and those of a member inside of the member."""
    run = await run_agent(team, REFUSED, tmp_path)
    mine, members = run.call("nor_this"), run.call("nothing_like_it")
    assert (mine.started.agent_id, members.started.agent_id) == ("", "helper")
    assert mine.error and members.error and "does not exist" in members.error
    first_step = run.at(run.one(StepFinished, agent_id="", number=1))
    assert mine.ended_at < first_step
    assert run.at(run.agent("helper")) < members.ended_at < run.at(run.one(StepFinished, agent_id="helper", number=1))
