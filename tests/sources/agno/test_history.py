"""Agno: sessions continue, also after a restart, and are isolated; the history of a request is added."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agno.db.sqlite import AsyncSqliteDb, SqliteDb

from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.agno.agno_scenarios import plain, team
from tests.sources.agno.scripts import COUNTED, NAMED, REMEMBER
from tests.sources.live_turn import AgentServer, ModelEndpoint, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.support.server import offer, serving

pytestmark = pytest.mark.usefixtures("agno_models")


@pytest.mark.parametrize("make", [plain, team])
async def test_session_continues_and_other_sessions_are_isolated(make: Any, tmp_path: Path, requests: Requests) -> None:

    def with_add(endpoint: ModelEndpoint) -> Any:
        return make(endpoint, tools=plain(endpoint).tools)

    async with serve_agent(with_add, REMEMBER, tmp_path) as server:
        await server.run("my name is Ada", session_id="a")
        await server.run("a number", session_id="a")
        for _ in range(3):  # more turns than Agno remembers by itself
            await server.run("and?", session_id="a")
        await server.run("and now?", session_id="a")
        await server.run("who am I?", session_id="b")
    more = [("user", "and?"), ("assistant", "I see.")] * 3
    assert conversation_in(requests[-2]) == [*NAMED, *COUNTED, *more, ("user", "and now?")]
    assert conversation_in(requests[-1]) == [("user", "who am I?")]


async def test_session_continues_after_a_restart(tmp_path: Path, requests: Requests) -> None:
    for question in ("my name is Ada", "who am I?"):
        async with serve_agent(plain, REMEMBER, tmp_path) as server:
            await server.run(question, session_id="a")
    assert conversation_in(requests[-1]) == [*NAMED, ("user", "who am I?")]


async def test_agent_without_a_name_keeps_its_session(tmp_path: Path, requests: Requests) -> None:
    for question in ("my name is Ada", "who am I?"):
        async with serve_agent(lambda endpoint: plain(endpoint, name=None), REMEMBER, tmp_path) as server:
            await server.run(question, session_id="a")
    assert conversation_in(requests[-1]) == [*NAMED, ("user", "who am I?")]


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
async def test_history_of_a_request_is_added_once(make: Any, tmp_path: Path, requests: Requests) -> None:
    question = {"role": "user", "content": "who am I?"}
    answer = {"role": "assistant", "content": "I see."}
    async with serve_agent(make, REMEMBER, tmp_path) as server:
        await server.run(messages=[*PAST, question], session_id="a")
        assert conversation_in(requests[-1]) == [*NAMED, *COUNTED, ("user", "who am I?")]
        assert requests[-1]["messages"][-4]["tool_calls"][0]["function"]["arguments"] == '{"a": 2, "b": 3}'
        await server.run(messages=[*PAST, question, answer, {"role": "user", "content": "sure?"}], session_id="a")
    then = [("user", "who am I?"), ("assistant", "I see."), ("user", "sure?")]
    assert conversation_in(requests[-1]) == [*NAMED, *COUNTED, *then]


async def test_edited_history_starts_a_new_session(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run("my name is Bob", session_id="a")
        await server.run(messages=[*PAST[:2], {"role": "user", "content": "who am I?"}], session_id="a")
    assert conversation_in(requests[-1]) == [*NAMED, ("user", "who am I?")]


async def test_call_without_a_result_in_the_history_gets_one(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run(messages=[*PAST[2:4], {"role": "user", "content": "well?"}], session_id="a")
    roles = [message["role"] for message in requests[-1]["messages"] if message["role"] not in ("system", "developer")]
    assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("make", [AsyncSqliteDb, SqliteDb])
async def test_own_database_and_settings_of_an_agent_are_kept(make: Any, tmp_path: Path, requests: Requests) -> None:
    db = make(db_file=str(tmp_path / "own.db"))
    own: dict[str, Any] = {"db": db, "add_history_to_context": True, "num_history_runs": 1}
    async with serve_agent(lambda endpoint: plain(endpoint, **own), REMEMBER, tmp_path / "data") as server:
        for question in ("my name is Ada", "a number", "and now?"):
            await server.run(question, session_id="a")
        assert conversation_in(requests[-1]) == [*COUNTED, ("user", "and now?")]
        assert not (tmp_path / "data" / "agno.db").exists()
        assert (await server.served.http.delete("/sessions/a")).status_code in (200, 204)
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


async def test_forget_deletes_the_session(tmp_path: Path) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run("my name is Ada", session_id="a")
        await server.run("my name is Ada", session_id="b")
        assert len(await sessions_of(tmp_path)) == 2
        assert (await server.served.http.delete("/sessions/a")).status_code in (200, 204)
        assert len(await sessions_of(tmp_path)) == 1


async def test_two_agents_can_share_the_database(tmp_path: Path, requests: Requests) -> None:
    async with Understudy(parse_scripts(REMEMBER)) as understudy:
        endpoint = ModelEndpoint(understudy.base_url, understudy.key)
        agents = [offer(plain(endpoint), "one"), offer(team(endpoint), "two")]
        async with serving(agents=agents, data=tmp_path) as served:
            server = AgentServer(served, endpoint)
            for question in ("my name is Ada", "who am I?"):
                asked = [server.run(question, session_id=f"s-{name}", agent=name) for name in ("one", "two")]
                await asyncio.gather(*asked)
    assert [conversation_in(request) for request in requests[-2:]] == [[*NAMED, ("user", "who am I?")]] * 2


async def test_agent_without_history_uses_the_history_of_a_request(tmp_path: Path, requests: Requests) -> None:
    """The agent has its own database, and `add_history_to_context` is off; later turns use the history, too."""
    sent = [{"role": role, "content": f"{role} {n}"} for n in range(5) for role in ("user", "assistant")]
    question = {"role": "user", "content": "who am I?"}
    own = SqliteDb(db_file=str(tmp_path / "own.db"))
    async with serve_agent(lambda endpoint: plain(endpoint, db=own), REMEMBER, tmp_path / "data") as server:
        first = await server.run(messages=[*sent, question], session_id="a")
        assert [content for _, content in conversation_in(requests[-1])] == [m["content"] for m in [*sent, question]]
        answer = {"role": "assistant", "content": first.answer}
        await server.run(messages=[*sent, question, answer, question], session_id="a")
        assert len(conversation_in(requests[-1])) == len(sent) + 3
        await server.run("who am I?", session_id="b")
        await server.run("who am I?", session_id="b")
        assert len(conversation_in(requests[-1])) == 1, "what was not sent stays as the agent has it"
