"""The half of a socket that hears: each message of the client, one after the other, also while a run goes on."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from limelight.dialects.base import Cursor
from limelight.errors import BadCursor, BadRequest, LimelightError, NotProcessing, SessionNotFound
from limelight.messages import Message
from limelight.runs.ids import sortable_id
from limelight.runs.sessions import Request, StoppedInQueue, Waiting
from limelight.runs.viewer import Format
from limelight.server.parts import Parts
from limelight.server.v2.commands import Approve, Cancel, GetMessages, GetState, Ping, Query, Resume, parse
from limelight.server.v2.history import History
from limelight.server.v2.line import Gone, Line
from limelight.server.v2.replies import Accepted, Decided, Error, MessagesEnd, Pong, State, error_of
from limelight.server.v2.state import session_info, steps_of
from limelight.sources.base import User
from limelight.stores.base import Decide, Run, Session, SessionRef

log = logging.getLogger(__name__)
MAX_REASON = 500


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

    async def answer(self, text: str | None) -> None:
        """One text frame; None is a binary one. Whatever is wrong is said, and never ends the socket."""
        try:
            await self._carry_out(text)
        except LimelightError as error:
            await self._line.tell(error_of(error))
        except Gone:
            raise
        except Exception as error:
            error_id = sortable_id("err_")
            log.error("a message to session %s broke, %s", self._ref.session_id, error_id, exc_info=error)
            message = f"Processing error: something broke here; the server's log has the details under {error_id}"
            await self._line.tell(Error(message=message, error_code="internal"))

    async def _carry_out(self, text: str | None) -> None:
        match command := parse(text, self._parts.settings.limits.message_bytes):
            case Ping():
                await self._line.tell(Pong())
            case GetState():
                await self._line.tell(State(state=await session_info(self._parts, await self._session())))
            case GetMessages():
                await self._tell_messages(command)
            case Query():
                await self._ask(command)
            case Cancel():
                run = await self._live_run()
                await self._parts.control.cancel(run.run_id, command.reason[:MAX_REASON], self._user.user_id)
            case Approve():
                await self._decide(command)
            case Resume():
                self._resume(await self._cursor(command.after, "after"))

    async def _session(self) -> Session:
        session = await self._parts.store.session(self._ref)
        if session is None:
            raise SessionNotFound("Session not found")
        return session

    async def _live_run(self) -> Run:
        session = await self._session()
        run = None if session.run_id is None else await self._parts.store.run(session.run_id)
        if run is None or not run.live:
            raise NotProcessing("Session is not processing a query")
        return run

    async def _cursor(self, value: str | int, name: str) -> Cursor:
        cursor = Cursor.parse(str(value))
        last_seq = (await self._session()).last_seq
        if cursor.seq > last_seq:
            raise BadCursor(f"the session's log ends at {last_seq}: {name} is from another one", path=name)
        return cursor

    async def _tell_messages(self, command: GetMessages) -> None:
        high = self._parts.settings.limits.session_messages
        if not 1 <= command.limit <= high:
            raise BadRequest(f"limit is a whole number from 1 to {high}", path="limit")
        if command.after is not None:
            page = await self._history.after(command.limit, await self._cursor(command.after, "after"))
        else:
            before = None if command.before is None else Cursor.parse(str(command.before))
            page = await self._history.last(command.limit, before)
        await self._line.show(page.messages, MessagesEnd(count=len(page.messages), more=page.more))

    async def _ask(self, command: Query) -> None:
        """Begin the run, or wait for its turn while other messages are heard."""
        session = await self._session()
        request = Request(
            agent=self._parts.agents.get(session.agent),
            ref=self._ref,
            user=self._user,
            messages=[Message({"role": "user", "content": command.query})],
            if_busy=command.if_busy,
            request_id=command.request_id,
            max_steps=steps_of(self._parts, session),
        )
        place = self._parts.sessions.place(request)
        beginning = self._parts.spawn(self._begin(place, command))
        await asyncio.wait({beginning, place.queued}, return_when=asyncio.FIRST_COMPLETED)

    async def _begin(self, place: Waiting, command: Query) -> None:
        try:
            begun = await self._parts.sessions.begin(place)
        except StoppedInQueue:
            stopped = Error(message="Query was stopped while it waited", error_code="session_busy")
            stopped.request_id = command.request_id or msgspec.UNSET
            await self._line.tell(stopped)
        except LimelightError as error:
            await self._line.tell(error_of(error, command.request_id))
        else:
            if command.request_id:
                await self._line.tell(Accepted(request_id=command.request_id, run_id=begun.run.run_id))

    async def _decide(self, command: Approve) -> None:
        run = await self._live_run()
        reason = command.reason[:MAX_REASON]
        decision = Decide(run.run_id, command.approval_id, command.decision, command.args, reason, self._user.user_id)
        await self._parts.control.decide(run, decision)
        await self._line.tell(Decided(approval_id=command.approval_id, decision=command.decision))
