"""Commands that clients send on a socket: their schemas, their parser, and the handler that executes them."""

import asyncio
from collections.abc import Callable
from typing import Any, cast, get_args

import msgspec

from limelight.errors import (
    ApprovalNotFound,
    BadJson,
    BadRequest,
    BodyTooLarge,
    InvalidBody,
    NotProcessing,
    QueueFull,
    RequestError,
    UnknownMessageType,
)
from limelight.events import JsonValue, RequestedDecision
from limelight.json_values import json_text
from limelight.messages import Message
from limelight.models import Cursor, Run
from limelight.runs.hub import FrameBatch
from limelight.runs.limits import MAX_QUEUED
from limelight.runs.queue import IfBusy, QueuedRun, Request
from limelight.runs.run_input import checked_input, question_for
from limelight.server.endpoint import check_cursor, check_decision, check_request_id, decision_of, validate
from limelight.server.request_body import SIGNAL_BYTES, decode_json
from limelight.server.schemas import MAX_REASON, MAX_REQUEST_ID
from limelight.server.v2.message_history import History
from limelight.server.v2.replies import Accepted, Decided, MessagesEnd, Pong, State
from limelight.server.v2.sender import ClientDisconnected, SocketContext
from limelight.server.v2.sessions import get_session, max_steps_of, session_info

MAX_EARLIER_RUNS = 3
"""Number of runs before the newest in which the approval of a decision is searched, because it may come late."""


class Command(msgspec.Struct, kw_only=True, tag_field="type"):
    """A message that a client sends on a socket. Unknown keys are ignored."""


class Query(Command, tag="query"):
    """Ask the agent. If a run is live, `if_busy` decides: `error` refuses the query, `cancel` stops that run, and
    `wait` waits for its end."""

    query: str = ""
    input: dict[str, Any] | None = None
    """An input object, for an agent that takes one. The query may then be empty."""
    context: dict[str, Any] | None = None
    """Values of the agent's context, if its settings allow them."""
    if_busy: IfBusy = "error"
    request_id: str = ""


class Ping(Command, tag="ping"):
    """Check the connection. The server answers with `pong`."""


class GetMessages(Command, tag="get_messages"):
    """Get the newest messages, or those before or after a cursor. `messages_end` follows. The default limit is 100."""

    limit: int | msgspec.UnsetType = msgspec.UNSET
    before: str | int | None = None
    after: str | int | None = None


class GetState(Command, tag="get_state"):
    """Get the state of the session. The server answers with `state`."""


class Cancel(Command, tag="cancel"):
    """Stop the live run or, with a `request_id`, the run of that query, even if it is queued."""

    reason: str = ""
    request_id: str = ""


class Approve(Command, tag="approve"):
    """Decide on an approval: approve, edit with new `args`, reject with a `reason`, or respond with an `answer`."""

    approval_id: str
    decision: RequestedDecision = "approve"
    args: dict[str, Any] | None = None
    reason: str = ""
    answer: JsonValue | msgspec.UnsetType = msgspec.UNSET


class Resume(Command, tag="resume"):
    """Continue with the messages after this cursor, as after a reconnect."""

    after: str | int


AnyCommand = Query | Ping | GetMessages | GetState | Cancel | Approve | Resume
COMMAND_TYPES: dict[str, type[AnyCommand]] = {
    str(command.__struct_config__.tag): command for command in get_args(AnyCommand)
}
UNCOUNTED = (Ping, Cancel)
"""Commands that do not count toward the rate limit, so that it refuses neither a ping nor a Stop. Decisions on an open
approval do not count either."""
ALLOWED_VALUES = {
    "if_busy": "if_busy is error, cancel or wait",
    "decision": "decision is approve, edit, reject or respond",
}


def parse(text: str | None, limit: int) -> AnyCommand:
    """Parse a command from the text of a message; None means a binary one. Raises the RequestError for the client."""
    if text is None:
        raise BadRequest("Binary frames are not understood: send JSON as text")
    if len(text) > limit or len(data := text.encode("utf-8", "replace")) > limit:
        raise BodyTooLarge(f"Message is larger than {limit} bytes")
    try:
        value = decode_json(data)
    except BadJson as error:
        raise BadJson("Invalid JSON") from error
    if not isinstance(value, dict):
        raise BadRequest('Message must be a JSON object like {"type": "ping"}')
    command = cast("dict[str, Any]", value)
    kind = command.get("type")
    if not isinstance(kind, str) or kind not in COMMAND_TYPES:
        raise UnknownMessageType(f"Unknown message type: {str(kind)[:100]}")
    return _validate(command, kind)


def _validate(value: dict[str, Any], kind: str) -> AnyCommand:
    is_asked = isinstance(value.get("query"), str) and value["query"].strip()
    if kind == "query" and not is_asked and not isinstance(value.get("input"), dict):
        raise InvalidBody("Query is required", path="query")
    try:
        command = validate(value, COMMAND_TYPES[kind])
    except InvalidBody as error:
        field = error.errors[0][0] if error.errors else ""
        text = ALLOWED_VALUES.get(field) if "enum" in error.detail else f"{field}: {error.detail}"
        raise InvalidBody(text or error.detail, path=field) from error
    if isinstance(command, Query):
        check_request_id(command.request_id)
    if isinstance(command, Approve):
        check_decision(command)
    return command


class CommandHandler:
    """Executes the commands that one socket receives, one at a time, also while a run is live."""

    def __init__(self, context: SocketContext, resume: Callable[[Cursor], None]) -> None:
        self._runtime = context.runtime
        self._ref = context.ref
        self._user = context.user
        self._sender = context.sender
        self._resume = resume
        self._history = History(self._runtime.store, self._ref, context.format)
        self._starting = 0
        """Number of queries of this socket whose runs have not begun."""

    async def handle(self, text: str | None) -> None:
        """Execute the command in the text of a message; None means a binary message. Send errors to the client.

        Raises only ClientDisconnected.
        """
        try:
            await self._execute(text)
        except ClientDisconnected:
            raise
        except Exception as error:
            await self._sender.send_error(error, query_request_id(text))

    async def _execute(self, text: str | None) -> None:
        match command := await self._parse_and_count(text):
            case Ping():
                await self._sender.send(Pong())
            case GetState():
                info = await session_info(self._runtime, await get_session(self._runtime, self._ref))
                await self._sender.send(State(state=info))
            case GetMessages():
                await self._send_messages(command)
            case Query():
                await self._start_run(command)
            case Cancel():
                run_id = await self._run_to_cancel(command)
                await self._runtime.control.cancel(run_id, command.reason[:MAX_REASON], self._user.user_id)
            case Approve():
                await self._decide(command)
            case Resume():
                cursor = Cursor.parse(str(command.after))
                check_cursor(cursor, (await get_session(self._runtime, self._ref)).last_seq)
                self._resume(cursor)

    async def _parse_and_count(self, text: str | None) -> AnyCommand:
        """Parse a command and count it for the rate limit, unless it is exempt. An invalid command counts too."""
        try:
            command = parse(text, self._runtime.settings.limits.message_bytes)
        except RequestError:
            await self._count()
            raise
        if not (isinstance(command, UNCOUNTED) or self._decides_open_approval(command)):
            await self._count()
        return command

    async def _count(self) -> None:
        """Count a command toward the rate limit. A refusal is not delayed, as a Stop may follow on the same socket."""
        await self._runtime.rate_limiter.count(self._user.user_id, is_delayed=False)

    def _decides_open_approval(self, command: AnyCommand) -> bool:
        """Whether a command decides on an open approval of the session's live run. Checked without reading the log."""
        return (
            isinstance(command, Approve)
            and self._runtime.control.live_run_with_approval(self._ref, command.approval_id) is not None
        )

    async def _live_run(self) -> Run:
        session = await get_session(self._runtime, self._ref)
        run = None if session.run_id is None else await self._runtime.store.run(session.run_id)
        if run is None or not run.live:
            raise NotProcessing("Session is not processing a query")
        return run

    async def _run_to_cancel(self, command: Cancel) -> str:
        """Return the id of the live or queued run that a command stops. Raises NotProcessing if there is none."""
        if command.request_id:
            queued = self._runtime.queues.find_request(self._ref, command.request_id)
            run = queued or await self._runtime.store.requested(self._ref, command.request_id)
            if isinstance(run, QueuedRun) or (run is not None and run.live):
                return run.run_id
            raise NotProcessing("Session is not processing that query")
        return (await self._live_run()).run_id

    async def _send_messages(self, command: GetMessages) -> None:
        after, before = (None if cursor is None else str(cursor) for cursor in (command.after, command.before))
        limit = None if command.limit is msgspec.UNSET else command.limit
        max_limit = self._runtime.settings.limits.session_messages
        budget, owner = self._runtime.response_budget, self._ref.owner
        async with budget.one_at_a_time(owner):
            page = await self._history.page(max_limit, limit=limit, after=after, before=before)
        with budget.counted(owner, sum(len(frame.payload) for frame in page.messages)):
            end = MessagesEnd(count=len(page.messages), more=page.more)
            await self._sender.send_frames(FrameBatch(page.messages), end)

    async def _start_run(self, command: Query) -> None:
        """Start the run of a query. Return when the run has begun, was refused or is queued."""
        session = await get_session(self._runtime, self._ref)
        agent, asks = self._runtime.agents.get(session.agent), bool(command.query.strip())
        is_new = session.run_id is None
        run_input = checked_input(agent, command.input, command.context, asks=asks, is_new=is_new)
        question = Message({"role": "user", "content": command.query}) if asks else question_for(command.input or {})
        request = Request(
            agent=agent,
            ref=self._ref,
            user=self._user,
            messages=[question],
            input=run_input,
            if_busy=command.if_busy,
            request_id=command.request_id,
            max_steps=max_steps_of(self._runtime, session),
            creates_session=False,
        )
        if self._starting >= MAX_QUEUED:
            raise QueueFull(f"{MAX_QUEUED} queries of this socket wait already")
        reservation = self._runtime.body_budget.reserve(self._ref.owner)
        reservation.resize(len(command.query) + _size_of(command.input) + _size_of(command.context))
        queued = QueuedRun.of(request)
        queued.released.add_done_callback(lambda _: reservation.release())
        begin = self._runtime.spawn(self._begin(queued, command))
        await asyncio.wait({begin, queued.queued}, return_when=asyncio.FIRST_COMPLETED)

    async def _begin(self, queued: QueuedRun, command: Query) -> None:
        self._starting += 1
        try:
            begun = await self._runtime.sessions.begin(queued)
        except Exception as error:
            await self._sender.send_error(error, command.request_id)
        else:
            if command.request_id:
                await self._sender.send(Accepted(request_id=command.request_id, run_id=begun.run.run_id))
        finally:
            self._starting -= 1

    async def _decide(self, command: Approve) -> None:
        reason = command.reason[:MAX_REASON]
        for run in await self._runs_that_may_ask(command.approval_id):
            decision = decision_of(run.run_id, command.approval_id, command, reason, self._user.user_id)
            try:
                await self._runtime.control.decide(run, decision)
            except ApprovalNotFound:
                continue
            await self._sender.send(Decided(approval_id=command.approval_id, decision=command.decision))
            return
        live = await self._live_run()
        raise ApprovalNotFound(f"run {live.run_id} has no approval {command.approval_id[:100]!r}")

    async def _runs_that_may_ask(self, approval_id: str) -> list[Run]:
        """Return the runs that may have requested an approval, newest first.

        The newest run is not enough: if another client has already decided, the run may have ended and a later run may
        be live.
        """
        asking = self._runtime.control.live_run_with_approval(self._ref, approval_id)
        if asking is not None:
            return [asking]
        runs = await self._runtime.store.runs(self._ref)
        return runs[: -2 - MAX_EARLIER_RUNS : -1]


def _size_of(values: dict[str, Any] | None) -> int:
    """Return the number of bytes of values as JSON."""
    return len(json_text(values)) if values else 0


class _QueryId(msgspec.Struct):
    type: str = ""
    request_id: str = ""


class _Tagged(msgspec.Struct):
    type: str = ""


def is_signal(text: str | None) -> bool:
    """Whether the text of a message is a Stop or a decision, by its type. Texts over SIGNAL_BYTES are not examined."""
    if text is None or len(text) > SIGNAL_BYTES:
        return False
    try:
        return msgspec.json.decode(text, type=_Tagged).type in ("cancel", "approve")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def query_request_id(text: str | None) -> str:
    """Return the `request_id` of a query, even if the query is otherwise invalid; "" if there is none."""
    try:
        query = msgspec.json.decode(text or "", type=_QueryId)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    return query.request_id if query.type == "query" and len(query.request_id) <= MAX_REQUEST_ID else ""
