"""Sessions: begins the runs that users request, one at a time for each session.

A request for a session with a live run is refused, waits in the queue, or stops that run, as its `if_busy` says. A
request that repeats an earlier `request_id` gets the run of the earlier request.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from copy import copy
from functools import partial
from typing import NamedTuple

import msgspec

from limelight.errors import Draining, Forbidden, LimelightError, SessionBusy
from limelight.events import RunStarted, Terminal
from limelight.ids import now_ms
from limelight.log_context import bind_log_fields, log_fields
from limelight.models import Begun, NewRun, Run, RunOptions, SessionRef, User
from limelight.runs.agent_registry import Agent
from limelight.runs.attachments import store_files
from limelight.runs.conversation_history import past_as_results
from limelight.runs.conversation_memory import Memories, question_of
from limelight.runs.engine import Engine, Execution
from limelight.runs.hub import Hub
from limelight.runs.limits import Quota
from limelight.runs.queue import QueuedRun, Request, RunInput, SessionQueues
from limelight.runs.recovery import LEASE_MS, WaitingRun, options_as_results
from limelight.runs.run_context import LoggedApproval, RunContext, RunWork
from limelight.runs.run_input import logged_input, with_input_in_question
from limelight.runs.stop_and_approvals import Control, LiveRun
from limelight.runs.workspace import Workspaces, shared_folder
from limelight.sources.base import Turn
from limelight.sources.image_budget import ImageBudget

log = logging.getLogger(__name__)

TITLE_CHARACTERS = 60
TITLE_SOURCE_CHARACTERS = 1000
"""Number of characters at the start of a question from which the title of its session is made."""
ANSWERED_SECONDS = 1
"""How long a new request waits for the end of a live run whose answer is already complete."""
SEALING_SECONDS = 5
"""How long a shutdown waits until the ends of runs are committed."""
POLL_SECONDS = 0.2
"""How often a shutdown checks whether runs are suspended."""


class SessionResources(NamedTuple):
    """What a server has for sessions beside their logs: viewers, workspace folders and conversation memories."""

    hub: Hub
    workspaces: Workspaces
    memories: Memories

    async def release(self, ref: SessionRef) -> None:
        """Remove the viewers, the agent memories and the files of a deleted session.

        The memories come first, because this ends the processes of the agents, which could change the files.
        """
        self.hub.forget(ref)
        try:
            await self.memories.tidy()
        finally:
            await self.workspaces.remove(ref)


class Sessions:
    """Begins the runs of all sessions in this process, executes them, deletes sessions, and ends runs at shutdown."""

    def __init__(
        self,
        engine: Engine,
        control: Control,
        queues: SessionQueues,
        quota: Quota,
        resources: SessionResources,
        *,
        image_budget: ImageBudget | None = None,
        allows_unconfined: Callable[[], bool] = lambda: True,
    ) -> None:
        """Create the sessions. `allows_unconfined`: whether agents whose sandbox confines nothing may run now."""
        self._engine = engine
        self._store = engine.store
        self._control = control
        self._queues = queues
        self._quota = quota
        self.resources = resources
        self._image_budget = image_budget or ImageBudget()
        self._allows_unconfined = allows_unconfined
        self._starting: Counter[str] = Counter()
        """Number of runs of each owner that are being created in the store."""
        self.closed = False
        """Whether the server shuts down, so that no run can begin."""

    @property
    def count(self) -> int:
        """The number of live runs in this process, at most one for each session."""
        return len(self._control.live_runs)

    @property
    def working_count(self) -> int:
        """The number of live runs that do not just wait for a decision with which they can be resumed later."""
        return sum(not live.is_suspended for live in self._control.live_runs)

    # Beginning a run

    async def begin(self, queued: QueuedRun) -> Begun:
        """Begin the run of a request. If the session is busy, do what the request's `if_busy` says."""
        created = False
        try:
            self._check_confinement(queued.request.agent)
            begun = await self._find_duplicate(queued) or await self._start_when_free(queued)
            created = begun.created
            return begun
        except LimelightError as error:
            queued.refusal = copy(error)  # without the traceback, which references the messages
            raise
        finally:
            queued.settled.set_result(None)
            queued.release_messages()
            if not created:
                self._queues.wake_next(queued.ref)  # let the next request try, because this one did not begin a run

    def _check_confinement(self, agent: Agent) -> None:
        """Raise Forbidden if code of the agent's model would run unconfined on a server that others can use."""
        if agent.is_unconfined and not self._allows_unconfined():
            log.warning(
                "agent %s is refused, as code of its model would run unconfined on a server that others can use; "
                "LIMELIGHT_SANDBOX=none allows it",
                agent.name,
            )
            raise Forbidden(
                f"{agent.name} runs code that a model writes, and this server has no sandbox that confines it"
            )

    async def _find_duplicate(self, queued: QueuedRun) -> Begun | None:
        """Return the run of an earlier request with the same request id, None if there is none.

        Waits for the run if the earlier request is still in the queue.
        """
        request_id = queued.request.request_id
        if not request_id:
            return None
        earlier = self._queues.find_request(queued.ref, request_id)
        if earlier is not None:
            queued.run_id, queued.is_identified = earlier.run_id, True
            queued.queued.set_result(None)
            queued.release_messages()
            await asyncio.wait({earlier.settled})
        run = await self._store.requested(queued.ref, request_id)
        if run is None and earlier is not None:
            raise earlier.refusal_for_duplicate()
        return None if run is None else Begun(run, created=False)

    async def _start_when_free(self, queued: QueuedRun) -> Begun:
        queued.is_identified = True
        if_busy = queued.request.if_busy
        if if_busy == "wait" and self._queues.of(queued.ref):
            await self._queues.wait(queued)
        while True:
            if self.closed:
                raise Draining("the server is shutting down: try again in a moment")
            try:
                return await self._start(queued.request, queued.run_id)
            except SessionBusy as busy:
                if await self._ends_after_answer(busy.run_id):
                    continue
                if if_busy == "error":
                    raise
                if if_busy == "cancel":
                    await self._control.end(busy.run_id, "another request took its place")
                    continue
            await self._queues.wait(queued)

    async def _ends_after_answer(self, run_id: str) -> bool:
        """Wait a moment for the end of a live run whose answer is already complete. Return whether it has ended.

        So a client that has got the answer can send its next request at once.
        """
        live = self._control.live_run(run_id)
        if live is None or not live.execution.grammar.answered:
            return False
        done, _ = await asyncio.wait({live.task}, timeout=ANSWERED_SECONDS)
        return bool(done)

    async def _start(self, request: Request, run_id: str) -> Begun:
        """Create a run and start to execute it. Raises TooManyRuns if live runs and runs in creation are too many."""
        owner = request.ref.owner
        self._check_quota(owner)
        self._starting[owner] += 1
        try:
            begun = await self._store.begin(self._new_run(request, run_id))
        finally:
            self._starting[owner] -= 1
            if not self._starting[owner]:
                del self._starting[owner]
        if begun.created:
            execution = self._new_execution(request.agent, begun.run, begun.session_bytes)
            self._start_task(request.agent, execution, request.user, partial(self._work, request))
        return begun

    def _check_quota(self, owner: str) -> None:
        runs = self._control.live_runs
        owners_at_work = [live.run.ref.owner for live in runs if not live.is_suspended]
        own = owners_at_work.count(owner) + self._starting[owner]
        self._quota.check_runs(owner, own, len(owners_at_work) + self._starting.total())
        self._quota.check_suspended(owner, sum(live.is_suspended and live.run.ref.owner == owner for live in runs))

    def _new_run(self, request: Request, run_id: str) -> NewRun:
        now = now_ms()
        return NewRun(
            run_id=run_id,
            ref=request.ref,
            agent=request.agent.name,
            title=title_of(question_of(request.messages).text),
            at=now,
            lease_until=now + LEASE_MS,
            request_id=request.request_id,
            create_session=request.creates_session,
            max_session_bytes=self._engine.limits.session_max,
            max_sessions=self._quota.sessions_max(request.ref.owner),
        )

    # Executing a run

    def reopen(self, waiting: WaitingRun) -> None:
        """Execute a run that waits for a decision, after this process has taken it over from another process."""
        execution = self._new_execution(waiting.agent, waiting.run)
        execution.reopen(waiting.records)
        self._start_task(waiting.agent, execution, waiting.user, waiting.resume, waiting.approvals)

    def _new_execution(self, agent: Agent, run: Run, session_bytes: int = 0) -> Execution:
        return Execution(
            self._engine, run, status=agent.status, streams=agent.enable_streaming, session_bytes=session_bytes
        )

    def _start_task(
        self, agent: Agent, execution: Execution, user: User, work: RunWork, logged: Sequence[LoggedApproval] = ()
    ) -> None:
        """Start the task that executes a run, and register the run as live. This process must own the run."""
        run = execution.run
        shared, own = partial(shared_folder, agent.workspace), partial(self.resources.workspaces.ensure_folder, run.ref)
        context = RunContext(execution, user, shared if agent.workspace else own, logged)
        task = asyncio.create_task(self._execute(run, partial(work, execution, context)))
        self._control.add(LiveRun(execution, context, task, agent.source.resumes))

    async def _execute(self, run: Run, work: Callable[[], Awaitable[None]]) -> None:
        about = log_fields(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent)
        try:
            with bind_log_fields(about):
                await self._control.apply_signals(run.run_id)  # signals from before the run was live in this process
                await work()
        finally:
            self.resources.memories.done(run.run_id)
            self._control.remove(run.run_id)
            self._queues.wake_next(run.ref)
            await self.resources.memories.free_excess()

    async def _work(self, request: Request, execution: Execution, context: RunContext) -> None:
        """Do the work of a new run: emit `run_started`, and run the agent to its end."""
        run, agent, question = execution.run, request.agent, question_of(request.messages)
        given = with_input_in_question(agent, request.input, question)
        shown, values = logged_input(question.text, given)
        execution.asked_at = request.asked_at
        started = RunStarted(
            agent=run.agent,
            input=shown,
            input_values=values,
            turn=run.turn,
            enable_streaming=agent.enable_streaming,
            framework=agent.source.framework,
            python_tools=agent.python_tools,
            traceparent=request.traceparent,
            attachments=await store_files(self._store, question, run),
        )
        if agent.source.resumes:
            execution.store(options_as_results(options_of(request)))
        await execution.execute(started, agent.source.run, lambda: self._turn(request, given, execution, context))

    async def _turn(self, request: Request, given: RunInput, execution: Execution, context: RunContext) -> Turn:
        """Return the turn for the agent: the messages of the request, and the conversation that they continue."""
        agent = request.agent
        max_steps = request.max_steps or agent.max_steps
        turn = Turn(
            messages=request.messages,
            context=context,
            agent=agent.name,
            max_steps=max_steps,
            input=given.values,
            input_is_question=given.is_question,
            context_values=given.context,
            images=self._image_budget.lease(request.ref.owner),
        )
        if not agent.source.keeps_memory:
            return turn
        recalled = await self.resources.memories.recall(
            agent, request.ref, context.run_id, request.messages, request.continues_session
        )
        execution.store(past_as_results(recalled.past))
        return msgspec.structs.replace(
            turn,
            memory_key=recalled.key,
            history=recalled.history,
            missing_messages=recalled.missing_messages,
            replaces_memory=recalled.replaces,
        )

    # Deleting a session

    async def delete(self, ref: SessionRef) -> None:
        """Stop the live run and the queue of a session, and delete the session with all its data."""
        self._queues.stop_all(ref, "the session was deleted")
        while True:
            try:
                await self._store.delete(ref)
            except SessionBusy as busy:
                await self._control.end(busy.run_id, "the session was deleted")
            else:
                await self.resources.release(ref)
                return

    # Shutdown

    def close(self) -> None:
        """Refuse all further requests for runs, and the requests that wait in queues, because the server shuts down."""
        self.closed = True
        self._queues.wake_all()

    async def settled(self) -> None:
        """Wait until every live run of this process has ended, or waits for a decision and can be resumed later."""
        while tasks := [live.task for live in self._control.live_runs if not live.is_suspended]:
            await asyncio.wait(tasks, timeout=POLL_SECONDS)

    async def drain(self, verdict: Terminal) -> "Drained":
        """End the live runs of this process, and wait at most SEALING_SECONDS until their ends are committed.

        Runs that wait for a decision, and that another process can resume, are not ended.
        """
        ending: list[tuple[Run, asyncio.Task[None]]] = []
        runs: Collection[LiveRun] = list(self._control.live_runs)
        tasks = [live.task for live in runs]
        for live in runs:
            if live.is_suspended:
                tasks.append(asyncio.create_task(live.execution.suspend()))
            elif not live.execution.stopping:
                live.execution.stop(verdict)
                ending.append((live.run, live.task))
        if tasks:
            await asyncio.wait(tasks, timeout=SEALING_SECONDS)
        return Drained(
            ended=[run for run, task in ending if task.done()], left=[run for run, task in ending if not task.done()]
        )


class Drained(NamedTuple):
    """The runs that a shutdown has stopped: `ended` are those whose end is committed, `left` are the others."""

    ended: list[Run]
    left: list[Run]


def options_of(request: Request) -> RunOptions:
    """Return the options that a request sets for its run. They are stored, so that the run can be resumed with them."""
    return RunOptions(
        system=tuple(message.text for message in request.messages if message.role == "system"),
        max_steps=request.max_steps,
        user_name=request.user.name,
        context=request.input.context,
    )


def title_of(text: str) -> str:
    """Return the title of a session: the beginning of its first question, as one line."""
    line = " ".join(text.lstrip()[:TITLE_SOURCE_CHARACTERS].split())
    return line if len(line) <= TITLE_CHARACTERS else line[:TITLE_CHARACTERS].rstrip()
