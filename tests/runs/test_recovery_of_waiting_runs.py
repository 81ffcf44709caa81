"""A run that waits goes on after a restart on the terms on which it was asked for."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from limelight.events import AnyEvent, FinalAnswer, RunFinished
from limelight.messages import Message
from limelight.models import SessionRef
from limelight.runs.agents import Agent
from limelight.runs.queue import QueuedRun, Request
from limelight.sources.base import NO_OPTIONS, Item, Options, Source, Turn, User
from tests.support.server import Served, serving
from tests.support.wait import eventually


class Patient(Source):
    """Asks, and survives its server; remembers the turn that it was given to go on with."""

    framework: ClassVar[str] = "test"
    keeps_memory: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        self.turns: list[Turn] = []

    @classmethod
    def accepts(cls, target: object) -> bool:
        return False

    @property
    def description(self) -> str:
        return ""

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        self.turns.append(turn)
        await turn.context.approve("go", {})
        yield FinalAnswer(content="done")
        yield RunFinished()

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        return self.run(turn)


def patient(source: Patient) -> Agent:
    return Agent(name="patient", source=source, title="", description="", max_steps=50)


async def wait_for(served: Served, agent: Agent, messages: list[Message], user: User, **more: Any) -> str:
    """Begin a run; returns once it waits."""
    parts = served.runtime
    request = Request(agent=agent, ref=SessionRef(user.user_id, "s"), user=user, messages=messages, **more)
    run = (await parts.sessions.begin(QueuedRun.of(request))).run
    await eventually(lambda: (live := parts.control.live_run(run.run_id)) and live.execution.grammar.waiting)
    return run.run_id


async def reopened(data: Path, messages: list[Message], user: User, **more: Any) -> tuple[Turn, Turn]:
    """The turn that the agent was given, and the one after a restart."""
    before, after = Patient(None), Patient(None)
    async with serving(agents=[patient(before)], data=data) as served:
        await wait_for(served, patient(before), messages, user, **more)
    async with serving(agents=[patient(after)], data=data):
        await eventually(lambda: after.turns)
    return before.turns[0], after.turns[0]


SYSTEM = [Message(role="system", content="Be brief."), Message(role="system", content="Be kind.")]
QUESTION = Message(role="user", content="May I?")


async def test_what_the_request_said_still_counts(tmp_path: Path) -> None:
    before, after = await reopened(tmp_path, [*SYSTEM, QUESTION], User("ann", "Ann Onym"), max_steps=3)
    assert after.instructions == before.instructions == "Be brief.\n\nBe kind."
    assert after.max_steps == before.max_steps == 3
    assert after.context.user == before.context.user == User("ann", "Ann Onym")
    assert (after.question.text, after.memory_key) == ("May I?", before.memory_key)


async def test_what_it_did_not_say_is_the_agents(tmp_path: Path) -> None:
    _, after = await reopened(tmp_path, [QUESTION], User("ann"))
    assert (after.instructions, after.max_steps, after.context.user) == ("", 50, User("ann"))


@pytest.mark.parametrize("words", [10, 20_000], ids=["short", "long"])
async def test_the_question_comes_back_whole(words: int, tmp_path: Path) -> None:
    text = "please " * words
    _, after = await reopened(tmp_path, [Message(role="user", content=text)], User("ann"))
    assert after.question.text == text
