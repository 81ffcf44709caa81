"""Sessions: who may begin a run, and when.

One live run per session. A second request is refused, waits for its turn, or stops the first, as it asks for. A
request that was sent before (same `request_id`) gets the run that it began then. This is where an Execution is made
and let go.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Collection, Coroutine, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import msgspec

from limelight.errors import Draining, LimelightError, QueueFull, SessionBusy
from limelight.events import RunCancelled, RunStarted, Terminal
from limelight.ids import now_ms, sortable_id
from limelight.log_context import bind_log_fields, log_fields
from limelight.models import Begun, NewRun, Run, RunOptions, SessionRef
from limelight.redaction.rules import Redactor
from limelight.runs.agents import Agent
from limelight.runs.attachments import keep_files
from limelight.runs.committer import Committer
from limelight.runs.context import Asked, Life, RunContext
from limelight.runs.engine import Execution
from limelight.runs.history import past_to_keep
from limelight.runs.hub import Hub
from limelight.runs.limits import Quota, RunLimits
from limelight.runs.memory import Memories, question_of
from limelight.runs.metrics import NO_METRICS, RunMetrics
from limelight.runs.queue import Request, StoppedInQueue, Waiting
from limelight.runs.recovery import LEASE_MS, seal
from limelight.runs.run_options import options_as_results
from limelight.runs.workspace import Workspaces, shared_folder
from limelight.sources.base import Turn, User
from limelight.stores.base import Store

log = logging.getLogger(__name__)

MAX_WAITING = 5
TITLE_CHARACTERS = 60
LOOKED_AT = 1000
"""Characters of a text, which may be large, that its title is made of."""
SEALING_SECONDS = 5
"""How long runs may take to end when they have to."""
LOOKING_SECONDS = 0.2
"""How often it is looked whether a run has come to rest."""


class LiveRun(msgspec.Struct, frozen=True):
    """A run that goes on in this process."""

    execution: Execution
    context: RunContext
    task: "asyncio.Task[None]"
    survives: bool
    """Whether another process can go on with it while it waits for a person."""

    @property
    def rests(self) -> bool:
        """Whether it waits for a person, and all that it needs is in the store: then it takes nobody's place."""
        return self.survives and bool(self.execution.grammar.waiting)


class Sessions:
    """Begins runs and knows those that go on in this process."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        limits: RunLimits,
        hub: Hub,
        workspaces: Workspaces,
        memories: Memories,
        quota: Quota,
        redactor: Redactor,
        metrics: RunMetrics = NO_METRICS,
    ) -> None:
        self._store = store
        self._quota = quota
        self._redactor = redactor
        self._metrics = metrics
        self._memories = memories
        self._committer = committer
        self._limits = limits
        self._hub = hub
        self._workspaces = workspaces
        self._live: dict[str, LiveRun] = {}
        self._queues: dict[SessionRef, deque[Waiting]] = {}
        self._beginning: Counter[str] = Counter()
        """How many runs of each owner are on their way into the store."""
        self.closed = False
        """Whether no run can begin any more."""

    def live(self, run_id: str) -> LiveRun | None:
        return self._live.get(run_id)

    def waiting(self, run_id: str) -> Waiting | None:
        """A request that has not begun yet, by the id that its run will have."""
        return next((w for queue in self._queues.values() for w in queue if w.run_id == run_id), None)

    def waiting_request(self, ref: SessionRef, request_id: str) -> Waiting | None:
        """The same, by the id of the request."""
        return next((w for w in self._queues.get(ref, ()) if w.request.request_id == request_id), None)

    @property
    def count(self) -> int:
        return len(self._live)

    @property
    def runs(self) -> Collection[LiveRun]:
        """Those that go on in this process."""
        return self._live.values()

    @property
    def queued(self) -> int:
        """How many requests wait for their session."""
        return sum(map(len, self._queues.values()))

    @property
    def at_work(self) -> int:
        """Those that go on, without those that rest."""
        return sum(not live.rests for live in self._live.values())

    def place(self, request: Request) -> Waiting:
        """A place for a request, with the id that its run will have; `begin` takes it."""
        future = asyncio.get_running_loop().create_future
        return Waiting(sortable_id("run_"), request, queued=future(), over=future(), let_go=future())

    async def begin(self, place: Waiting) -> Begun:
        """Begin the run, in the way that the request wants if the session is busy."""
        created = False
        try:
            begun = await self._known(place) or await self._begin_in_turn(place)
            created = begun.created
            return begun
        except LimelightError as error:
            place.refused = copy(error)  # without its traceback, which keeps the messages in memory
            raise
        finally:
            place.over.set_result(None)
            place.drop_messages()
            if not created:
                self._next_turn(place.ref)  # it has not used its turn, if it had one

    async def _known(self, place: Waiting) -> Begun | None:
        """The run of a request that was sent before, also if that one still waits."""
        request_id = place.request.request_id
        if not request_id:
            return None
        twins = [other for other in self._queues.get(place.ref, ()) if other.request.request_id == request_id]
        if twins:
            place.run_id, place.is_identified = twins[0].run_id, True
            place.queued.set_result(None)
            place.drop_messages()
            await asyncio.wait({twins[0].over})
        run = await self._store.requested(place.ref, request_id)
        if run is None and twins:
            raise twins[0].never_began()
        return None if run is None else Begun(run, created=False)

    async def _begin_in_turn(self, place: Waiting) -> Begun:
        place.is_identified = True
        if_busy = place.request.if_busy
        if if_busy == "wait" and self._queues.get(place.ref):
            await self._wait(place)
        while True:
            if self.closed:
                raise Draining("the server is shutting down: try again in a moment")
            try:
                return await self._begin(place.request, place.run_id)
            except SessionBusy as busy:
                if if_busy == "error":
                    raise
                if if_busy == "cancel":
                    await self.end(busy.run_id, "another request took its place")
                    continue
            await self._wait(place)

    async def _begin(self, request: Request, run_id: str) -> Begun:
        """Begin it, if that is not one run too many; those that are just beginning count."""
        owner = request.ref.owner
        at_work = [live.execution.ref.owner for live in self._live.values() if not live.rests]
        own = at_work.count(owner) + self._beginning[owner]
        self._quota.check_runs(owner, own, len(at_work) + self._beginning.total())
        resting = sum(live.rests and live.execution.ref.owner == owner for live in self._live.values())
        self._quota.check_waiting(owner, resting)
        self._beginning[owner] += 1
        try:
            return await self._begin_now(request, run_id)
        finally:
            self._beginning[owner] -= 1
            if not self._beginning[owner]:
                del self._beginning[owner]

    async def _begin_now(self, request: Request, run_id: str) -> Begun:
        asked = question_of(request.messages)
        now = now_ms()
        begun = await self._store.begin(
            NewRun(
                run_id=run_id,
                ref=request.ref,
                agent=request.agent.name,
                title=title_of(asked.text),
                at=now,
                lease_until=now + LEASE_MS,
                request_id=request.request_id,
                create_session=request.makes_session,
                max_session_bytes=self._limits.session_max,
                max_sessions=self._quota.sessions_max(request.ref.owner),
            )
        )
        if begun.created:
            life = partial(self._life, request)
            self.play(request.agent, begun.run, request.user, life, session_bytes=begun.session_bytes)
        return begun

    def play(
        self, agent: Agent, run: Run, user: User, life: Life, asked: Sequence[Asked] = (), session_bytes: int = 0
    ) -> None:
        """Let a run that this process holds go on in a task of its own, from its beginning or from where it waits."""
        execution = Execution(
            run,
            self._store,
            self._committer,
            self._limits,
            status=agent.status,
            streams=agent.enable_streaming,
            redactor=self._redactor,
            session_bytes=session_bytes,
            metrics=self._metrics,
        )
        shared, own = partial(shared_folder, agent.workspace), partial(self._workspaces.made, run.ref)
        context = RunContext(execution, user, shared if agent.workspace else own, asked)
        task = asyncio.create_task(self._until_over(run, life(execution, context)))
        self._live[run.run_id] = LiveRun(execution, context, task, agent.source.resumes)

    async def _until_over(self, run: Run, life: Coroutine[Any, Any, None]) -> None:
        about = log_fields(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent)
        try:
            with bind_log_fields(about):
                await life
        finally:
            self._memories.done(run.run_id)
            del self._live[run.run_id]
            self._next_turn(run.ref)

    async def _life(self, request: Request, execution: Execution, context: RunContext) -> None:
        run, agent, asked = execution.run, request.agent, question_of(request.messages)
        execution.timer.asked_at = request.asked_at
        started = RunStarted(
            agent=run.agent,
            input=asked.text,
            turn=run.turn,
            enable_streaming=agent.enable_streaming,
            framework=agent.source.framework,
            python_tools=agent.python_tools,
            traceparent=request.traceparent,
            attachments=await keep_files(self._store, asked, run),
        )
        if agent.source.resumes:
            execution.store(options_as_results(options_of(request)))
        await execution.execute(started, agent.source.run, lambda: self._turn(request, execution, context))

    async def _turn(self, request: Request, execution: Execution, context: RunContext) -> Turn:
        """What the agent gets: the request, and the conversation that it belongs to."""
        agent = request.agent
        max_steps = request.max_steps or agent.max_steps
        if not agent.source.keeps_memory:
            return Turn(messages=request.messages, context=context, max_steps=max_steps)
        recalled = await self._memories.recall(agent, request.ref, context.run_id, request.messages, request.goes_on)
        execution.store(past_to_keep(recalled.told))
        return Turn(
            messages=request.messages,
            context=context,
            memory_key=recalled.key,
            history=recalled.history,
            max_steps=max_steps,
        )

    async def _wait(self, place: Waiting) -> None:
        """Queue up, first in, first out. One that had its turn and found the session taken keeps its place."""
        queue = self._queues.setdefault(place.ref, deque())
        if place.turn is not None:
            queue.appendleft(place)
        elif len(queue) < MAX_WAITING:
            queue.append(place)
        else:
            raise QueueFull(f"{MAX_WAITING} requests wait for session {place.ref.session_id} already")
        place.turn = asyncio.get_running_loop().create_future()
        if not place.queued.done():
            place.queued.set_result(None)
        try:
            await place.turn
        finally:
            queue.remove(place)
            if not queue:
                self._queues.pop(place.ref, None)
        if place.stopped is not None:
            raise StoppedInQueue(place.stopped)

    def _next_turn(self, ref: SessionRef) -> None:
        queue = self._queues.get(ref)
        if queue:
            queue[0].go()

    async def end(self, run_id: str, reason: str) -> None:
        """Stop a run and wait until it is over."""
        live = self._live.get(run_id)
        if live is not None:
            live.execution.stop(RunCancelled(reason=reason))
            await asyncio.wait({live.task})
        elif not await self.end_orphan(run_id, reason):
            await asyncio.sleep(0.05)  # it is just beginning or ending, or another process has it

    async def end_orphan(self, run_id: str, reason: str) -> bool:
        """Stop a run that waits for a person and for a server with its agent. False if somebody holds it."""
        run = await self._store.run(run_id)
        return run is not None and run.live and await self.seal(run, RunCancelled(reason=reason))

    async def seal(self, run: Run, terminal: Terminal) -> bool:
        """End a run that nobody holds, for all who watch it or wait for its session. False if somebody holds it."""
        records = await seal(self._store, run, terminal, self._limits.result_max, self._metrics)
        if records is None:
            return False
        self._committer.deliver(run.ref, records)
        self._next_turn(run.ref)
        return True

    async def delete(self, ref: SessionRef) -> None:
        """Remove a session with all that belongs to it; its live run, and whoever waits for it, is stopped first."""
        for waiting in list(self._queues.get(ref, ())):
            waiting.stop("the session was deleted")
        while True:
            try:
                await self._store.delete(ref)
            except SessionBusy as busy:
                await self.end(busy.run_id, "the session was deleted")
            else:
                await self.forget(ref)
                return

    async def forget(self, ref: SessionRef) -> None:
        """A session is gone from the store: so are its viewers, its files, and what agents keep of it."""
        self._hub.forget(ref)
        await self._workspaces.remove(ref)
        await self._memories.tidy()

    def close(self) -> None:
        """Let no run begin any more, and send away who waits for that."""
        self.closed = True
        for queue in list(self._queues.values()):
            for waiting in queue:
                waiting.go()

    async def settled(self) -> None:
        """Wait until none is at work: all have ended, or rest."""
        while tasks := [live.task for live in self._live.values() if not live.rests]:
            await asyncio.wait(tasks, timeout=LOOKING_SECONDS)

    async def drain(self, verdict: Terminal) -> "Drained":
        """End the runs that go on, and wait until the log says so; but not for ever, if it cannot be written.

        Runs that wait for a person, and that another process can go on with, are left as they are.
        """
        ending: list[tuple[Run, asyncio.Task[None]]] = []
        tasks = [live.task for live in self._live.values()]
        for live in list(self._live.values()):
            if live.rests:
                tasks.append(asyncio.create_task(live.execution.suspend()))
            elif not live.execution.stopping:
                live.execution.stop(verdict)
                ending.append((live.execution.run, live.task))
        if tasks:
            await asyncio.wait(tasks, timeout=SEALING_SECONDS)
        return Drained(
            ended=[run for run, task in ending if task.done()], left=[run for run, task in ending if not task.done()]
        )


class Drained(NamedTuple):
    """What became of the runs that were ended by force: those whose end is in the log, and those whose is not."""

    ended: list[Run]
    left: list[Run]


def options_of(request: Request) -> RunOptions:
    return RunOptions(
        system=tuple(message.text for message in request.messages if message.role == "system"),
        max_steps=request.max_steps,
        user_name=request.user.name,
    )


def title_of(text: str) -> str:
    """A session's first title: the beginning of its first message, in one line."""
    line = " ".join(text.lstrip()[:LOOKED_AT].split())
    return line if len(line) <= TITLE_CHARACTERS else line[:TITLE_CHARACTERS].rstrip()
