"""Control: what people say to a run that goes on. Stop, and the answers to its questions.

A signal goes through the store, so that it reaches the process that holds the run, wherever it was said.
"""

import asyncio
import logging
from typing import NamedTuple

from limelight.errors import AgentNotServed, AlreadyDecided, ApprovalExpired, ApprovalNotFound, NotOffered, RequestError
from limelight.events import ApprovalRequested, ApprovalResolved, RunCancelled
from limelight.ids import now_ms
from limelight.models import Cancel, Decide, Run, SessionRef
from limelight.runs.agents import Agents
from limelight.runs.queries import records_of
from limelight.runs.sessions import Sessions
from limelight.stores.base import Store

log = logging.getLogger(__name__)


class Answered(NamedTuple):
    """The answer to an approval, and when it was given."""

    event: ApprovalResolved
    at: int


class Control:
    """Sends signals, and carries out those that arrive for the runs of this process."""

    def __init__(self, store: Store, sessions: Sessions, agents: Agents) -> None:
        self._store = store
        self._sessions = sessions
        self._agents = agents
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._listen(), name="limelight-control")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def cancel(self, run_id: str, reason: str, by: str) -> None:
        """Stop a run, also one that still waits for its turn, or for a server with its agent."""
        waiting, live = self._sessions.waiting(run_id), self._sessions.live(run_id)
        if live is not None and live.execution.stopping:
            return
        if waiting is not None:
            waiting.stop(reason)
        elif live is not None or not await self._sessions.end_orphan(run_id, reason):
            await self._store.signal(Cancel(run_id, reason, by))

    async def decide(self, run: Run, decision: Decide) -> None:
        """Answer an approval. Raises if there is none, if it is too late, or if that answer was not offered."""
        requested, answered = await self.approval(run, decision.approval_id)
        resolved = None if answered is None else answered.event
        expired = resolved is not None and (resolved.by, resolved.reason) == ("system", "expired")
        if expired or (resolved is None and requested.expires_at is not None and requested.expires_at < now_ms()):
            raise ApprovalExpired(f"the time to decide on {requested.name} ran out", run_id=run.run_id)
        if resolved is not None or not run.live:
            raise AlreadyDecided(f"{requested.name} was decided already", run_id=run.run_id)
        if decision.decision not in requested.decisions:
            raise NotOffered(f"{requested.name} can be answered with {', '.join(requested.decisions)}", path="decision")
        live = self._sessions.live(run.run_id)
        if live is not None:  # at once, so that of two people who decide only one is told that it counted
            live.context.decide(decision)
            return
        if run.agent not in self._agents and await self._is_orphan(run):
            raise AgentNotServed(
                f"agent {run.agent!r} is not served here, so no answer can reach it and the question stays open: "
                "start a server with that agent, or stop the run",
                run_id=run.run_id,
            )
        await self._store.signal(decision)

    async def _is_orphan(self, run: Run) -> bool:
        return any(orphan.run_id == run.run_id for orphan in await self._store.orphans(now_ms()))

    async def open_approvals(self, run: Run) -> list[ApprovalRequested]:
        """What a run waits for. If nobody goes on with it here, its log tells."""
        live = self._sessions.live(run.run_id)
        if live is not None:
            return list(live.execution.grammar.approvals.values())
        asked: dict[str, ApprovalRequested] = {}
        if run.state == "waiting":
            async for record in records_of(self._store, run):
                match record.event:
                    case ApprovalRequested() as request:
                        asked[request.approval_id] = request
                    case ApprovalResolved() as answer:
                        asked.pop(answer.approval_id, None)
                    case _:
                        pass
        return list(asked.values())

    def asking(self, ref: SessionRef, approval_id: str) -> Run | None:
        """The run of this session that goes on here and waits for this answer. Nothing is read for it."""
        live = (live for live in self._sessions.runs if live.execution.ref == ref)
        return next((one.execution.run for one in live if approval_id in one.execution.grammar.approvals), None)

    async def approval(self, run: Run, approval_id: str) -> tuple[ApprovalRequested, Answered | None]:
        """What was asked, and what was answered if it was."""
        live = self._sessions.live(run.run_id)
        if live is not None and approval_id in live.execution.grammar.approvals:  # perhaps not in the log yet
            return live.execution.grammar.approvals[approval_id], None
        requested: ApprovalRequested | None = None
        for record in await self._store.records_naming(run, approval_id):
            event = record.event
            if isinstance(event, ApprovalRequested) and event.approval_id == approval_id:
                requested = event
            if isinstance(event, ApprovalResolved) and event.approval_id == approval_id and requested is not None:
                return requested, Answered(event, record.at)
        if requested is None:
            raise ApprovalNotFound(f"run {run.run_id} has no approval {approval_id[:100]!r}")
        return requested, None

    async def _listen(self) -> None:
        async for signal in self._store.signals():
            live = self._sessions.live(signal.run_id)
            if live is None:
                continue  # it ended meanwhile
            match signal:
                case Cancel():
                    live.execution.stop(RunCancelled(reason=signal.reason))
                case Decide():
                    try:
                        live.context.decide(signal)
                    except RequestError as error:
                        log.info("the decision on approval %s does not count: %s", signal.approval_id, error)
