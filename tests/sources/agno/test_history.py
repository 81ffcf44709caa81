"""Agno: conversations go on, also after a restart, and are kept apart; a past that somebody else kept is taken over."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agno.db.sqlite import AsyncSqliteDb, SqliteDb

from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.agno.agno_scenarios import (
    plain,
    team,
)
from tests.sources.agno.scripts import COUNTED, NAMED, REMEMBER
from tests.sources.live_turn import Stage, Theatre, theatre
from tests.sources.recorded_requests import recorded, said
from tests.support.server import offer, serving

pytestmark = pytest.mark.usefixtures("agno_models")


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


async def test_an_agent_that_looks_at_no_past_is_given_what_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a database of its own and `add_history_to_context` off; what goes on from there has it too."""
    requests = recorded(monkeypatch)
    sent = [{"role": role, "content": f"{role} {n}"} for n in range(5) for role in ("user", "assistant")]
    question = {"role": "user", "content": "who am I?"}
    own = SqliteDb(db_file=str(tmp_path / "own.db"))
    async with theatre(lambda stage: plain(stage, db=own), REMEMBER, tmp_path / "data") as stage:
        first = await stage.play(messages=[*sent, question], session_id="a")
        assert [content for _, content in said(requests[-1])] == [m["content"] for m in [*sent, question]]
        answer = {"role": "assistant", "content": first.answer}
        await stage.play(messages=[*sent, question, answer, question], session_id="a")
        assert len(said(requests[-1])) == len(sent) + 3
        await stage.play("who am I?", session_id="b")
        await stage.play("who am I?", session_id="b")
        assert len(said(requests[-1])) == 1, "what was not sent stays as the agent has it"
