"""A turn of a real agent: served by a real server, its model the understudy over HTTP. What came out, and questions."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    FinalAnswer,
    ReasoningDelta,
    Record,
    Status,
    TextDelta,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    terminal_of,
)
from limelight.grammar import Grammar
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.support.server import Frame, Served, collect, offer, serving

E = TypeVar("E")


class Stage(NamedTuple):
    """Where the model is: what an agent's model object needs."""

    base_url: str
    key: str


class Played:
    """The events of one run, in order."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = list(records)
        self.events: list[AnyEvent] = [record.event for record in records]

    def all(self, kind: type[E], **fields: Any) -> list[E]:
        """The events of a kind whose fields are these."""
        found = [event for event in self.events if isinstance(event, kind)]
        return [e for e in found if all(getattr(e, name) == value for name, value in fields.items())]

    def one(self, kind: type[E], **fields: Any) -> E:
        found = self.all(kind, **fields)
        assert len(found) == 1, f"{len(found)} of {kind.__name__} {fields}: {self.kinds}"
        return found[0]

    def at(self, event: object) -> int:
        return next(at for at, other in enumerate(self.events) if other is event)

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    @property
    def terminal(self) -> AnyEvent:
        terminals = [event for event in self.events if terminal_of(event) is not None]
        assert len(terminals) == 1, self.kinds
        assert self.events[-1] is terminals[0]
        return terminals[0]

    @property
    def answer(self) -> Any:
        return self.one(FinalAnswer).content

    def text(self, agent_id: str = "") -> str:
        return "".join(e.text for e in self.all(TextDelta, agent_id=agent_id))

    def reasoning(self, agent_id: str = "") -> str:
        return "".join(e.text for e in self.all(ReasoningDelta, agent_id=agent_id))

    def call(self, name: str, number: int = 0) -> "PlayedCall":
        started = [e for e in self.all(ToolStarted) if e.name == name]
        assert len(started) > number, f"no call {number} of {name}: {[e.name for e in self.all(ToolStarted)]}"
        return PlayedCall(self, started[number])

    def agent(self, name: str, number: int = 0) -> AgentStarted:
        return [e for e in self.all(AgentStarted) if e.name == name][number]


class PlayedCall:
    """One tool call of a run."""

    def __init__(self, played: Played, started: ToolStarted) -> None:
        self._played = played
        self.started = started
        self.call_id = started.call_id
        self.finished = played.one(ToolFinished, call_id=started.call_id)

    @property
    def args(self) -> Any:
        ready = self._played.all(ToolReady, call_id=self.call_id)
        return ready[0].args if ready else self.started.args

    @property
    def result(self) -> Any:
        return self.finished.result

    @property
    def error(self) -> str | None:
        return self.finished.error

    @property
    def begun_at(self) -> int:
        return self._played.at(self.started)

    @property
    def ended_at(self) -> int:
        return self._played.at(self.finished)

    @property
    def args_text(self) -> str:
        return "".join(e.text for e in self._played.all(ToolArgsDelta, call_id=self.call_id))

    @property
    def output(self) -> str:
        return "".join(e.text for e in self._played.all(ToolOutputDelta, call_id=self.call_id))


class Theatre:
    """A server with one agent, and its model."""

    def __init__(self, served: Served, stage: Stage) -> None:
        self.served = served
        self.stage = stage

    async def play(self, question: str = "go", **body: Any) -> Played:
        """One turn, to its end."""
        messages = body.pop("messages", None) or [{"role": "user", "content": question}]
        return played(await collect(self._asked(messages, **body)))

    def _asked(self, messages: list[dict[str, Any]], **body: Any) -> AsyncIterator[Frame]:
        return self.served.stream(
            "POST", "/chat/stream", params={"format": "records"}, json={"messages": messages, **body}
        )

    async def play_deciding(self, decide: Callable[[ApprovalRequested], dict[str, Any]], **body: Any) -> Played:
        """One turn in which somebody answers every approval that is asked for."""
        frames: list[Frame] = []
        async for frame in self.served.ask(body.pop("question", "go"), format="records", **body):
            frames.append(frame)
            record = record_of(frame)
            if isinstance(record.event, ApprovalRequested):
                url = f"/runs/{record.run_id}/approvals/{record.event.approval_id}"
                response = await self.served.http.post(url, json=decide(record.event))
                assert response.status_code == 200, response.text
        return played(frames)

    async def play_until(self, seen: Callable[[AnyEvent], bool], **body: Any) -> Played:
        """One turn that is stopped as soon as something has been seen, from outside."""
        frames: list[Frame] = []
        stopped: list[asyncio.Task[Any]] = []
        async for frame in self.served.ask(body.pop("question", "go"), format="records", **body):
            frames.append(frame)
            record = record_of(frame)
            if not stopped and seen(record.event):
                cancelling = self.served.http.post(f"/runs/{record.run_id}/cancel", json={})
                stopped.append(asyncio.create_task(cancelling))
        assert stopped, "it was over before anything was seen"
        (await stopped[0]).raise_for_status()
        return played(frames)


def saying(text: str) -> Callable[[AnyEvent], bool]:
    """For `play_until`: a tool says this when it is at work. That its call is ready does not mean that it has begun."""
    return lambda event: isinstance(event, Status) and event.text == text


def record_of(frame: Frame) -> Record:
    return msgspec.convert(frame.data, Record)


def played(frames: Sequence[Frame]) -> Played:
    """Check what must hold for every run, of whatever agent: it is legal, and it has exactly one end."""
    run = Played([record_of(frame) for frame in frames])
    grammar = Grammar()
    for event in run.events:
        grammar.check(event)
    assert grammar.terminal is run.terminal
    assert not (grammar.calls or grammar.agents or grammar.texts or grammar.reasonings or grammar.steps)
    assert {e.agent_id for e in run.all(AgentStarted)} == {e.agent_id for e in run.all(AgentFinished)}
    return run


@asynccontextmanager
async def theatre(
    make: Callable[[Stage], object], script: str, data: Path, *, name: str = "agent", **settings: Any
) -> AsyncGenerator[Theatre]:
    """Serve the agent that `make` gives for this stage; its model plays the script, or improvises if it is empty."""
    async with Understudy(parse_scripts(script) if script else ()) as understudy:
        stage = Stage(understudy.base_url, understudy.key)
        agent = offer(make(stage), name)
        async with serving(agents=[agent], data=data, **settings) as served:
            yield Theatre(served, stage)


async def play(make: Callable[[Stage], object], script: str, data: Path, question: str = "go", **body: Any) -> Played:
    """One turn of an agent, and no more."""
    async with theatre(make, script, data) as stage:
        return await stage.play(question, **body)
