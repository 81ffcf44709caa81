"""Recovery of runs whose process has ended: they are sealed or, if they wait for a decision, reopened.

Recovery runs at start and after each renewal of leases. The work of a run is never repeated: the run is sealed, which
means that everything open in its log is closed and that it ends, with `run_failed` and the code `interrupted`. A run
that waits for a decision is reopened if its framework has stored the state: it continues to wait, and resumes with the
decision.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from limelight.errors import BadEvent, Interrupted
from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Record,
    RunFailed,
    RunStarted,
    Terminal,
    ToolReady,
    ToolStarted,
)
from limelight.grammar import Grammar, closing_reason
from limelight.ids import now_ms, sortable_id
from limelight.log_context import log_fields
from limelight.messages import Message
from limelight.models import Append, Result, Run, RunOptions, User, state_after
from limelight.runs.agent_registry import Agent, Agents
from limelight.runs.engine import Engine, Execution
from limelight.runs.metrics import measured_commit, report_end
from limelight.runs.queries import complete_value, records_of
from limelight.runs.queue import SessionQueues
from limelight.runs.run_context import LoggedApproval, RunContext, RunWork
from limelight.runs.store_retry import retry_while_unavailable
from limelight.runs.truncation import fit, result_key
from limelight.sources.base import Turn
from limelight.stores.base import Store

log = logging.getLogger(__name__)

LEASE_MS = 30_000
"""Duration of a lease. Another process may take over a run whose lease was not renewed for this time."""
OPTIONS_KEY = result_key("terms")
"""The key in the results table under which the options of a run's request are stored."""
INTERRUPTED = "the server stopped during the run"


class WaitingRun(NamedTuple):
    """A run that waits for a decision, and that this process has taken over."""

    agent: Agent
    run: Run
    user: User
    records: Sequence[Record]
    approvals: Sequence[LoggedApproval]
    resume: RunWork
    """The function that waits for the decisions, and resumes the agent with them."""


class Recovery:
    """Takes over the runs whose process has ended: ends them, or reopens those that wait for a decision."""

    def __init__(
        self, engine: Engine, queues: SessionQueues, agents: Agents, reopen: Callable[[WaitingRun], None]
    ) -> None:
        self._engine = engine
        self._store = engine.store
        self._queues = queues
        self._agents = agents
        self._reopen = reopen

    async def recover(self) -> int:
        """Seal or reopen every live run whose lease has expired. Return how many were sealed."""
        sealed = 0
        for run in await self._store.orphans(now_ms()):
            if run.state == "waiting" and await self._try_to_reopen(run):
                continue
            error_id = sortable_id("err_")
            if await self.seal(run, RunFailed(code=Interrupted.code, message=INTERRUPTED, error_id=error_id)):
                sealed += 1
                about = log_fields(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent, error_id=error_id)
                log.warning("run %s was interrupted, %s; its log is sealed", run.run_id, error_id, extra=about)
        return sealed

    async def seal(self, run: Run, terminal: Terminal) -> bool:
        """Take over a run that no process owns, and end it. Return False if a process owns it."""
        if not await self._take_over(run):
            return False
        # Retry, because this process has the lease now, so no other process would seal the run.
        records = await retry_while_unavailable(lambda: self._write_end(run, terminal))
        self._engine.committer.publish(run.ref, records)
        self._engine.committer.wake_soon(run.ref, is_end=True)
        self._queues.wake_next(run.ref)
        return True

    async def _take_over(self, run: Run) -> bool:
        now = now_ms()
        return await self._store.take_over(run.run_id, until=now + LEASE_MS, now=now)

    async def _write_end(self, run: Run, terminal: Terminal) -> Sequence[Record]:
        """Commit and return the Records that end a run: those that close what is open in it, and the terminal one."""
        grammar = Grammar()
        last_seq, last_at = run.first_seq - 1, run.started_at
        async for record in records_of(self._store, run):
            with suppress(BadEvent):  # an older version wrote the log; the run can be sealed nevertheless
                grammar.check(record.event)
            last_seq, last_at = record.seq, record.at
        start = [] if grammar.started else [RunStarted(agent=run.agent, turn=run.turn)]
        events = (*start, *grammar.closing_events(closing_reason(terminal)), terminal)
        fitted = [fit(event, run.run_id, self._engine.limits.result_max) for event in events]
        ending = [event for part in fitted for event in part.events]
        at = max(now_ms(), last_at)
        append = Append(
            run_id=run.run_id,
            records=[Record(last_seq + n, run.run_id, at, event) for n, event in enumerate(ending, start=1)],
            results=[result for part in fitted for result in part.results],
            state=state_after(terminal),
        )
        with measured_commit(self._engine.metrics, len(append.records)):
            await self._store.append([append])
        report_end(self._engine.metrics, run.agent, terminal)
        return append.records

    async def _try_to_reopen(self, run: Run) -> bool:
        """Reopen a run that waits for a decision. Return False if the run has to be sealed.

        If this server does not offer the agent of the run, it does nothing and returns True: another server may.
        """
        records = [record async for record in records_of(self._store, run)]
        if not _is_legal(records):
            return False
        events = [await self._complete(run, record.event) for record in records]
        approvals = logged_approvals(events)
        if run.agent not in self._agents:
            return _may_wait(approvals)  # a server with that agent may start before the approvals expire
        agent = self._agents.get(run.agent)
        memory = await self._store.memory(run.ref, agent.name) if agent.source.resumes else None
        if memory is None or not memory.turns or memory.turns[-1].run_id != run.run_id:
            return False
        options = await _load_options(self._store, run)
        if await self._take_over(run):
            user = User(run.ref.owner, options.user_name)
            resume = _work_after_decision(agent, events, memory.key, options)
            self._reopen(WaitingRun(agent, run, user, records, approvals, resume))
            about = log_fields(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent)
            log.warning("run %s continues to wait for a decision", run.run_id, extra=about)
        return True

    async def _complete(self, run: Run, event: AnyEvent) -> AnyEvent:
        """Return an event of a reopened run with its complete input or arguments, if the log has only a preview."""
        match event:
            case RunStarted() if event.truncated:
                text = await complete_value(self._store, run, "input", "", event.input, is_preview=True)
                return msgspec.structs.replace(event, input=str(text))
            case ToolStarted() | ToolReady() if event.truncated:
                kind, id_ = "args", event.call_id
            case ApprovalRequested() if event.truncated:
                kind, id_ = "approval", event.approval_id
            case ApprovalResolved() if event.truncated:
                kind, id_ = "edited", event.approval_id
            case _:
                return event
        return msgspec.structs.replace(
            event, args=await complete_value(self._store, run, kind, id_, event.args, is_preview=True)
        )


def _work_after_decision(agent: Agent, events: Sequence[AnyEvent], memory_key: str, options: RunOptions) -> RunWork:
    """Return the function that does the work of a reopened run: waits for the decisions, and resumes the agent."""
    question = next((event.input for event in events if isinstance(event, RunStarted)), "")

    async def resume(execution: Execution, context: RunContext) -> None:
        async def prepare() -> Turn:
            return Turn(
                messages=options.with_question(Message(role="user", content=question)),
                context=context,
                agent=agent.name,
                memory_key=memory_key,
                max_steps=options.max_steps or agent.max_steps,
                context_values=options.context,
            )

        await execution.execute(None, lambda turn: agent.source.resume(turn, events), prepare)

    return resume


def logged_approvals(events: Sequence[AnyEvent]) -> list[LoggedApproval]:
    """Return the newest approvals in a log that were open together, with the decisions that were made on them.

    Approvals that were all decided before the next request are left out: that request needs a decision of its own, even
    if it equals an earlier one.
    """
    together: dict[str, LoggedApproval] = {}
    for event in events:
        if isinstance(event, ApprovalRequested):
            if all(approval.resolved is not None for approval in together.values()):
                together = {}
            together[event.approval_id] = LoggedApproval(event)
        elif isinstance(event, ApprovalResolved) and event.approval_id in together:
            together[event.approval_id] = LoggedApproval(together[event.approval_id].request, event)
    return list(together.values())


def _is_legal(records: Sequence[Record]) -> bool:
    """Whether the grammar of this version accepts the log of a run. If not, the run cannot be reopened."""
    grammar = Grammar()
    try:
        for record in records:
            grammar.check(record.event)
    except BadEvent:
        return False
    return True


def _may_wait(approvals: Sequence[LoggedApproval]) -> bool:
    """Whether a run may continue to wait for a decision: one of its approvals is open and has not expired."""
    now = now_ms()
    return any(a.resolved is None and (a.request.expires_at is None or a.request.expires_at > now) for a in approvals)


def options_as_results(options: RunOptions) -> list[Result]:
    """Encode the options of a run for the results table, so that a reopened run has them; [] if all are defaults."""
    if options == RunOptions():
        return []
    return [Result(key=OPTIONS_KEY, media_type="application/json", body=msgspec.json.encode(options))]


async def _load_options(store: Store, run: Run) -> RunOptions:
    stored = await store.result(run.run_id, OPTIONS_KEY)
    return RunOptions() if stored is None else msgspec.json.decode(stored.body, type=RunOptions)
