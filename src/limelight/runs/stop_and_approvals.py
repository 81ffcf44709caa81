"""Control of runs by users: stopping a run, and deciding on its approvals.

Both are sent as a *signal* through the store, which accepts only the first Stop of a run and the first decision on an
approval, and wakes the process that owns the run, which then applies the signal. A decision that no process would
receive is refused with an error; a run that no process owns is stopped by sealing it.

Both built-in stores serve one process, so their signals stay inside of it. A store that several processes share
overrides `signal`, `signals` and `wakes`.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import NamedTuple

import msgspec

from limelight.answer_schemas import problem_with
from limelight.errors import AgentNotServed, AlreadyDecided, ApprovalExpired, ApprovalNotFound, InvalidBody, NotOffered
from limelight.events import ApprovalRequested, ApprovalResolved, RunCancelled
from limelight.ids import now_ms
from limelight.models import Cancel, Decide, Run, SessionRef
from limelight.redaction.rules import REDACTED, contains_redacted, keeps_placeholders
from limelight.runs.agent_registry import Agents
from limelight.runs.engine import Execution
from limelight.runs.queries import records_of, stored_value
from limelight.runs.queue import SessionQueues
from limelight.runs.recovery import Recovery, logged_approvals
from limelight.runs.run_context import RunContext
from limelight.stores.base import Store

log = logging.getLogger(__name__)

RESPOND = "respond"
"""The name of the decision to answer the question of a request. In the log it is an `edit` that is `answered`."""
POLL_SECONDS = 0.05
"""How long `end` waits for a run that is not live in this process."""


class LiveRun(msgspec.Struct, frozen=True):
    """A run that this process executes, with its task."""

    execution: Execution
    context: RunContext
    task: "asyncio.Task[None]"
    is_resumable: bool
    """Whether another process can resume the run while it waits for a decision."""

    @property
    def run(self) -> Run:
        return self.execution.run

    @property
    def is_suspended(self) -> bool:
        """Whether the run waits for a decision and can be resumed from the store. A shutdown need not wait for it."""
        return self.is_resumable and bool(self.execution.grammar.waiting)


class DecidedAt(NamedTuple):
    """The decision on an approval, and its time in milliseconds since the epoch."""

    event: ApprovalResolved
    at: int


class Control:
    """Stops runs and decides on their approvals, in any process; also the registry of this process's live runs."""

    def __init__(self, store: Store, queues: SessionQueues, agents: Agents, recovery: Recovery) -> None:
        self._store = store
        self._queues = queues
        self._agents = agents
        self._recovery = recovery
        self._live: dict[str, LiveRun] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._listen(), name="limelight-control")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # Live runs

    @property
    def live_runs(self) -> Collection[LiveRun]:
        return self._live.values()

    def live_run(self, run_id: str) -> LiveRun | None:
        return self._live.get(run_id)

    def add(self, live: LiveRun) -> None:
        self._live[live.run.run_id] = live

    def remove(self, run_id: str) -> None:
        del self._live[run_id]

    # Stop

    async def cancel(self, run_id: str, reason: str, by: str = "") -> None:
        """Stop a run. Does nothing if the run has ended.

        A queued run leaves its queue. A run that a process owns gets a signal. A run that no process owns is sealed.
        """
        queued = self._queues.find(run_id)
        if queued is not None:
            queued.stop(reason)
            return
        while await self._store.signal(Cancel(run_id, reason, by), now=now_ms()) == "unowned":
            run = await self._store.run(run_id)
            if run is None or not run.live or await self._recovery.seal(run, RunCancelled(reason=reason)):
                return
            # Another process has taken the run over in the meantime, so the signal reaches it now.

    async def end(self, run_id: str, reason: str) -> None:
        """Stop a run and wait for its end; at most POLL_SECONDS if another process executes it."""
        await self.cancel(run_id, reason)
        live = self._live.get(run_id)
        if live is not None:
            await asyncio.wait({live.task})
        else:
            await asyncio.sleep(POLL_SECONDS)

    # Approvals

    async def decide(self, run: Run, decision: Decide) -> None:
        """Check a user's decision on an approval and send it to the run.

        Raises ApprovalNotFound, AlreadyDecided, ApprovalExpired, NotOffered if the request does not allow this kind of
        decision, InvalidBody for the arguments or the answer, or AgentNotServed if no process can receive the decision.
        """
        requested, decided = await self.approval(run, decision.approval_id)
        event = None if decided is None else decided.event
        expired = event is not None and (event.by, event.reason) == ("system", "expired")
        if expired or (event is None and requested.expires_at is not None and requested.expires_at < now_ms()):
            raise ApprovalExpired(f"the time to decide on {requested.name} ran out", run_id=run.run_id)
        already = AlreadyDecided(f"{requested.name} was decided already", run_id=run.run_id)
        if event is not None or not run.live:
            raise already
        offered = (*requested.decisions, *(() if requested.answer_schema is None else (RESPOND,)))
        if (RESPOND if decision.answered else decision.decision) not in offered:
            raise NotOffered(f"{requested.name} can be answered with {', '.join(offered)}", path="decision")
        if decision.answered:
            _check_answer(run, requested, decision)
        else:
            await self._check_args(run, requested, decision)
        outcome = await self._store.signal(decision, now=now_ms())
        if outcome == "unowned" and run.agent in self._agents:
            await self._recovery.recover()  # this process can take the run over
            outcome = await self._store.signal(decision, now=now_ms())
        if outcome == "unowned":
            raise AgentNotServed(
                f"agent {run.agent!r} is not served here, so no answer can reach it and the question stays open: "
                "start a server with that agent, or stop the run",
                run_id=run.run_id,
            )
        if outcome != "sent":
            raise already

    async def _check_args(self, run: Run, requested: ApprovalRequested, decision: Decide) -> None:
        """Raise InvalidBody if edited arguments contain a redaction placeholder that cannot be restored."""
        if decision.args is None:
            return
        shown, is_complete = await stored_value(
            self._store, run, "approval", requested.approval_id, requested.args, requested.truncated, requested.size
        )
        if not keeps_placeholders(decision.args, shown if is_complete else None):
            advice = "keep the text that contains it, or replace all of it"
            if not is_complete:
                advice = "replace all of it, because the arguments were too large to be stored completely"
            text = f"{REDACTED} stands for a hidden value: {advice}"
            raise InvalidBody(text, path="args", run_id=run.run_id)

    async def open_approvals(self, run: Run) -> list[ApprovalRequested]:
        """Return the open approvals of a run; from its log if the run is not live in this process."""
        live = self._live.get(run.run_id)
        if live is not None:
            return list(live.execution.grammar.approvals.values())
        if run.state != "waiting":
            return []
        approvals = logged_approvals([record.event async for record in records_of(self._store, run)])
        return [approval.request for approval in approvals if approval.resolved is None]

    def live_run_with_approval(self, ref: SessionRef, approval_id: str) -> Run | None:
        """Return the live run of a session in this process that has this open approval, or None. Does no I/O."""
        runs = (live.execution for live in self._live.values() if live.execution.ref == ref)
        return next((execution.run for execution in runs if approval_id in execution.grammar.approvals), None)

    async def approval(self, run: Run, approval_id: str) -> tuple[ApprovalRequested, DecidedAt | None]:
        """Return an approval of a run, and its decision or None if it is undecided. Raises ApprovalNotFound."""
        live = self._live.get(run.run_id)
        if live is not None and approval_id in live.execution.grammar.approvals:  # may not be committed yet
            return live.execution.grammar.approvals[approval_id], None
        requested: ApprovalRequested | None = None
        for record in await self._store.records_naming(run, approval_id):
            event = record.event
            if isinstance(event, ApprovalRequested) and event.approval_id == approval_id:
                requested = event
            if isinstance(event, ApprovalResolved) and event.approval_id == approval_id and requested is not None:
                return requested, DecidedAt(event, record.at)
        if requested is None:
            raise ApprovalNotFound(f"run {run.run_id} has no approval {approval_id[:100]!r}")
        return requested, None

    # Signals to the runs of this process

    async def _listen(self) -> None:
        async for run_id in self._store.wakes():
            try:
                await self.apply_signals(run_id)
            except Exception:  # the task must continue, because it listens for all runs
                log.exception("a signal to run %s could not be applied", run_id)

    async def apply_signals(self, run_id: str) -> None:
        """Apply the stored signals of a live run: stop it, or decide on its approvals. Repeated calls are harmless."""
        for signal in await self._store.signals(run_id):
            live = self._live.get(run_id)
            if live is None:
                return  # the run has ended
            match signal:
                case Cancel():
                    live.execution.stop(RunCancelled(reason=signal.reason))
                case Decide():
                    live.context.resolve(signal)


def _check_answer(run: Run, requested: ApprovalRequested, decision: Decide) -> None:
    """Raise InvalidBody if an answer does not fit the request's schema, or contains a redaction placeholder."""
    answer = (decision.args or {}).get("value")
    problem = problem_with(answer, requested.answer_schema or {})
    if not problem and contains_redacted(answer):
        problem = f"{REDACTED} stands for a hidden value: write the value itself, or leave it out"
    if problem:
        raise InvalidBody(problem, path="answer", run_id=run.run_id)
