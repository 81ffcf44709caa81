"""Runs that waited for a person when their process ended: they go on waiting, and resume with the answer.

Only agents whose framework has kept the state can do so; the log tells what was asked. Recovery asks here before it
seals a run.
"""

import logging
from collections.abc import Sequence

import msgspec

from limelight.errors import BadEvent
from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Record,
    RunStarted,
    ToolReady,
    ToolStarted,
)
from limelight.grammar import Grammar
from limelight.ids import now_ms
from limelight.log_context import ids
from limelight.messages import Message
from limelight.models import Run, RunOptions
from limelight.runs.agents import Agent, Agents
from limelight.runs.context import Asked, RunContext
from limelight.runs.engine import Execution
from limelight.runs.queries import records_of, whole_value
from limelight.runs.run_options import load_options
from limelight.runs.seal import LEASE_MS
from limelight.runs.sessions import Sessions
from limelight.sources.base import Turn, User
from limelight.stores.base import Store

log = logging.getLogger(__name__)


class Reopening:
    """Takes waiting runs over."""

    def __init__(self, store: Store, agents: Agents, sessions: Sessions) -> None:
        self._store = store
        self._agents = agents
        self._sessions = sessions

    async def reopen(self, run: Run) -> bool:
        """Go on with a run that waits, or leave it alone. False if it has to be sealed."""
        if run.state != "waiting":
            return False
        records = [record async for record in records_of(self._store, run)]
        if not _is_legal(records):
            return False
        so_far = [await self._whole(run, record.event) for record in records]
        asked = questions_in(so_far)
        if run.agent not in self._agents:
            return _may_wait(asked)  # another server, with that agent, may come before the time runs out
        agent = self._agents.get(run.agent)
        memory = await self._store.memory(run.ref, agent.name) if agent.source.resumes else None
        if memory is None or not memory.turns or memory.turns[-1].run_id != run.run_id:
            return False
        options = await load_options(self._store, run)
        now = now_ms()
        if await self._store.take_over(run.run_id, until=now + LEASE_MS, now=now):
            self._resume(agent, run, records, so_far, memory.key, options)
            about = ids(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent)
            log.warning("run %s goes on waiting for a decision", run.run_id, extra=about)
        return True

    def _resume(
        self,
        agent: Agent,
        run: Run,
        records: Sequence[Record],
        so_far: Sequence[AnyEvent],
        memory_key: str,
        options: RunOptions,
    ) -> None:
        async def life(execution: Execution, context: RunContext) -> None:
            execution.reopen(records)
            turn = Turn(
                messages=options.with_question(Message(role="user", content=_input(so_far))),
                context=context,
                memory_key=memory_key,
                max_steps=options.max_steps or agent.max_steps,
            )

            async def prepare() -> Turn:
                return turn

            await execution.live(None, lambda turn: agent.source.resume(turn, so_far), prepare)

        self._sessions.play(agent, run, User(run.ref.owner, options.user_name), life, questions_in(so_far))

    async def _whole(self, run: Run, event: AnyEvent) -> AnyEvent:
        """The event with all of its values: what people asked, decided on or edited comes back whole."""
        match event:
            case RunStarted() if event.truncated:
                whole = await whole_value(self._store, run, "input", "", event.input, cut=True)
                return msgspec.structs.replace(event, input=str(whole))
            case ToolStarted() | ToolReady() if event.truncated:
                kind, id_ = "args", event.call_id
            case ApprovalRequested() if event.truncated:
                kind, id_ = "approval", event.approval_id
            case ApprovalResolved() if event.truncated:
                kind, id_ = "edited", event.approval_id
            case _:
                return event
        return msgspec.structs.replace(event, args=await whole_value(self._store, run, kind, id_, event.args, cut=True))


def questions_in(so_far: Sequence[AnyEvent]) -> list[Asked]:
    """What a run waits for, with the answers that it has of the questions asked together.

    Those that were all answered before are over: the same words may be asked again, and need a new answer then.
    """
    together: dict[str, Asked] = {}
    for event in so_far:
        if isinstance(event, ApprovalRequested):
            if all(asked.answer is not None for asked in together.values()):
                together = {}
            together[event.approval_id] = Asked(event)
        elif isinstance(event, ApprovalResolved) and event.approval_id in together:
            together[event.approval_id] = Asked(together[event.approval_id].request, event)
    return list(together.values())


def _is_legal(records: Sequence[Record]) -> bool:
    """Whether this version's grammar takes the log; a run that it does not take can only be sealed."""
    grammar = Grammar()
    try:
        for record in records:
            grammar.check(record.event)
    except BadEvent:
        return False
    return True


def _may_wait(asked: Sequence[Asked]) -> bool:
    now = now_ms()
    return any(a.answer is None and (a.request.expires_at is None or a.request.expires_at > now) for a in asked)


def _input(so_far: Sequence[AnyEvent]) -> str:
    return next((event.input for event in so_far if isinstance(event, RunStarted)), "")
