"""Runs that this client has started: the request to start a run, its Records and answer, cancel, decisions.

The request has its own id and names the session, so that the server recognises a repeated request and does not start a
second run. `Client.start` calls `start_run`.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import httpx
import msgspec

from limelight.client.backoff import Backoff
from limelight.client.errors import Busy, ClientError, ServerError
from limelight.client.http_transport import Transport, url_path
from limelight.client.models import Gap
from limelight.client.record_stream import stream_records
from limelight.events import (
    TERMINAL_TYPES,
    Decision,
    FinalAnswer,
    JsonValue,
    Record,
    RunCancelled,
    RunFailed,
    RunFinished,
    TextDelta,
)

if TYPE_CHECKING:
    from limelight.client.client import Client

Messages = str | Sequence[Mapping[str, Any]]
"""A message of the user, or a complete conversation in OpenAI's format."""
IfBusy = Literal["error", "cancel", "wait"]


class RunRequest(NamedTuple):
    """The body of a request that starts a run."""

    messages: list[Mapping[str, Any]]
    agent: str | None
    session_id: str
    if_busy: IfBusy
    request_id: str

    @classmethod
    def create(
        cls, messages: Messages, agent: str | None, session_id: str | None, if_busy: IfBusy, request_id: str | None
    ) -> Self:
        """Create a request. Generates missing ids, so that the server recognises the request when it is repeated."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        session_id = session_id or f"ses_{uuid.uuid4().hex}"
        return cls(list(messages), agent, session_id, if_busy, request_id or f"req_{uuid.uuid4().hex}")

    def body(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


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


class DecisionMethods(ABC):
    """The methods that answer an approval request of one run or one session."""

    @abstractmethod
    async def decide(
        self, approval_id: str, decision: Decision, *, args: Mapping[str, Any] | None = None, reason: str = ""
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
        """Wait for the end. Raises if the run failed, or was cancelled before it began."""
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
        self, approval_id: str, decision: Decision, *, args: Mapping[str, Any] | None = None, reason: str = ""
    ) -> str:
        """Answer an approval request, see `Client.decide`."""
        return await self._client.decide(self.run_id, approval_id, decision, args=args, reason=reason)

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


async def start_run(client: "Client", transport: Transport, request: RunRequest, backoff: Backoff) -> Run:
    """Send the request and return the run with the stream that the response opens."""
    response = await _post(transport, request, backoff)
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
    return Run(client, run_id, response.headers.get("x-session-id", request.session_id), records)


async def _post(transport: Transport, request: RunRequest, backoff: Backoff) -> httpx.Response:
    """Send the request, and repeat it if the connection is lost. Raises at once if the server cannot be reached."""
    was_cut = False
    while True:
        try:
            response = await transport.open_stream("POST", "/chat/stream", body=request.body())
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
