"""Input objects and context values of requests, over HTTP and the socket: what is offered, accepted and refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import RunStarted
from limelight.sources.base import Options
from tests.server.v2.socket_client import socket, whole
from tests.sources.langgraph import input_graphs
from tests.support.server import Served, asking, collect, offer, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async def plain(messages: Any, ctx: Any) -> Any:
        yield messages[-1].text

    settings = Options(context={"language": "en"})
    agents = [
        offer(input_graphs.typed_dict_input(), "report"),
        offer(input_graphs.with_dataclass_context(), "closed", settings),
        offer(input_graphs.with_dataclass_context(), "open", settings, context_from_request=("tone", "model")),
        offer(input_graphs.pydantic_input(), "trip"),
        offer(plain, "plain"),
    ]
    async with serving(agents=agents, data=tmp_path) as running:
        yield running


@pytest.mark.requirement("graph-input")
async def test_agents_offer_their_schemas(served: Served) -> None:
    agents = {agent["name"]: agent for agent in (await served.http.get("/agents")).json()["agents"]}
    assert list(agents["report"]["input_schema"]["properties"]) == ["topic", "audience", "style"]
    assert agents["report"]["question_key"] == "topic"
    assert "context_schema" not in agents["report"] and agents["report"]["context_from_request"] is False
    assert "input_schema" not in agents["open"]
    assert agents["open"]["context_schema"]["required"] == ["tone"]
    assert agents["open"]["context_from_request"] == ["tone", "model"]
    assert agents["trip"]["question_key"] == ""
    assert not {"input_schema", "context_schema", "question_key"} & agents["plain"].keys()


async def test_input_without_messages_is_answered(served: Served) -> None:
    body = {"agent": "report", "input": {"topic": "bees", "audience": "all"}}
    answer = (await served.http.post("/chat", json=body)).json()
    assert answer["message"]["content"] == "bees for all, any length"
    session = (await served.http.get(f"/sessions/{answer['session_id']}")).json()
    assert session["title"] == "topic: bees audience: all"


async def test_question_fills_its_key(served: Served) -> None:
    answer = (await served.http.post("/chat", json=asking("ants", agent="report", input={"audience": "all"}))).json()
    assert answer["message"]["content"] == "ants for all, any length"


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ({"agent": "report", "input": {"topic": "bees"}}, "input.audience", "'audience' is required"),
        ({"agent": "report", "input": {"topic": 1, "audience": "x"}}, "input.topic", "expected a text, got 1"),
        (
            {"agent": "report", "input": {"topic": "x", "audience": "x", "style": "mid"}},
            "input.style",
            'expected one of "short", "long", got "mid"',
        ),
        (
            {"agent": "report", "input": {"topic": "x", "audience": "x", "stile": "long"}},
            "input.stile",
            "there is no 'stile'; did you mean 'style'?",
        ),
        (
            {"agent": "trip", "input": {"person": {"name": 1, "born": "1815-12-10"}, "days": 1}},
            "input.person.name",
            "expected a text, got 1",
        ),
        ({"agent": "trip", "input": {"days": 31}}, "input.days", "expected a number of at most 30, got 31"),
        (
            {"agent": "report", "input": {"thread_id": "x"}},
            "input.thread_id",
            "'thread_id' is reserved: only the server sets it",
        ),
        (
            {"agent": "report", "input": {"user_id": "x"}},
            "input.user_id",
            "'user_id' is reserved: only the server sets it",
        ),
        ({"agent": "plain", "input": {"a": 1}}, "input", "agent 'plain' takes no input object: ask it with `messages`"),
        ({"agent": "report", "input": [1]}, "input", "Expected `object | null`, got `array`"),
        ({**asking("x"), "agent": "plain", "context": {"a": 1}}, "context", "agent 'plain' takes no context"),
        (
            {**asking("x"), "agent": "closed", "context": {"tone": "calm"}},
            "context.tone",
            "agent 'closed' does not take 'tone' from a request: its setting context_from_request in [agents.closed] "
            "does not allow it",
        ),
        (
            {**asking("x"), "agent": "open", "context": {"language": "de"}},
            "context.language",
            "agent 'open' does not take 'language' from a request: its setting context_from_request in [agents.open] "
            "does not allow it",
        ),
        ({**asking("x"), "agent": "open", "context": {"tone": 1}}, "context.tone", "expected a text, got 1"),
        (
            {**asking("x"), "agent": "open", "context": {"session_id": "x"}},
            "context.session_id",
            "'session_id' is reserved: only the server sets it",
        ),
        ({"agent": "report"}, "messages", "Object missing required field `messages`"),
    ],
)
@pytest.mark.parametrize("route", ["/chat", "/chat/stream"])
async def test_mistakes_are_refused_with_their_path(
    served: Served, body: dict[str, Any], path: str, message: str, route: str
) -> None:
    problem = await served.problem("POST", route, json=body)
    assert (problem["status"], problem["code"]) == (422, "invalid")
    assert problem["errors"] == [{"path": path, "message": message}]


@pytest.mark.requirement("graph-context")
async def test_allowed_context_is_used(served: Served) -> None:
    body = asking("hi", agent="open", context={"tone": "calm", "model": "large"})
    assert (await served.http.post("/chat", json=body)).json()["message"]["content"] == "calm en large local"


async def test_missing_context_fails_the_run_with_its_keys(served: Served) -> None:
    problem = await served.problem("POST", "/chat", json=asking("hi", agent="closed"))
    assert (problem["status"], problem["code"]) == (502, "agent_error")
    assert "needs the context tone" in problem["detail"]


async def test_later_turn_may_leave_out_required_input(served: Served) -> None:
    first = {"agent": "report", "session_id": "s", "input": {"topic": "bees", "audience": "all"}}
    await served.http.post("/chat", json=first)
    second = {"agent": "report", "session_id": "s", "input": {"topic": "ants"}}
    assert (await served.http.post("/chat", json=second)).json()["message"]["content"] == "ants for all, any length"


async def test_messages_before_an_input_are_the_conversation_before_it(served: Served) -> None:
    earlier = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    body = {"agent": "report", "messages": earlier, "input": {"topic": "bees", "audience": "all"}}
    frames = await collect(served.stream("POST", "/chat/stream", params={"format": "records"}, json=body))
    assert frames[0].data["event"]["input"] == "topic: bees\naudience: all"
    assert frames[0].data["event"]["input_values"] == {"topic": "bees", "audience": "all"}


async def test_system_message_after_the_question_is_not_the_question(served: Served) -> None:
    messages = [{"role": "user", "content": "ants"}, {"role": "system", "content": "Be brief."}]
    body = {"agent": "report", "messages": messages, "input": {"audience": "all"}}
    answer = (await served.http.post("/chat", json=body)).json()
    assert answer["message"]["content"] == "Be brief.\n\nants for all, any length"


async def test_run_without_input_has_no_values_in_its_log(served: Served) -> None:
    frames = await collect(served.ask("hi", agent="plain", format="records"))
    assert frames[0].data["event"]["kind"] == "run_started"
    assert "input_values" not in frames[0].data["event"]
    assert RunStarted(agent="a").input_values is None


# The socket


async def test_query_with_an_input_needs_no_text(served: Served) -> None:
    async with socket(served, agent_type="report") as ws:
        frames = await ws.ask("", input={"topic": "bees", "audience": "all"})
        found = whole(frames)
        assert found[0]["content"] == "topic: bees\naudience: all"
        assert found[-1]["content"] == "bees for all, any length"
        again = await ws.ask("ants", input={"style": "short"})
        assert whole(again)[-1]["content"] == "ants for all, short"


async def test_query_with_context(served: Served) -> None:
    async with socket(served, agent_type="open") as ws:
        frames = await ws.ask("hi", context={"tone": "calm"})
        assert whole(frames)[-1]["content"] == "calm en small local"


async def test_query_with_wrong_values_is_refused(served: Served) -> None:
    async with socket(served, agent_type="report") as ws:
        await ws.send("query", query="x", input={"audience": 1}, request_id="q-1")
        assert await ws.error() == ("input.audience: expected a text, got 1", "invalid")
        await ws.send("query", query="", input={"topic": "x"})
        assert await ws.error() == ("input.audience: 'audience' is required", "invalid")
        await ws.send("query", query="", input=[1])
        assert await ws.error() == ("Query is required", "invalid")
        await ws.send("query", query="x", context={"tone": "calm"})
        assert (await ws.error())[1] == "invalid"
        assert whole(await ws.ask('{"topic": "bees", "audience": "all"}'))[-1]["content"] == "bees for all, any length"
