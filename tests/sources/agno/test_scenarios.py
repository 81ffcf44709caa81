"""Agno: the scenarios that every source passes, and what is its own."""

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
    StepFinished,
    TextDelta,
)
from limelight.sources.agno import AgnoSource
from limelight.sources.base import Source
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.agno.agno_scenarios import (
    CASES,
    HELPER,
    ONE_TOOL,
    answering,
    calling,
    delegating,
    plain,
    team,
)
from tests.sources.agno.scripts import REMEMBER
from tests.sources.conformance import ANSWER, Case
from tests.sources.live_turn import Stage, play, theatre
from tests.sources.recorded_requests import recorded
from tests.sources.suite import SourceSuite

pytestmark = pytest.mark.usefixtures("agno_models")


@pytest.fixture(autouse=True)
def _same_tasks(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """The ids of tasks, which Agno leaves to chance, are the same in every run."""
    numbers = count(1)
    monkeypatch.setattr("agno.team.task.uuid4", lambda: f"task-{next(numbers):03}")


class TestAgno(SourceSuite):
    source: ClassVar[type[Source]] = AgnoSource
    cases: ClassVar[Mapping[str, Case]] = CASES


# Who is taken, and what stays as it was


def test_agents_are_known_without_loading_the_framework() -> None:
    code = (
        "import sys; from limelight.sources.agno import AgnoSource as S; "
        "assert not S.accepts(lambda: 1) and not S.accepts(object()); "
        "Agent = type('Agent', (), {}); assert not S.accepts(Agent()); "
        "sys.exit(any(name.partition('.')[0] == 'agno' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_agents_teams_and_what_is_derived_from_them_are_taken() -> None:
    class Own(Agent):
        pass

    stage = Stage("http://127.0.0.1:1/v1", "key")
    assert AgnoSource.accepts(plain(stage)) and AgnoSource.accepts(team(stage))
    assert AgnoSource.accepts(Own())
    assert not AgnoSource.accepts(Agent)


def test_the_description_is_the_agents_own() -> None:
    assert AgnoSource(Agent(description="Counts beans.\nAll day.")).description == "Counts beans."
    assert AgnoSource(Agent(role="Counts peas.")).description == "Counts peas."
    assert AgnoSource(Agent()).description == ""


def visible(agent: Any) -> dict[str, Any]:
    """All that can be seen of an agent, but what a model keeps of its own connection."""
    fields = {name: value for name, value in vars(agent).items() if name not in ("members", "model")}
    fields["members"] = [visible(member) for member in getattr(agent, "members", None) or ()]
    return fields


@pytest.mark.parametrize(("make", "script"), [(plain, ONE_TOOL), (team, HELPER % ("add", "{a: 2, b: 3}"))])
async def test_the_given_object_stays_as_it_was(make: Any, script: str, tmp_path: Path) -> None:
    given: list[Any] = []

    def made(stage: Stage) -> Any:
        given.append(make(stage))
        return given[0]

    async with theatre(made, script, tmp_path) as stage:
        before = visible(given[0])
        first, second = await asyncio.gather(
            stage.play(session_id="a", messages=TOLD), stage.play(session_id="b", messages=TOLD)
        )
        assert visible(given[0]) == before
        assert first.answer == second.answer == ANSWER
        assert given[0].db is None and not given[0].add_history_to_context
        plainly = await given[0].arun("go")  # and it can be used beside Limelight
        assert plainly.content == ANSWER


TOLD = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]


async def test_the_model_gets_what_it_gets_without_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    for make, script in ((plain, ONE_TOOL), (team, HELPER % ("add", "{a: 2, b: 3}"))):
        requests.clear()
        async with Understudy(parse_scripts(script)) as understudy:
            agent: Any = make(Stage(understudy.base_url, understudy.key))
            [event async for event in agent.arun("go", stream=True, stream_events=True)]
        without = [(request["messages"], request.get("tools")) for request in requests]
        requests.clear()
        async with theatre(make, script, tmp_path / agent.name) as stage:
            await stage.play()
        assert [(request["messages"], request.get("tools")) for request in requests] == without
        assert len(without) > 1


# Instructions, and what the agent is told of its user


async def test_instructions_of_the_client_count_for_one_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    brief = {"role": "system", "content": "Be brief."}
    for number, options in enumerate(({}, {"instructions": "You act."}, {"system_message": "You act."})):
        requests.clear()
        async with theatre(lambda stage, o=options: plain(stage, **o), REMEMBER, tmp_path / str(number)) as stage:
            await stage.play(messages=[brief, {"role": "user", "content": "hi?"}], session_id="a")
            await stage.play("again?", session_id="a")
        told = [
            "".join(m["content"] for m in request["messages"] if m["role"] in ("system", "developer"))
            for request in requests
        ]
        assert "Be brief." in told[0] and "Be brief." not in told[1]
        assert all(("You act." in text) == bool(options) for text in told)


async def test_tools_know_who_asks(tmp_path: Path) -> None:
    seen: list[Any] = []

    def who(run_context: RunContext) -> str:
        """Tell who asks."""
        seen.append((run_context.user_id, run_context.dependencies))
        return "somebody"

    options: dict[str, Any] = {"tools": [who], "dependencies": {"user_name": "mine", "key": 1}}
    script = answering(calling("who", "{}"))
    async with theatre(lambda stage: plain(stage, **options), script, tmp_path) as stage:
        await stage.play(session_id="a")
    assert seen == [("local", {"user_name": "mine", "key": 1, "session_id": "a", "user_id": "local"})]


async def test_images_reach_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    url = "data:image/png;base64,iVBORw0KGgo="
    content = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        await stage.play(messages=[{"role": "user", "content": content}])
    sent = requests[-1]["messages"][-1]["content"]
    assert any(part.get("image_url", {}).get("url") == url for part in sent)


# Results of all kinds


async def test_files_that_tools_return_are_artifacts_once(tmp_path: Path) -> None:
    def paint() -> ToolResult:
        """Paint."""
        return ToolResult(content="painted", images=[Image(content=b"\x89PNG\r\n\x1a\n", mime_type="image/png")])

    script = answering(calling("paint", "{}"), calling("paint", "{}"))
    async with theatre(lambda stage: plain(stage, tools=[paint]), script, tmp_path) as stage:
        run = await stage.play()
    made = run.all(ArtifactMade)
    assert [(a.media_type, a.size) for a in made] == [("image/png", 8)] * 2
    assert [a.call_id for a in made] == [run.call("paint", 0).call_id, run.call("paint", 1).call_id]
    assert run.call("paint").result == "painted"


class Report(BaseModel):
    title: str
    content: str
    sources: list[str]


async def test_a_structured_answer_is_an_object(tmp_path: Path) -> None:
    script = """- steps: [{text: '{"title": "Bees", "content": "They hum.", "sources": ["a", "b"]}'}]"""
    async with theatre(lambda stage: plain(stage, output_schema=Report, tools=[]), script, tmp_path) as stage:
        run = await stage.play()
    assert run.one(FinalAnswer) == FinalAnswer(title="Bees", content="They hum.", sources=("a", "b"))
    assert run.all(TextDelta) == []


# Members


async def test_a_member_that_fails_leaves_the_team_alive(tmp_path: Path) -> None:
    script = f"""
- match: "help:"
  turns:
    - steps: [{{error: {{status: 500, message: out of order}}}}]
- turns:
    - steps: [{{tool_calls: [{delegating("helper", "help: now")}]}}]
    - steps: [{{text: All done.}}]
"""
    async with theatre(team, script, tmp_path) as stage:
        run = await stage.play()
    assert run.one(AgentFinished).error == "out of order"
    assert run.call("delegate_task_to_member").error == "out of order"
    assert run.answer == ANSWER


async def test_one_call_that_asks_all_members(tmp_path: Path) -> None:
    script = """
- match: "help:"
  turns:
    - steps: [{text: Here I am.}]
- turns:
    - steps: [{tool_calls: [{name: delegate_task_to_members, arguments: {task: "help: now"}}]}]
    - steps: [{text: All done.}]
"""

    def make(stage: Stage) -> Any:
        return team(stage, members=[plain(stage, name=n) for n in ("one", "two")], delegate_to_all_members=True)

    async with theatre(make, script, tmp_path) as stage:
        run = await stage.play()
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


async def test_refused_calls_stand_where_they_were_made(tmp_path: Path) -> None:
    """Before the answer, and a member's among what the member does."""
    run = await play(team, REFUSED, tmp_path)
    mine, members = run.call("nor_this"), run.call("nothing_like_it")
    assert (mine.started.agent_id, members.started.agent_id) == ("", "helper")
    assert mine.error and members.error and "does not exist" in members.error
    first_step = run.at(run.one(StepFinished, agent_id="", number=1))
    assert mine.ended_at < first_step
    assert run.at(run.agent("helper")) < members.ended_at < run.at(run.one(StepFinished, agent_id="helper", number=1))
