"""The asyncio client: one method for each operation of the HTTP interface.

It does not import the server. The command line and user programs call it; `sync_client` wraps it for programs
without asyncio.
"""

import os
import uuid
import weakref
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Self, TypedDict, Unpack, overload

import httpx
import msgspec

from limelight.client.backoff import Backoff
from limelight.client.http_transport import Transport, url_path
from limelight.client.models import (
    AgentInfo,
    Answer,
    ApprovalInfo,
    Gap,
    Me,
    Message,
    RunInfo,
    SessionInfo,
    State,
    ToolCall,
    ToolResult,
)
from limelight.client.record_stream import Connect, stream_records
from limelight.client.run import (
    CompleteRecords,
    IfBusy,
    Messages,
    Run,
    Values,
    decision_fields,
    is_terminal,
    request_body,
    start_run,
)
from limelight.client.session_socket import Socket, SocketFormat
from limelight.events import JsonValue, Record, RequestedDecision, SourceLink
from limelight.links import call_segment

DEFAULT_URL = "http://127.0.0.1:8000"
PAGE_SIZE = 100

SessionState = Literal["idle", "processing", "completed", "error", "expired"]


class _Agents(msgspec.Struct):
    agents: list[AgentInfo]


class _Sessions(msgspec.Struct):
    sessions: list[SessionInfo]
    next: str | None = None


class _State(msgspec.Struct):
    state: str


class _Messages(msgspec.Struct):
    messages: list[Message]
    more: bool = False


class _ChatMessage(msgspec.Struct):
    content: str


class _StructuredAnswer(msgspec.Struct):
    title: str = ""
    content: JsonValue = None
    sources: tuple[str, ...] = ()
    source_links: tuple[SourceLink, ...] = ()
    data: dict[str, Any] | None = None


class _Chat(msgspec.Struct):
    message: _ChatMessage
    run_id: str
    session_id: str
    state: str
    tools: tuple[ToolCall, ...] = ()
    answer: _StructuredAnswer | None = None


class ConnectOptions(TypedDict, total=False):
    """The options of `Client.connect`, except `format`, on which the type of the socket's items depends."""

    agent: str | None
    max_steps: int | None
    after: str | int | None


class Client:
    """A client of one server for one user. Use it as `async with`, or call `aclose` at the end.

    `timeout` is the number of seconds without a byte after which a connection counts as lost (the server sends a
    heartbeat every four); `give_up_seconds` is how long a stream tries to reconnect.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        user_id: str = "",
        user_name: str = "",
        timeout: float = 30.0,
        give_up_seconds: float = 60.0,
    ) -> None:
        key = os.environ.get("LIMELIGHT_API_KEY", "") if key is None else key
        self._transport = Transport(
            url or os.environ.get("LIMELIGHT_URL") or DEFAULT_URL, key, user_id, user_name, timeout
        )
        self._give_up_seconds = give_up_seconds
        self._sockets: weakref.WeakSet[Socket[Any]] = weakref.WeakSet()

    @property
    def url(self) -> str:
        return self._transport.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections. Runs continue."""
        await self._transport.aclose()
        for socket in list(self._sockets):
            await socket.aclose()

    async def me(self) -> Me:
        """Return the user and the scopes of the key."""
        return await self._transport.request_json("GET", "/auth/me", Me)

    async def agents(self) -> list[AgentInfo]:
        """Return the agents that the server offers."""
        return (await self._transport.request_json("GET", "/agents", _Agents)).agents

    async def start(
        self,
        messages: Messages | None = None,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
        input: Values | None = None,
        context: Values | None = None,
    ) -> Run:
        """Start a run. If the connection is lost, the request is repeated, which does not start a second run.

        `input` is the input object of an agent that takes one; `messages` may then be left out. `context` sets values
        of the agent's context that its settings allow.
        """
        return await self._start(request_body(messages, agent, session_id, if_busy, request_id, input, context))

    async def _start(self, body: dict[str, Any]) -> Run:
        return await start_run(self, self._transport, body, self._backoff())

    async def ask(
        self,
        text: Messages | None = None,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
        input: Values | None = None,
        context: Values | None = None,
    ) -> Answer:
        """Start a run, wait for its end and return its answer. A failed run raises ServerError with its code.

        The arguments are those of `start`. The client waits on a stream, whose heartbeats distinguish a long run from a
        dead connection, and then requests the complete answer.
        """
        body = request_body(text, agent, session_id, if_busy, request_id, input, context)
        await (await self._start(body)).wait()
        chat = await self._transport.request_json("POST", "/chat", _Chat, body={**body, "if_busy": "error"})
        structured = chat.answer or _StructuredAnswer()
        return Answer(
            content=chat.message.content,
            title=structured.title,
            sources=structured.sources,
            source_links=structured.source_links,
            value=structured.data or (None if isinstance(structured.content, str) else structured.content),
            run_id=chat.run_id,
            session_id=chat.session_id,
            state=chat.state,
            tools=chat.tools,
        )

    def follow(self, run_id: str, *, after: int = 0) -> AsyncGenerator[Record | Gap]:
        """Yield the Records of a run whose `seq` is above `after`, up to the end of the run."""
        connect = self._stream_opener("runs", run_id)
        return stream_records(connect, self._backoff(), after=after, is_last=is_terminal)

    def watch(self, session_id: str, *, after: int = 0) -> AsyncGenerator[Record | Gap]:
        """Yield the Records of a session whose `seq` is above `after`, over all its runs.

        Waits for new runs; never ends.
        """
        return stream_records(self._stream_opener("sessions", session_id), self._backoff(), after=after)

    def export(self, run_id: str) -> CompleteRecords:
        """Yield all Records of a run; waits for the end of a live run. Raises if some Records are no longer stored."""
        return CompleteRecords(self.follow(run_id))

    async def run(self, run_id: str) -> RunInfo:
        """Return the state of a run and its open approval requests."""
        return await self._transport.request_json("GET", url_path("runs", run_id), RunInfo)

    async def cancel(self, run_id: str, reason: str = "") -> str:
        """Stop a run and return its state. Does nothing if the run has ended."""
        path = url_path("runs", run_id, "cancel")
        return (await self._transport.request_json("POST", path, _State, body={"reason": reason})).state

    async def approval(self, run_id: str, approval_id: str) -> ApprovalInfo:
        """Return an approval request with its complete arguments, and the decision if there is one."""
        return await self._transport.request_json(
            "GET", url_path("runs", run_id, "approvals", approval_id), ApprovalInfo
        )

    async def decide(
        self,
        run_id: str,
        approval_id: str,
        decision: RequestedDecision,
        *,
        args: Mapping[str, Any] | None = None,
        reason: str = "",
        answer: JsonValue = None,
    ) -> str:
        """Answer an approval request and return the decision.

        `args` are the new arguments for `edit`, `answer` is the answer to a question for `respond`. Raises
        AlreadyDecided, Expired or NotOffered if the decision has no effect.
        """
        body = decision_fields(decision, args, reason, answer)
        path = url_path("runs", run_id, "approvals", approval_id)
        return (await self._transport.request_json("POST", path, _State, body=body)).state

    async def approve(self, run_id: str, approval_id: str) -> str:
        """Approve the call with the arguments that the agent has requested."""
        return await self.decide(run_id, approval_id, "approve")

    async def edit(self, run_id: str, approval_id: str, args: Mapping[str, Any]) -> str:
        """Approve the call with other arguments than the agent has requested."""
        return await self.decide(run_id, approval_id, "edit", args=args)

    async def reject(self, run_id: str, approval_id: str, reason: str = "") -> str:
        """Reject the call; the agent gets the reason."""
        return await self.decide(run_id, approval_id, "reject", reason=reason)

    async def respond(self, run_id: str, approval_id: str, answer: JsonValue) -> str:
        """Answer the question of a request that has an `answer_schema`."""
        return await self.decide(run_id, approval_id, "respond", answer=answer)

    async def result(self, run_id: str, call_id: str) -> ToolResult:
        """Return a tool call with its complete arguments and result."""
        path = f"{url_path('runs', run_id, 'tools')}/{call_segment(call_id)}"
        return await self._transport.request_json("GET", path, ToolResult)

    async def answer(self, run_id: str) -> str:
        """Return the complete answer of a run: its text, or JSON if the answer is not text."""
        return (await self._transport.request("GET", url_path("runs", run_id, "answer"))).decode("utf-8", "replace")

    async def artifact(self, artifact_id: str) -> bytes:
        """Return the bytes of a file that an agent made or a user attached."""
        return await self._transport.request("GET", url_path("artifacts", artifact_id))

    async def sessions(self, *, q: str = "", state: SessionState | None = None) -> AsyncGenerator[SessionInfo]:
        """Yield the sessions, last active first; `q` is a part of the title. Pages are fetched on demand."""
        params = {name: value for name, value in (("q", q), ("state", state), ("limit", PAGE_SIZE)) if value}
        while True:
            page = await self._transport.request_json("GET", "/sessions", _Sessions, params=params)
            for session in page.sessions:
                yield session
            if page.next is None:
                return
            params["after"] = page.next

    async def session(self, session_id: str) -> SessionInfo:
        """Return a session."""
        return await self._transport.request_json("GET", url_path("sessions", session_id), SessionInfo)

    async def rename(self, session_id: str, title: str) -> SessionInfo:
        """Change the title of a session."""
        path = url_path("sessions", session_id)
        return await self._transport.request_json("PATCH", path, SessionInfo, body={"title": title})

    async def delete(self, session_id: str) -> None:
        """Delete a session and everything in it. A live run is stopped first."""
        await self._transport.request("DELETE", url_path("sessions", session_id))

    async def open_session(self, agent: str | None = None, *, max_steps: int | None = None) -> State:
        """Create a session with an id from the server, for an agent, with a limit for the steps of each run."""
        body = {name: value for name, value in (("agent_type", agent), ("max_steps", max_steps)) if value is not None}
        return await self._transport.request_json("POST", "/api/v2/sessions", State, body=body)

    async def state(self, session_id: str) -> State:
        """Return the state of a session: whether it works, its newest run and the end of its log."""
        return await self._transport.request_json("GET", url_path("api", "v2", "sessions", session_id), State)

    async def messages(self, session_id: str, *, after: str = "0") -> AsyncGenerator[Message]:
        """Yield the complete messages of a session after a cursor, oldest first. Pages are fetched on demand."""
        more = True
        while more:
            page = await self._messages(session_id, {"after": after})
            for message in page.messages:
                after = message.cursor
                yield message
            more = page.more

    async def last_messages(
        self, session_id: str, limit: int | None = None, *, before: str | None = None
    ) -> list[Message]:
        """Return the newest complete messages of a session, or the last before a cursor, oldest first.

        Without a `limit` the server returns 100, or fewer if its own limit is lower.
        """
        params = {name: value for name, value in (("limit", limit), ("before", before)) if value is not None}
        return (await self._messages(session_id, params)).messages

    async def _messages(self, session_id: str, params: Mapping[str, Any]) -> _Messages:
        path = url_path("api", "v2", "sessions", session_id, "messages")
        return await self._transport.request_json("GET", path, _Messages, params=params)

    @overload
    def connect(
        self, session_id: str | None = None, *, format: Literal["v2"] = "v2", **options: Unpack[ConnectOptions]
    ) -> Socket[Message]: ...

    @overload
    def connect(
        self, session_id: str | None = None, *, format: Literal["records"], **options: Unpack[ConnectOptions]
    ) -> Socket[Record]: ...

    def connect(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        after: str | int | None = None,
        format: SocketFormat = "v2",
    ) -> Socket[Any]:
        """Return a socket of a session, for `async with`; connecting creates the session if it does not exist.

        The socket yields the live run from its start, or everything after `after`, as messages or as Records.
        """
        given = {"agent_type": agent, "max_steps": max_steps, "after": after, "format": format}
        params = {name: str(value) for name, value in given.items() if value is not None}
        session_id = session_id or f"ses_{uuid.uuid4().hex}"
        socket: Socket[Any] = Socket(self, self._transport, self._backoff(), session_id, params)
        self._sockets.add(socket)
        return socket

    def _backoff(self) -> Backoff:
        return Backoff(self._give_up_seconds)

    def _stream_opener(self, resource: str, resource_id: str) -> Connect:
        async def connect(after: int) -> httpx.Response | None:
            return await self._transport.open_stream("GET", url_path(resource, resource_id, "stream"), after=after)

        return connect
