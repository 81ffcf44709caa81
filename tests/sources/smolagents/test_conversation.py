"""smolagents: the memory of a conversation between turns, after failures, and from the history."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
from pathlib import Path
from typing import Any

import pytest

from limelight.events import ReasoningDelta, RunCancelled, RunFailed, RunFinished, StepFinished, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Turn
from limelight.sources.image_budget import separate_lease
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.conversation import CUT_OFF, Conversation
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.fake_turn import FakeContext, new_turn
from tests.sources.live_turn import ModelEndpoint, run_agent, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.sources.smolagents.smolagents_scenarios import TWO_TURNS, calling, coding, messages_of


def conversation_text(request: dict[str, Any]) -> str:
    """The texts of a request without the instructions."""
    return "\n".join(f"{role}: {text}" for role, text in conversation_in(request))


# Conversations


async def test_next_turn_continues_with_all_earlier_steps(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), TWO_TURNS, tmp_path) as server:
        await server.run("the sum please", session_id="a")
        requests.clear()
        await server.run("and what was that?", session_id="a")
    (request,) = requests
    text = conversation_text(request)
    assert text.count("the sum please") == 1 and text.count("and what was that?") == 1
    assert text.count("'name': 'add'") == 1 and "I add." in text and "Observation:\n5" in text


async def test_conversations_are_isolated(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), TWO_TURNS, tmp_path) as server:
        await asyncio.gather(server.run("the sum please", session_id="a"), server.run("hello", session_id="b"))
        requests.clear()
        await server.run("and what?", session_id="b")
    assert "sum" not in conversation_text(requests[0])


async def test_conversation_without_a_copy_gets_the_history_from_the_log(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), TWO_TURNS, tmp_path) as server:
        await server.run("the sum please", session_id="a")
        source = server.served.runtime.agents.get("agent").source
        assert isinstance(source, SmolagentsSource)
        await source.close()  # as after an hour, or a restart
        requests.clear()
        await server.run("and what was that?", session_id="a")
    text = conversation_text(requests[0])
    assert text.count("the sum please") == 1
    assert text.count("'name': 'add'") == 1 and text.count("It is five.") == 2  # the call, and what it returned


HISTORY = [
    {"role": "user", "content": "the sum please"},
    {
        "role": "assistant",
        "content": "I add.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "5"},
    {"role": "assistant", "content": "It is five."},
]


async def test_history_of_a_stateless_client_becomes_the_agents_memory(tmp_path: Path, requests: Requests) -> None:
    asked = {"role": "user", "content": "and what was that?"}
    run = await run_agent(calling(), TWO_TURNS, tmp_path, messages=[*HISTORY, asked])
    assert run.answer == "It was the sum."
    text = conversation_text(requests[0])
    assert text.count("the sum please") == 1 and text.count("I add.") == 1 and "Observation:\n5" in text
    assert (
        text.index("the sum please") < text.index("'name': 'add'") < text.index("It is five.") < text.index("and what")
    )


async def test_history_in_memory_is_not_added_twice(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), TWO_TURNS, tmp_path) as server:
        await server.run("the sum please", session_id="a")
        requests.clear()
        again = [*HISTORY, {"role": "user", "content": "and what was that?"}]
        await server.run(messages=again, session_id="a")
    assert conversation_text(requests[0]).count("the sum please") == 1
    assert conversation_text(requests[0]).count("'name': 'add'") == 1


async def test_edited_history_starts_a_new_memory(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), TWO_TURNS, tmp_path) as server:
        await server.run("the sum please", session_id="a")
        requests.clear()
        other = [{"role": "user", "content": "good morning"}, {"role": "assistant", "content": "Morning!"}]
        await server.run(messages=[*other, {"role": "user", "content": "and what?"}], session_id="a")
    text = conversation_text(requests[0])
    assert "good morning" in text and "sum please" not in text


# After a turn that was cut off

FAULTS = """
- match: break
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{error: {status: 500, message: On fire.}}]
- match: cut
  turns: [{steps: [{text: It was a dark and}, {cut: true}]}]
- match: talk
  turns: [{steps: [{delay: 0.02}, {text: one two three four five six seven eight nine ten eleven twelve}]}]
- match: nap
  turns: [{steps: [{tool_calls: [{name: slow, arguments: {name: it, seconds: 1.5}}]}]}]
- match: hello
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Hello!}}]}]}]
"""


@pytest.mark.parametrize("fault", ["break", "cut"])
async def test_turn_after_a_failure_works(fault: str, tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), FAULTS, tmp_path) as server:
        failed = await server.run(f"{fault} it", session_id="a")
        assert isinstance(failed.terminal, RunFailed)
        assert failed.all(StepFinished)[-1].error
        requests.clear()
        assert (await server.run("hello", session_id="a")).answer == "Hello!"
    text = conversation_text(requests[0])
    assert text.count("This task was broken off here") == 1
    assert ("Observation:\n5" in text) == (fault == "break")


@pytest.mark.parametrize("question", ["talk", "nap"])
async def test_turn_after_a_stop_works(question: str, tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), FAULTS, tmp_path) as server:
        stopped = await server.run_until(
            lambda e: isinstance(e, ReasoningDelta) or type(e).__name__ == "ToolReady",
            question=question,
            session_id="a",
        )
        assert isinstance(stopped.terminal, RunCancelled)
        requests.clear()
        assert (await server.run("hello", session_id="a")).answer == "Hello!"
    assert conversation_text(requests[0]).count("This task was broken off here") == 1
    assert "Calling tools" not in conversation_text(requests[0])


def test_turn_after_a_stop_does_not_use_an_agent_that_still_runs() -> None:
    conversation = Conversation(
        calling()(ModelEndpoint("http://127.0.0.1:1/v1", "key")),
        separate_lease(),
        [Message(role="user", content="hi")],
    )
    old = conversation.agent()
    conversation.abandon()
    old.memory.steps.append("what a late thread has done")
    new = conversation.agent()
    assert new is not old and new is conversation.agent()
    assert messages_of(new.memory.steps) == [
        ("user", "New task:\nhi"),
        ("tool-response", f"Observation:\n{CUT_OFF}"),
    ]


async def test_variables_are_kept_when_a_thread_could_not_be_stopped(tmp_path: Path) -> None:
    script = """
- match: nap
  turns: [{steps: [{text: "<code>\\nkept = 7\\ndef more():\\n    return 1\\nslow('it', 1.5)\\n</code>"}]}]
- match: recall
  turns:
    - steps: [{text: "<code>\\nprint('heard')\\nfinal_answer(kept)\\n</code>"}]
"""
    async with serve_agent(coding(), script, tmp_path) as server:
        stopped = await server.run_until(
            lambda e: isinstance(e, ToolStarted) and e.name == "slow", question="nap", session_id="a"
        )
        assert isinstance(stopped.terminal, RunCancelled)
        run = await server.run("recall", session_id="a")
    assert run.answer == 7
    assert run.call("python_interpreter").output == "heard\n"


async def test_turn_without_a_memory_key_keeps_nothing() -> None:
    async with Understudy(parse_scripts(TWO_TURNS)) as understudy:
        source = SmolagentsSource(calling()(ModelEndpoint(understudy.base_url, understudy.key)))
        for _ in range(2):
            items = [item async for item in source.run(new_turn("hello"))]
            assert isinstance(items[-1], RunFinished)
        assert source._conversations == {}  # pyright: ignore[reportPrivateUsage]


async def test_forget_removes_the_conversation() -> None:
    async with Understudy(parse_scripts(TWO_TURNS)) as understudy:
        source = SmolagentsSource(calling()(ModelEndpoint(understudy.base_url, understudy.key)))
        turn = Turn(messages=[Message(role="user", content="hello")], context=FakeContext(), memory_key="k")
        async for _ in source.run(turn):
            pass
        kept = source._conversations  # pyright: ignore[reportPrivateUsage]
        assert list(kept) == ["k"]
        await source.forget("k")
        await source.forget("k")
        assert kept == {}
