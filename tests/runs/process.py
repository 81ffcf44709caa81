"""A process that executes runs, without a server: sessions, control and recovery over an in-memory store.

Two processes that share a database stand for two machines.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from limelight.events import AnyEvent, FinalAnswer, Record, RunFinished
from limelight.messages import Message
from limelight.models import Begun, Run, SessionRef, User
from limelight.runs.agent_registry import Agent, Agents
from limelight.runs.committer import Committer
from limelight.runs.conversation_memory import Memories
from limelight.runs.engine import Engine
from limelight.runs.hub import Hub
from limelight.runs.limits import Quota, RunLimits
from limelight.runs.queue import QueuedRun, Request, SessionQueues
from limelight.runs.recovery import Recovery
from limelight.runs.sessions import SessionResources, Sessions
from limelight.runs.stop_and_approvals import Control, LiveRun
from limelight.runs.workspace import Workspaces
from limelight.sources.base import NO_OPTIONS, Item, Options, Source, Turn
from limelight.stores.memory import MemoryDatabase, MemoryStore

ANN = User("ann")


class GatedSource(Source):
    """An agent that asks for approvals, or waits until the test opens its gate; its runs can be resumed."""

    framework: ClassVar[str] = "test"
    keeps_memory: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __init__(self, target: object = None, options: Options = NO_OPTIONS) -> None:
        self.gate = asyncio.Event()
        self.end_gate = asyncio.Event()
        """Holds a run between its answer and its end, if the test clears it."""
        self.end_gate.set()
        self.approvals = 0
        """How many approvals a run asks for before it ends."""
        self.decisions: list[str] = []
        self.turns: list[Turn] = []

    @classmethod
    def accepts(cls, target: object) -> bool:
        return False

    @property
    def description(self) -> str:
        return ""

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        self.turns.append(turn)
        for number in range(self.approvals):
            approval = await turn.context.approve(f"tool {number}", {"n": number})
            self.decisions.append(f"{approval.decision} by {approval.by}")
        if not self.approvals:
            await self.gate.wait()
        yield FinalAnswer(content="done")
        await self.end_gate.wait()
        yield RunFinished()

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        return self.run(turn)


class Process:
    """One process with one agent."""

    def __init__(
        self,
        folder: Path,
        database: MemoryDatabase | None = None,
        *,
        agent: str = "gated",
        limits: RunLimits | None = None,
        quota: Quota | None = None,
    ) -> None:
        self.source = GatedSource()
        self.agent = Agent(name=agent, source=self.source, title="", description="", max_steps=50)
        self.store = MemoryStore(database or MemoryDatabase())
        self.hub = Hub()
        agents, queues = Agents([self.agent]), SessionQueues()
        self.committer = Committer(self.store, self.hub.publish, self.hub.wake)
        engine = Engine(self.store, self.committer, limits or RunLimits())
        self.queues = queues
        self.recovery = Recovery(engine, queues, agents, reopen=lambda waiting: self.sessions.reopen(waiting))
        self.control = Control(self.store, queues, agents, self.recovery)
        memories = Memories(self.store, agents, idle_seconds=3600)
        resources = SessionResources(self.hub, Workspaces(folder), memories)
        self.sessions = Sessions(engine, self.control, queues, quota or Quota(), resources)

    async def begin(self, session_id: str = "s", **request: Any) -> Begun:
        return await self.sessions.begin(self.queued(session_id, **request))

    def queued(
        self, session_id: str = "s", *, user: User = ANN, text: str = "go", system: Sequence[str] = (), **request: Any
    ) -> QueuedRun:
        messages = [*(Message(role="system", content=line) for line in system), Message(role="user", content=text)]
        ref = SessionRef(user.user_id, session_id)
        return QueuedRun.of(Request(agent=self.agent, ref=ref, user=user, messages=messages, **request))

    def live(self, run_id: str) -> LiveRun:
        live = self.control.live_run(run_id)
        assert live is not None, f"{run_id} is not live in this process"
        return live

    def approval_ids(self, run_id: str) -> list[str]:
        return list(self.live(run_id).execution.grammar.approvals)

    async def run(self, run_id: str) -> Run:
        run = await self.store.run(run_id)
        assert run is not None
        return run

    async def log(self, run_id: str) -> list[Record]:
        run = await self.run(run_id)
        return [r for r in await self.store.records(run.ref, after=0, limit=1000) if r.run_id == run_id]

    async def crash(self) -> None:
        """End all tasks as a killed process does: nothing is written, and leases are not renewed."""
        await self.control.stop()
        await self.committer.stop()
        tasks = [live.task for live in self.control.live_runs]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


@asynccontextmanager
async def started(process: Process) -> AsyncGenerator[Process]:
    """Start the tasks of a process, and end them at the end of the block."""
    process.committer.start()
    process.control.start()
    try:
        yield process
    finally:
        await process.crash()
