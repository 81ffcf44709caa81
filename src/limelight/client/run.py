"""Runs that this client has started: the request to start a run, its Records and answer, cancel, decisions.

The request has its own id and names the session, so that the server recognises a repeated request and does not start a
second run.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import httpx
import msgspec

from limelight.client.backoff import Backoff
from limelight.client.errors import Busy, ClientError, ServerError
from limelight.client.http_transport import Transport, url_path
from limelight.client.models import Gap
from limelight.client.record_stream import stream_records
from limelight.events import (
    TERMINAL_TYPES,
    FinalAnswer,
    JsonValue,
    Record,
    RequestedDecision,
    RunCancelled,
    RunFailed,
    RunFinished,
    TextDelta,
)

if TYPE_CHECKING:
    from limelight.client.client import Client

Messages = str | Sequence[Mapping[str, Any]]
"""A message of the user, or a complete conversation in OpenAI's format."""
Values = Mapping[str, Any]
"""The input object or the context of an agent that takes them."""
IfBusy = Literal["error", "cancel", "wait"]


def request_body(
    messages: Messages | None,
    agent: str | None,
    session_id: str | None,
    if_busy: IfBusy,
    request_id: str | None,
    input: Values | None = None,
    context: Values | None = None,
) -> dict[str, Any]:
    """Return the body of a request that starts a run. It contains a request id, so that it can be sent again safely."""
    if messages is None and input is None:
        raise ValueError("a run needs messages or an input")
    asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    body = {
        "messages": None if asked is None else list(asked),
        "agent": agent,
        "session_id": session_id or f"ses_{uuid.uuid4().hex}",
        "if_busy": if_busy,
        "request_id": request_id or f"req_{uuid.uuid4().hex}",
        "input": input,
        "context": context,
    }
    return {name: value for name, value in body.items() if value is not None}


class CompleteRecords:
    """An async iterator of Records that raises if some Records are no longer stored."""

    def __init__(self, items: AsyncGenerator[Record | Gap]) -> None:
        self._items = items

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        item = await anext(self._items)
        if isinstance(item, Gap):
            raise ClientError(f"Records {item.first} to {item.last} are no longer kept", code="gap")
        return item

    async def aclose(self) -> None:
        """Close the stream. The run continues."""
        await self._items.aclose()


def decision_fields(
    decision: RequestedDecision, args: Mapping[str, Any] | None, reason: str, answer: JsonValue
) -> dict[str, Any]:
    """Return the JSON fields of a decision, as the HTTP interface and the socket expect them."""
    fields: dict[str, Any] = {"decision": decision, "reason": reason}
    if args is not None:
        fields["args"] = args
    if decision == "respond":
        fields["answer"] = answer
    return fields


class DecisionMethods(ABC):
    """Base class of `Run` and `Socket`: the methods that answer an approval request."""

    @abstractmethod
    async def decide(
        self,
        approval_id: str,
        decision: RequestedDecision,
        *,
        args: Mapping[str, Any] | None = None,
        reason: str = "",
        answer: JsonValue = None,
    ) -> str:
        """Answer an approval request, see `Client.decide`."""

    async def approve(self, approval_id: str) -> str:
        """Approve the call with the arguments that the agent has requested."""
        return await self.decide(approval_id, "approve")

    async def edit(self, approval_id: str, args: Mapping[str, Any]) -> str:
        """Approve the call with other arguments than the agent has requested."""
        return await self.decide(approval_id, "edit", args=args)

    async def reject(self, approval_id: str, reason: str = "") -> str:
        """Reject the call; the agent gets the reason."""
        return await self.decide(approval_id, "reject", reason=reason)

    async def respond(self, approval_id: str, answer: JsonValue) -> str:
        """Answer the question of a request that has an `answer_schema`."""
        return await self.decide(approval_id, "respond", answer=answer)


class Run(CompleteRecords, DecisionMethods):
    """An async iterator of the Records of a run. Leaving the loop does not stop the run; `cancel` does."""

    def __init__(self, client: "Client", run_id: str, session_id: str, records: AsyncGenerator[Record | Gap]) -> None:
        super().__init__(records)
        self.run_id = run_id
        self.session_id = session_id
        self.end: RunFinished | RunFailed | RunCancelled | None = None
        """The terminal event, once it has arrived."""
        self.began = False
        """Whether the run has begun. A request that was cancelled or refused while queued has no run and no log."""
        self._client = client
        self._answer: FinalAnswer | None = None
        self._message_id = ""
        self._text: list[str] = []

    async def __anext__(self) -> Record:
        record = await super().__anext__()
        self._apply(record)
        return record

    async def text(self) -> str:
        """Wait for the end and return the answer, or the partial text of a cancelled run. Raises if the run failed."""
        await self.wait()
        if self._answer is None:
            return "".join(self._text)
        if self._answer.truncated:
            return await self._client.answer(self.run_id)
        return text_of(self._answer.content)

    async def wait(self) -> None:
        """Wait for the end of the run. Raises if it failed, or was cancelled before it began."""
        async for _ in self:
            pass
        if isinstance(self.end, RunFailed):
            raise ServerError(self.end.message, status=502, code=self.end.code, run_id=self.run_id)
        if self.end is not None and not self.began:
            raise Busy("the request was stopped while it waited for the session", code="session_busy")

    async def cancel(self, reason: str = "") -> str:
        """Stop the run and return its state."""
        return await self._client.cancel(self.run_id, reason)

    async def decide(
        self,
        approval_id: str,
        decision: RequestedDecision,
        *,
        args: Mapping[str, Any] | None = None,
        reason: str = "",
        answer: JsonValue = None,
    ) -> str:
        """Answer an approval request, see `Client.decide`."""
        return await self._client.decide(self.run_id, approval_id, decision, args=args, reason=reason, answer=answer)

    def _apply(self, record: Record) -> None:
        event = record.event
        if record.seq:
            self.began = True
            self.run_id = record.run_id  # for a repeated request the header may name another run
        match event:
            case TextDelta(agent_id=""):
                if event.message_id != self._message_id:
                    self._message_id, self._text = event.message_id, []
                self._text.append(event.text)
            case FinalAnswer():
                self._answer = event
            case RunFinished() | RunFailed() | RunCancelled():
                self.end = event
            case _:
                pass


async def start_run(client: "Client", transport: Transport, body: dict[str, Any], backoff: Backoff) -> Run:
    """Start a run on the server and return it. The response of the server is the stream of its Records."""
    response = await _post(transport, body, backoff)
    run_id = response.headers.get("x-run-id", "")

    async def connect(after: int) -> httpx.Response | None:
        return await transport.open_stream("GET", url_path("runs", run_id, "stream"), after=after)

    def is_last(record: Record) -> bool:
        nonlocal run_id
        run_id = record.run_id  # for a repeated request the header may name another run
        return is_terminal(record)

    records = stream_records(connect, backoff, response=response, is_last=is_last)
    # After its first step the generator owns the response: if the caller drops the generator, both are closed.
    await anext(records)
    return Run(client, run_id, response.headers.get("x-session-id", body["session_id"]), records)


async def _post(transport: Transport, body: dict[str, Any], backoff: Backoff) -> httpx.Response:
    """Send the request that starts a run, and repeat it if the connection is lost.

    Raises at once if the server cannot be reached.
    """
    was_cut = False
    while True:
        try:
            response = await transport.open_stream("POST", "/chat/stream", body=body)
            if response is None:
                raise transport.not_limelight("it answered POST /chat/stream with 204")
            return response
        except (httpx.ConnectError, httpx.ConnectTimeout, ServerError) as error:
            if not was_cut:
                if isinstance(error, ServerError):
                    raise
                raise transport.connection_lost(error) from error
            cause: Exception = error
        except httpx.TransportError as error:
            was_cut, cause = True, error
        await backoff.wait(cause)


def is_terminal(record: Record) -> bool:
    return isinstance(record.event, TERMINAL_TYPES)


def text_of(value: JsonValue) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
