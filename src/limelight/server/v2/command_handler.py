"""The half of a socket that hears: each message of the client, one after the other, also while a run goes on."""

import asyncio
from collections.abc import Callable

import msgspec

from limelight.dialects.base import Cursor
from limelight.errors import ApprovalNotFound, NotProcessing, QueueFull, RequestError
from limelight.messages import Message
from limelight.models import Decide, Run, SessionRef
from limelight.runs.hub import FrameBatch
from limelight.runs.queue import MAX_WAITING, QueuedRun, Request
from limelight.runs.viewer import Format
from limelight.server.request_schemas import MAX_REASON, MAX_REQUEST_ID
from limelight.server.runtime import Parts
from limelight.server.v2.commands import (
    FREE,
    AnyCommand,
    Approve,
    Cancel,
    GetMessages,
    GetState,
    Ping,
    Query,
    Resume,
    parse,
)
from limelight.server.v2.history import History, Wanted
from limelight.server.v2.open_session import check_after, known_session
from limelight.server.v2.replies import Accepted, Decided, MessagesEnd, Pong, State
from limelight.server.v2.sender import Gone, Line
from limelight.server.v2.session_info import session_info, steps_of
from limelight.sources.base import User

MAX_EARLIER = 3
"""So many runs before the newest are looked through for an approval: whoever decides late is not later than that."""


class Answering:
    """Answers the messages of one client about one session."""

    def __init__(
        self,
        parts: Parts,
        ref: SessionRef,
        user: User,
        format_: Format,
        line: Line,
        resume: Callable[[Cursor], None],
    ) -> None:
        self._parts = parts
        self._ref = ref
        self._user = user
        self._line = line
        self._resume = resume
        self._history = History(parts.store, ref, format_)
        self._beginning = 0
        """Queries that have not become runs yet."""

    async def answer(self, text: str | None) -> None:
        """One text frame; None is a binary one. Whatever is wrong is said, and never ends the socket."""
        try:
            await self._carry_out(text)
        except Gone:
            raise
        except Exception as error:
            await self._line.refuse(error, query_named(text))

    async def _carry_out(self, text: str | None) -> None:
        match command := await self._counted(text):
            case Ping():
                await self._line.tell(Pong())
            case GetState():
                await self._line.tell(
                    State(state=await session_info(self._parts, await known_session(self._parts, self._ref)))
                )
            case GetMessages():
                await self._tell_messages(command)
            case Query():
                await self._ask(command)
            case Cancel():
                run_id = await self._cancelled(command)
                await self._parts.control.cancel(run_id, command.reason[:MAX_REASON], self._user.user_id)
            case Approve():
                await self._decide(command)
            case Resume():
                cursor = Cursor.parse(str(command.after))
                check_after(cursor, (await known_session(self._parts, self._ref)).last_seq)
                self._resume(cursor)

    async def _counted(self, text: str | None) -> AnyCommand:
        """What it says. It is a request like any other, also if it is nonsense, unless it is one that is free."""
        try:
            command = parse(text, self._parts.settings.limits.message_bytes)
        except RequestError:
            await self._parts.rates.count(self._user.user_id)
            raise
        if not (isinstance(command, FREE) or self._answers(command)):
            await self._parts.rates.count(self._user.user_id)
        return command

    def _answers(self, command: AnyCommand) -> bool:
        """Whether it answers what is asked now. Any other question has to be looked for in the log."""
        return isinstance(command, Approve) and self._parts.control.asking(self._ref, command.approval_id) is not None

    async def _live_run(self) -> Run:
        session = await known_session(self._parts, self._ref)
        run = None if session.run_id is None else await self._parts.store.run(session.run_id)
        if run is None or not run.live:
            raise NotProcessing("Session is not processing a query")
        return run

    async def _cancelled(self, command: Cancel) -> str:
        """The run that is to be stopped, which may not have begun."""
        if command.request_id:
            waiting = self._parts.queues.find_request(self._ref, command.request_id)
            run = waiting or await self._parts.store.requested(self._ref, command.request_id)
            if isinstance(run, QueuedRun) or (run is not None and run.live):
                return run.run_id
            raise NotProcessing("Session is not processing that query")
        return (await self._live_run()).run_id

    async def _tell_messages(self, command: GetMessages) -> None:
        after, before = (None if cursor is None else str(cursor) for cursor in (command.after, command.before))
        limit = None if command.limit is msgspec.UNSET else command.limit
        wanted = Wanted(limit, after, before)
        page = await self._history.page(wanted, self._parts.settings.limits.session_messages)
        await self._line.show(FrameBatch(page.messages), MessagesEnd(count=len(page.messages), more=page.more))

    async def _ask(self, command: Query) -> None:
        """Begin the run, or wait for its turn while other messages are heard."""
        session = await known_session(self._parts, self._ref)
        request = Request(
            agent=self._parts.agents.get(session.agent),
            ref=self._ref,
            user=self._user,
            messages=[Message({"role": "user", "content": command.query})],
            if_busy=command.if_busy,
            request_id=command.request_id,
            max_steps=steps_of(self._parts, session),
            creates_session=False,
        )
        if self._beginning >= MAX_WAITING:
            raise QueueFull(f"{MAX_WAITING} queries of this socket wait already")
        load = self._parts.loads.of(self._ref.owner)
        load.carry(len(command.query))
        place = QueuedRun.of(request)
        place.released.add_done_callback(lambda _: load.release())
        beginning = self._parts.spawn(self._begin(place, command))
        await asyncio.wait({beginning, place.queued}, return_when=asyncio.FIRST_COMPLETED)

    async def _begin(self, place: QueuedRun, command: Query) -> None:
        self._beginning += 1
        try:
            begun = await self._parts.sessions.begin(place)
        except Exception as error:
            await self._line.refuse(error, command.request_id)
        else:
            if command.request_id:
                await self._line.tell(Accepted(request_id=command.request_id, run_id=begun.run.run_id))
        finally:
            self._beginning -= 1

    async def _decide(self, command: Approve) -> None:
        reason = command.reason[:MAX_REASON]
        for run in await self._askers(command.approval_id):
            decision = Decide(
                run.run_id, command.approval_id, command.decision, command.args, reason, self._user.user_id
            )
            try:
                await self._parts.control.decide(run, decision)
            except ApprovalNotFound:
                continue
            await self._line.tell(Decided(approval_id=command.approval_id, decision=command.decision))
            return
        live = await self._live_run()
        raise ApprovalNotFound(f"run {live.run_id} has no approval {command.approval_id[:100]!r}")

    async def _askers(self, approval_id: str) -> list[Run]:
        """Who may have asked, newest first. If somebody else was faster, the run may be over, and the next one on."""
        asking = self._parts.control.asking(self._ref, approval_id)
        if asking is not None:
            return [asking]
        runs = await self._parts.store.runs(self._ref)
        return runs[: -2 - MAX_EARLIER : -1]


class _Named(msgspec.Struct):
    type: str = ""
    request_id: str = ""


def query_named(text: str | None) -> str:
    """The `request_id` of a query that was refused, also if it was refused before it was read as one."""
    try:
        named = msgspec.json.decode(text or "", type=_Named)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    return named.request_id if named.type == "query" and len(named.request_id) <= MAX_REQUEST_ID else ""
