"""Turns of real agents, which a real server serves and for which the understudy is the model, over HTTP."""

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
from limelight.sources.base import NO_OPTIONS, Options
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.support.server import Frame, Served, collect, offer, serving

E = TypeVar("E")


class ModelEndpoint(NamedTuple):
    """The address of the model, for an agent's model object."""

    base_url: str
    key: str


class FinishedRun:
    """The records of one run that has ended."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = list(records)
        self.events: list[AnyEvent] = [record.event for record in records]

    def all(self, kind: type[E], **fields: Any) -> list[E]:
        """The events of a kind with these fields."""
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

    def call(self, name: str, number: int = 0) -> "FinishedCall":
        started = [e for e in self.all(ToolStarted) if e.name == name]
        assert len(started) > number, f"no call {number} of {name}: {[e.name for e in self.all(ToolStarted)]}"
        return FinishedCall(self, started[number])

    def agent(self, name: str, number: int = 0) -> AgentStarted:
        return [e for e in self.all(AgentStarted) if e.name == name][number]


class FinishedCall:
    """One tool call of a run that has ended."""

    def __init__(self, run: FinishedRun, started: ToolStarted) -> None:
        self._run = run
        self.started = started
        self.call_id = started.call_id
        self.finished = run.one(ToolFinished, call_id=started.call_id)

    @property
    def args(self) -> Any:
        ready = self._run.all(ToolReady, call_id=self.call_id)
        return ready[0].args if ready else self.started.args

    @property
    def result(self) -> Any:
        return self.finished.result

    @property
    def error(self) -> str | None:
        return self.finished.error

    @property
    def started_at(self) -> int:
        return self._run.at(self.started)

    @property
    def ended_at(self) -> int:
        return self._run.at(self.finished)

    @property
    def args_text(self) -> str:
        return "".join(e.text for e in self._run.all(ToolArgsDelta, call_id=self.call_id))

    @property
    def output(self) -> str:
        return "".join(e.text for e in self._run.all(ToolOutputDelta, call_id=self.call_id))


class AgentServer:
    """A server with one agent, and the address of its model."""

    def __init__(self, served: Served, endpoint: ModelEndpoint) -> None:
        self.served = served
        self.endpoint = endpoint

    async def run(self, question: str | None = "go", **body: Any) -> FinishedRun:
        """Run a turn to its end. Without a question, the request has no messages."""
        if question is not None:
            body = {"messages": [{"role": "user", "content": question}], **body}
        return checked_run(await collect(self._stream(**body)))

    def _stream(self, **body: Any) -> AsyncIterator[Frame]:
        return self.served.stream("POST", "/chat/stream", params={"format": "records"}, json=body)

    async def run_deciding(self, decide: Callable[[ApprovalRequested], dict[str, Any]], **body: Any) -> FinishedRun:
        """Run a turn, and decide every request for approval."""
        frames: list[Frame] = []
        async for frame in self.served.ask(body.pop("question", "go"), format="records", **body):
            frames.append(frame)
            record = record_of(frame)
            if isinstance(record.event, ApprovalRequested):
                url = f"/runs/{record.run_id}/approvals/{record.event.approval_id}"
                response = await self.served.http.post(url, json=decide(record.event))
                assert response.status_code == 200, response.text
        return checked_run(frames)

    async def run_until(self, seen: Callable[[AnyEvent], bool], **body: Any) -> FinishedRun:
        """Run a turn, and stop it at the first event for which `seen` is true."""
        frames: list[Frame] = []
        stopped: list[asyncio.Task[Any]] = []
        async for frame in self.served.ask(body.pop("question", "go"), format="records", **body):
            frames.append(frame)
            record = record_of(frame)
            if not stopped and seen(record.event):
                cancelling = self.served.http.post(f"/runs/{record.run_id}/cancel", json={})
                stopped.append(asyncio.create_task(cancelling))
        assert stopped, "the run ended before the event"
        (await stopped[0]).raise_for_status()
        return checked_run(frames)


def status_is(text: str) -> Callable[[AnyEvent], bool]:
    """For `run_until`: whether a tool has emitted this status, because a call that is ready may not have started."""
    return lambda event: isinstance(event, Status) and event.text == text


def record_of(frame: Frame) -> Record:
    return msgspec.convert(frame.data, Record)


def checked_run(frames: Sequence[Frame]) -> FinishedRun:
    """Check that the events of a run are legal and have exactly one end, which holds for every agent."""
    run = FinishedRun([record_of(frame) for frame in frames])
    grammar = Grammar()
    for event in run.events:
        grammar.check(event)
    assert grammar.terminal is run.terminal
    assert not (grammar.calls or grammar.agents or grammar.texts or grammar.reasonings or grammar.steps)
    assert {e.agent_id for e in run.all(AgentStarted)} == {e.agent_id for e in run.all(AgentFinished)}
    return run


@asynccontextmanager
async def serve_agent(
    make: Callable[[ModelEndpoint], object],
    script: str,
    data: Path,
    *,
    name: str = "agent",
    options: Options = NO_OPTIONS,
    context_from_request: bool | tuple[str, ...] = False,
    **settings: Any,
) -> AsyncGenerator[AgentServer]:
    """Serve the agent that `make` returns; its model plays the script, or improvises if that is empty."""
    async with Understudy(parse_scripts(script) if script else ()) as understudy:
        endpoint = ModelEndpoint(understudy.base_url, understudy.key)
        agent = offer(make(endpoint), name, options, context_from_request=context_from_request)
        async with serving(agents=[agent], data=data, **settings) as served:
            yield AgentServer(served, endpoint)


async def run_agent(
    make: Callable[[ModelEndpoint], object],
    script: str,
    data: Path,
    question: str = "go",
    *,
    decide: Callable[[ApprovalRequested], dict[str, Any]] | None = None,
    stop_at: Callable[[AnyEvent], bool] | None = None,
    **body: Any,
) -> FinishedRun:
    """Serve an agent for one turn. `decide` answers requests for approval; `stop_at` selects an event to stop at."""
    async with serve_agent(make, script, data) as server:
        if decide is not None:
            return await server.run_deciding(decide, question=question, **body)
        if stop_at is not None:
            return await server.run_until(stop_at, question=question, **body)
        return await server.run(question, **body)
