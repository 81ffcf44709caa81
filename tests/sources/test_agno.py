"""Agno: the scenarios that every source passes, and what is its own."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agno.agent import Agent
from agno.db.sqlite import AsyncSqliteDb, SqliteDb
from agno.media import Image
from agno.run import RunContext
from agno.tools import tool
from agno.tools.function import ToolResult
from pydantic import BaseModel

from limelight.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    ArtifactMade,
    FinalAnswer,
    RunCancelled,
    RunFailed,
    RunFinished,
    StepStarted,
    TextDelta,
    ToolStarted,
)
from limelight.sources.agno import AgnoSource
from limelight.sources.agno.history import CUT, UNANSWERED
from limelight.sources.base import Source
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.serving import offer, serving
from tests.sources.agno_cast import (
    CASES,
    DANGER,
    HELPER,
    ONE_TOOL,
    answering,
    calling,
    close_models,
    delegating,
    plain,
    team,
    team_in_team,
)
from tests.sources.conformance import ANSWER, Case
from tests.sources.played import Stage, Theatre, theatre
from tests.sources.recording import recorded, said
from tests.sources.suite import SourceSuite
from tests.waiting import eventually


@pytest.fixture(autouse=True)
async def _closed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Models are closed; and the ids of tasks, which Agno leaves to chance, are the same in every run."""
    numbers = count(1)
    monkeypatch.setattr("agno.team.task.uuid4", lambda: f"task-{next(numbers):03}")
    yield
    await close_models()


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


# Memory

REMEMBER = """
- match: my name
  turns:
    - steps: [{text: Hello Ada.}]
- match: number
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{text: It is five.}]
- match: wait for me
  turns:
    - steps: [{text: Let me see.}, {tool_calls: [{name: slow, arguments: {name: it, seconds: 30}}]}]
- match: break
  turns:
    - steps: [{error: {status: 500, message: out of order}}]
- match: "?"
  turns:
    - steps: [{text: I see.}]
"""
NAMED = [("user", "my name is Ada"), ("assistant", "Hello Ada.")]
COUNTED = [("user", "a number"), ("assistant", "[add]"), ("tool", "5"), ("assistant", "It is five.")]


@pytest.mark.parametrize("make", [plain, team])
async def test_a_session_goes_on_and_others_know_nothing_of_it(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)

    def with_add(stage: Stage) -> Any:
        return make(stage, tools=plain(stage).tools)

    async with theatre(with_add, REMEMBER, tmp_path) as stage:
        await stage.play("my name is Ada", session_id="a")
        await stage.play("a number", session_id="a")
        for _ in range(3):  # more turns than Agno remembers by itself
            await stage.play("and?", session_id="a")
        await stage.play("and now?", session_id="a")
        await stage.play("who am I?", session_id="b")
    more = [("user", "and?"), ("assistant", "I see.")] * 3
    assert said(requests[-2]) == [*NAMED, *COUNTED, *more, ("user", "and now?")]
    assert said(requests[-1]) == [("user", "who am I?")]


async def test_a_session_goes_on_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    for question in ("my name is Ada", "who am I?"):
        async with theatre(plain, REMEMBER, tmp_path) as stage:
            await stage.play(question, session_id="a")
    assert said(requests[-1]) == [*NAMED, ("user", "who am I?")]


async def test_an_agent_without_a_name_remembers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    for question in ("my name is Ada", "who am I?"):
        async with theatre(lambda stage: plain(stage, name=None), REMEMBER, tmp_path) as stage:
            await stage.play(question, session_id="a")
    assert said(requests[-1]) == [*NAMED, ("user", "who am I?")]


PAST: list[dict[str, Any]] = [
    {"role": "user", "content": "my name is Ada"},
    {"role": "assistant", "content": "Hello Ada."},
    {"role": "user", "content": "a number"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "5"},
    {"role": "assistant", "content": "It is five."},
]


@pytest.mark.parametrize("make", [plain, team])
async def test_a_past_that_comes_with_the_request_is_given_once(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)
    question = {"role": "user", "content": "who am I?"}
    answer = {"role": "assistant", "content": "I see."}
    async with theatre(make, REMEMBER, tmp_path) as stage:
        await stage.play(messages=[*PAST, question], session_id="a")
        assert said(requests[-1]) == [*NAMED, *COUNTED, ("user", "who am I?")]
        assert requests[-1]["messages"][-4]["tool_calls"][0]["function"]["arguments"] == '{"a": 2, "b": 3}'
        await stage.play(messages=[*PAST, question, answer, {"role": "user", "content": "sure?"}], session_id="a")
    then = [("user", "who am I?"), ("assistant", "I see."), ("user", "sure?")]
    assert said(requests[-1]) == [*NAMED, *COUNTED, *then]


async def test_an_edited_past_starts_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        await stage.play("my name is Bob", session_id="a")
        await stage.play(messages=[*PAST[:2], {"role": "user", "content": "who am I?"}], session_id="a")
    assert said(requests[-1]) == [*NAMED, ("user", "who am I?")]


async def test_a_call_in_the_past_that_was_never_answered_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        await stage.play(messages=[*PAST[2:4], {"role": "user", "content": "well?"}], session_id="a")
    roles = [message["role"] for message in requests[-1]["messages"] if message["role"] not in ("system", "developer")]
    assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("make", [AsyncSqliteDb, SqliteDb])
async def test_an_agents_own_database_and_settings_stay(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)
    db = make(db_file=str(tmp_path / "own.db"))
    own: dict[str, Any] = {"db": db, "add_history_to_context": True, "num_history_runs": 1}
    async with theatre(lambda stage: plain(stage, **own), REMEMBER, tmp_path / "data") as stage:
        for question in ("my name is Ada", "a number", "and now?"):
            await stage.play(question, session_id="a")
        assert said(requests[-1]) == [*COUNTED, ("user", "and now?")]
        assert not (tmp_path / "data" / "agno.db").exists()
        assert (await stage.served.http.delete("/sessions/a")).status_code in (200, 204)
        left = db.get_sessions()
        assert list(left if isinstance(left, list) else await left) == []
    closing = db.close()
    if closing is not None:
        await closing


async def sessions_of(data: Path) -> list[Any]:
    db = AsyncSqliteDb(db_file=str(data / "agno.db"))
    try:
        return list(await db.get_sessions())
    finally:
        await db.close()


async def test_a_deleted_session_is_forgotten(tmp_path: Path) -> None:
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        await stage.play("my name is Ada", session_id="a")
        await stage.play("my name is Ada", session_id="b")
        assert len(await sessions_of(tmp_path)) == 2
        assert (await stage.served.http.delete("/sessions/a")).status_code in (200, 204)
        assert len(await sessions_of(tmp_path)) == 1


async def test_two_agents_share_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with Understudy(parse_scripts(REMEMBER)) as understudy:
        stage = Stage(understudy.base_url, understudy.key)
        agents = [offer(plain(stage), "one"), offer(team(stage), "two")]
        async with serving(agents=agents, data=tmp_path) as served:
            theatre_ = Theatre(served, stage)
            for question in ("my name is Ada", "who am I?"):
                asked = [theatre_.play(question, session_id=f"s-{name}", agent=name) for name in ("one", "two")]
                await asyncio.gather(*asked)
    assert [said(request) for request in requests[-2:]] == [[*NAMED, ("user", "who am I?")]] * 2


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


# Stop, failures, limits


async def test_after_stop_the_next_turn_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        await stage.play("my name is Ada", session_id="a")
        stopped = await stage.play_until(
            lambda event: isinstance(event, ToolStarted), question="wait for me", session_id="a"
        )
        assert isinstance(stopped.terminal, RunCancelled)
        after = await stage.play("and now?", session_id="a")
        assert after.answer == "I see."
        await stage.play("and then?", session_id="a")
    cut = [("user", "wait for me"), ("assistant", "[slow]"), ("tool", UNANSWERED), ("assistant", CUT)]
    then = [("user", "and now?"), ("assistant", "I see."), ("user", "and then?")]
    assert said(requests[-1]) == [*NAMED, *cut, *then]
    assert not dangling(requests[-1])


async def test_nothing_is_kept_of_conversations_that_were_stopped_and_never_go_on(tmp_path: Path) -> None:
    async with Understudy(parse_scripts(REMEMBER)) as understudy:
        stage = Stage(understudy.base_url, understudy.key)
        agent = offer(plain(stage), "agent")
        async with serving(agents=[agent], data=tmp_path) as served:
            for number in range(3):
                await Theatre(served, stage).play_until(
                    lambda event: isinstance(event, ToolStarted), question="wait for me", session_id=f"s{number}"
                )
            held = [kept for kept in vars(agent.source).values() if isinstance(kept, dict | set | list)]
            assert held
            await eventually(lambda: not any(held))


async def test_after_an_error_of_the_model_the_next_turn_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        broken = await stage.play("break", session_id="a")
        assert isinstance(broken.terminal, RunFailed) and "out of order" in broken.terminal.message
        assert (await stage.play("and now?", session_id="a")).answer == "I see."
    assert not dangling(requests[-1])


def dangling(request: dict[str, Any]) -> set[str]:
    called = {call["id"] for m in request["messages"] for call in m.get("tool_calls") or ()}
    return called ^ {m["tool_call_id"] for m in request["messages"] if m["role"] == "tool"}


async def test_stop_ends_the_members_and_their_tools(tmp_path: Path) -> None:
    ended: list[str] = []

    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("wait")
            raise
        return ""

    def make(stage: Stage) -> Any:
        return team(stage, members=[plain(stage, name="helper", tools=[wait])])

    async with theatre(make, HELPER % ("wait", "{}"), tmp_path) as stage:
        run = await stage.play_until(lambda event: isinstance(event, ToolStarted) and event.name == "wait")
        assert isinstance(run.terminal, RunCancelled)
        await eventually(lambda: ended == ["wait"])


async def test_stop_ends_a_tool_that_sends_events(tmp_path: Path) -> None:
    ended: list[str] = []

    async def drip() -> AsyncIterator[str]:
        """Drip."""
        try:
            yield "one"
            await asyncio.sleep(30)
        finally:
            ended.append("drip")

    script = answering(calling("drip", "{}"))
    async with theatre(lambda stage: plain(stage, tools=[drip]), script, tmp_path) as stage:
        await stage.play_until(lambda event: isinstance(event, ToolStarted))
        await eventually(lambda: ended == ["drip"])


async def test_stop_while_a_person_thinks(tmp_path: Path) -> None:
    async with theatre(plain, DANGER, tmp_path) as stage:
        run = await stage.play_until(lambda event: isinstance(event, ApprovalRequested), session_id="a")
        assert isinstance(run.terminal, RunCancelled)
        assert run.call("danger").error is not None


async def test_the_limit_of_steps_keeps_what_was_said(tmp_path: Path) -> None:
    script = (
        "- steps: [{text: First.}, {tool_calls: [{name: add, arguments: {a: 1, b: 1}}]}]\n"
        "- steps: [{text: Second.}, {tool_calls: [{name: add, arguments: {a: 2, b: 2}}]}]\n"
        "- steps: [{text: Third.}]\n- steps: [{text: Fourth.}]"
    )
    async with Understudy(parse_scripts(script)) as understudy:
        stage = Stage(understudy.base_url, understudy.key)
        agent = offer(plain(stage), "agent", max_steps=2)
        async with serving(agents=[agent], data=tmp_path) as served:
            run = await Theatre(served, stage).play(session_id="a")
            again = await Theatre(served, stage).play(session_id="a")
    assert run.terminal == RunFinished(code="max_steps")
    assert run.answer == "Second."
    assert len(run.all(StepStarted)) == 2
    assert again.answer == "Fourth."  # the model saw its three replies: two of the turn that was cut off, and the end


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


# What a person decides


async def test_siblings_of_a_call_that_waits_run_first(tmp_path: Path) -> None:
    calls = "{name: danger, arguments: {path: /tmp/x}}, {name: add, arguments: {a: 2, b: 3}}"
    script = answering(f"- steps: [{{tool_calls: [{calls}]}}]", calling("danger", "{path: /tmp/z}"))
    async with theatre(plain, script, tmp_path) as stage:
        run = await stage.play_deciding(lambda _: {"decision": "approve"})
    assert run.call("add").ended_at < run.at(run.all(ApprovalRequested)[0])
    assert [run.call("danger", n).result for n in range(2)] == ["/tmp/x is gone", "/tmp/z is gone"]
    assert run.answer == ANSWER


async def test_an_edited_call_of_a_member_gets_the_edited_arguments(tmp_path: Path) -> None:
    async with theatre(team, HELPER % ("danger", "{path: /tmp/x}"), tmp_path) as stage:
        run = await stage.play_deciding(lambda _: {"decision": "edit", "args": {"path": "/tmp/y"}})
    assert run.call("danger").result == "/tmp/y is gone"
    assert run.call("delegate_task_to_member").result == "The sum is five."


async def test_a_refused_call_of_a_member_is_told_to_the_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)
    async with theatre(team, HELPER % ("danger", "{path: /tmp/x}"), tmp_path) as stage:
        run = await stage.play_deciding(lambda _: {"decision": "reject", "reason": "not today"})
    assert run.call("danger").error == "rejected: not today"
    assert run.one(AgentFinished).error is None
    assert any("not today" in str(message["content"]) for r in requests for message in r["messages"])


@tool(requires_user_input=True, user_input_fields=["to"])
def mail(subject: str, to: str) -> str:
    """Send a mail."""
    return f"{subject} to {to}"


@tool(external_execution=True)
def elsewhere(command: str) -> str:
    """Run a command on another machine."""
    raise AssertionError("it is executed elsewhere")


async def test_input_of_the_user_is_an_approval_to_edit(tmp_path: Path) -> None:
    script = answering(calling("mail", "{subject: Bees}"))
    async with theatre(lambda stage: plain(stage, tools=[mail]), script, tmp_path) as stage:
        run = await stage.play_deciding(lambda _: {"decision": "edit", "args": {"subject": "Bees", "to": "Ada"}})
    asked = run.one(ApprovalRequested)
    assert (asked.args, asked.decisions) == ({"subject": "Bees", "to": ""}, ("edit", "reject"))
    assert run.call("mail").result == "Bees to Ada"


async def test_what_is_executed_elsewhere_gets_its_result_by_editing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)
    script = answering(calling("elsewhere", "{command: ls}"))
    async with theatre(lambda stage: plain(stage, tools=[elsewhere]), script, tmp_path) as stage:
        run = await stage.play_deciding(lambda _: {"decision": "edit", "args": {"result": "two files"}})
    assert run.one(ApprovalRequested).args == {"command": "ls", "result": ""}
    assert run.call("elsewhere").result == "two files"
    assert said(requests[-1])[-1] == ("tool", "two files")
    assert run.answer == ANSWER


@pytest.mark.parametrize(("asking", "args"), [(mail, "{subject: Bees}"), (elsewhere, "{command: ls}")])
async def test_any_question_can_be_refused(
    asking: Any, args: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)
    script = answering(calling(asking.name, args))
    async with theatre(lambda stage: plain(stage, tools=[asking]), script, tmp_path) as stage:
        run = await stage.play_deciding(lambda _: {"decision": "reject", "reason": "not today"})
    assert run.call(asking.name).error == "rejected: not today"
    assert "not today" in said(requests[-1])[-1][1]
    assert run.answer == ANSWER


async def test_a_team_in_a_team_waits_for_the_innermost(tmp_path: Path) -> None:
    script = f"""
- match: "help:"
  turns:
    - steps: [{{tool_calls: [{{name: danger, arguments: {{path: /tmp/x}}}}]}}]
    - steps: [{{text: It is removed.}}]
- match: "inner:"
  turns:
    - steps: [{{tool_calls: [{delegating("helper", "help: now")}]}}]
    - steps: [{{text: Inner done.}}]
- turns:
    - steps: [{{tool_calls: [{delegating("inner", "inner: go")}]}}]
    - steps: [{{text: All done.}}]
"""
    async with theatre(team_in_team, script, tmp_path) as stage:
        run = await stage.play_deciding(lambda _: {"decision": "approve"})
    inner, helper = run.agent("inner"), run.agent("helper")
    assert (inner.parent_id, helper.parent_id) == ("", inner.agent_id)
    outer_call, inner_call = run.call("delegate_task_to_member", 0), run.call("delegate_task_to_member", 1)
    assert (inner.call_id, helper.call_id) == (outer_call.call_id, inner_call.call_id)
    assert (outer_call.result, inner_call.result) == ("Inner done.", "It is removed.")
    assert run.one(ApprovalRequested).agent_id == helper.agent_id
    assert run.answer == ANSWER


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
