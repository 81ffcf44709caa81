"""Copies and memories: the user's object stays as it was, conversations are apart, and each goes on where it ended."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
from pathlib import Path
from typing import Any

import pytest

from limelight.events import ReasoningDelta, RunCancelled, RunFailed, RunFinished, StepFinished, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Turn
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.conversation import CUT_OFF, Conversation
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.fake_turn import FakeContext, new_turn
from tests.sources.live_turn import Stage, theatre
from tests.sources.recorded_requests import Requests, said
from tests.sources.smolagents.smolagents_scenarios import (
    TWO_TURNS,
    calling,
    coding,
    messages_of,
)


def told(request: dict[str, Any]) -> str:
    """All that a request says, without the instructions."""
    return "\n".join(f"{role}: {text}" for role, text in said(request))


# Conversations


async def test_a_conversation_goes_on_with_all_that_was_done(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        requests.clear()
        await stage.play("and what was that?", session_id="a")
    (request,) = requests
    text = told(request)
    assert text.count("the sum please") == 1 and text.count("and what was that?") == 1
    assert text.count("'name': 'add'") == 1 and "I add." in text and "Observation:\n5" in text


async def test_conversations_share_nothing(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await asyncio.gather(stage.play("the sum please", session_id="a"), stage.play("hello", session_id="b"))
        requests.clear()
        await stage.play("and what?", session_id="b")
    assert "sum" not in told(requests[0])


async def test_who_comes_back_later_is_told_what_was_said(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        source = stage.served.parts.agents.get("agent").source
        assert isinstance(source, SmolagentsSource)
        await source.close()  # as after an hour, or a restart
        requests.clear()
        await stage.play("and what was that?", session_id="a")
    text = told(requests[0])
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


async def test_the_history_of_a_stateless_client_is_the_agents_past(tmp_path: Path, requests: Requests) -> None:
    asked = {"role": "user", "content": "and what was that?"}
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        run = await stage.play(messages=[*HISTORY, asked])
    assert run.answer == "It was the sum."
    text = told(requests[0])
    assert text.count("the sum please") == 1 and text.count("I add.") == 1 and "Observation:\n5" in text
    assert (
        text.index("the sum please") < text.index("'name': 'add'") < text.index("It is five.") < text.index("and what")
    )


async def test_history_that_the_memory_has_is_not_told_twice(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        requests.clear()
        again = [*HISTORY, {"role": "user", "content": "and what was that?"}]
        await stage.play(messages=again, session_id="a")
    assert told(requests[0]).count("the sum please") == 1
    assert told(requests[0]).count("'name': 'add'") == 1


async def test_an_edited_past_starts_afresh(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        requests.clear()
        other = [{"role": "user", "content": "good morning"}, {"role": "assistant", "content": "Morning!"}]
        await stage.play(messages=[*other, {"role": "user", "content": "and what?"}], session_id="a")
    text = told(requests[0])
    assert "good morning" in text and "sum please" not in text


# After a turn that was broken off

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
async def test_after_a_failure_the_next_turn_works(fault: str, tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), FAULTS, tmp_path) as stage:
        failed = await stage.play(f"{fault} it", session_id="a")
        assert isinstance(failed.terminal, RunFailed)
        assert failed.all(StepFinished)[-1].error
        requests.clear()
        assert (await stage.play("hello", session_id="a")).answer == "Hello!"
    text = told(requests[0])
    assert text.count("This task was broken off here") == 1
    assert ("Observation:\n5" in text) == (fault == "break")


@pytest.mark.parametrize("question", ["talk", "nap"])
async def test_after_a_stop_the_next_turn_works(question: str, tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), FAULTS, tmp_path) as stage:
        stopped = await stage.play_until(
            lambda e: isinstance(e, ReasoningDelta) or type(e).__name__ == "ToolReady",
            question=question,
            session_id="a",
        )
        assert isinstance(stopped.terminal, RunCancelled)
        requests.clear()
        assert (await stage.play("hello", session_id="a")).answer == "Hello!"
    assert told(requests[0]).count("This task was broken off here") == 1
    assert "Calling tools" not in told(requests[0])


def test_an_agent_that_is_still_at_work_is_left_alone() -> None:
    conversation = Conversation(calling()(Stage("http://127.0.0.1:1/v1", "key")), [Message(role="user", content="hi")])
    old = conversation.agent()
    conversation.abandon()
    old.memory.steps.append("what a late thread has done")
    new = conversation.agent()
    assert new is not old and new is conversation.agent()
    assert messages_of(new.memory.steps) == [
        ("user", "New task:\nhi"),
        ("tool-response", f"Observation:\n{CUT_OFF}"),
    ]


async def test_variables_outlive_a_thread_that_could_not_be_stopped(tmp_path: Path) -> None:
    script = """
- match: nap
  turns: [{steps: [{text: "<code>\\nkept = 7\\ndef more():\\n    return 1\\nslow('it', 1.5)\\n</code>"}]}]
- match: recall
  turns:
    - steps: [{text: "<code>\\nprint('heard')\\nfinal_answer(kept)\\n</code>"}]
"""
    async with theatre(coding(), script, tmp_path) as stage:
        stopped = await stage.play_until(
            lambda e: isinstance(e, ToolStarted) and e.name == "slow", question="nap", session_id="a"
        )
        assert isinstance(stopped.terminal, RunCancelled)
        run = await stage.play("recall", session_id="a")
    assert run.answer == 7
    assert run.call("python_interpreter").output == "heard\n"


async def test_without_a_key_nothing_is_kept() -> None:
    async with Understudy(parse_scripts(TWO_TURNS)) as understudy:
        source = SmolagentsSource(calling()(Stage(understudy.base_url, understudy.key)))
        for _ in range(2):
            items = [item async for item in source.run(new_turn("hello"))]
            assert isinstance(items[-1], RunFinished)
        assert source._conversations == {}  # pyright: ignore[reportPrivateUsage]


async def test_what_is_forgotten_is_gone() -> None:
    async with Understudy(parse_scripts(TWO_TURNS)) as understudy:
        source = SmolagentsSource(calling()(Stage(understudy.base_url, understudy.key)))
        turn = Turn(messages=[Message(role="user", content="hello")], context=FakeContext(), memory_key="k")
        async for _ in source.run(turn):
            pass
        kept = source._conversations  # pyright: ignore[reportPrivateUsage]
        assert list(kept) == ["k"]
        await source.forget("k")
        await source.forget("k")
        assert kept == {}
