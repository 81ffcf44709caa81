"""The client: one method for each thing that the server offers.

It speaks HTTP with a server, wherever that is, and must not import any part of it. The command line and anybody's
program are the callers; `sync` wraps it for those who do not use asyncio.
"""

import os
import uuid
import weakref
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Self, overload

import httpx
import msgspec

from limelight.client.backoff import Patience
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
from limelight.client.record_stream import Connect, resuming
from limelight.client.run import Run, Whole, ends
from limelight.client.run_request import RECORDS, Asking, IfBusy, Messages, asking, starting
from limelight.client.socket import Socket, SocketFormat
from limelight.client.transport import Wire, part
from limelight.events import Decision, JsonValue, Record

DEFAULT_URL = "http://127.0.0.1:8000"
PAGE = 100

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


class _Said(msgspec.Struct):
    content: str


class _Structured(msgspec.Struct):
    title: str = ""
    content: JsonValue = None
    sources: tuple[str, ...] = ()


class _Chat(msgspec.Struct):
    message: _Said
    run_id: str
    session_id: str
    state: str
    tools: tuple[ToolCall, ...] = ()
    answer: _Structured | None = None


class Client:
    """A server, seen by one user. Use it as `async with`, or call `aclose` at the end.

    `timeout` is how many seconds may pass without a byte before a connection counts as cut (the server sends a
    heartbeat every four); `give_up_seconds` how long a stream tries to come back.
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
        self._wire = Wire(url or os.environ.get("LIMELIGHT_URL") or DEFAULT_URL, key, user_id, user_name, timeout)
        self._give_up_seconds = give_up_seconds
        self._sockets: weakref.WeakSet[Socket[Any]] = weakref.WeakSet()

    @property
    def url(self) -> str:
        return self._wire.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all connections. Runs go on."""
        await self._wire.aclose()
        for socket in list(self._sockets):
            await socket.aclose()

    async def me(self) -> Me:
        """Who you are, and what your key allows."""
        return await self._wire.call("GET", "/auth/me", Me)

    async def agents(self) -> list[AgentInfo]:
        """What the server offers."""
        return (await self._wire.call("GET", "/agents", _Agents)).agents

    async def start(
        self,
        messages: Messages,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
    ) -> Run:
        """Begin a run. If the connection is cut meanwhile, it is asked for again, which does not begin a second one."""
        return await self._start(asking(messages, agent, session_id, if_busy, request_id))

    async def _start(self, asked: Asking) -> Run:
        started = await starting(self._wire, asked, self._patience())
        return Run(self, *started)

    async def ask(
        self,
        text: Messages,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
    ) -> Answer:
        """One turn as a whole. A run that failed raises ServerError with the run's own code.

        It waits on a stream, which tells a long run from a dead connection, and then asks for the whole answer.
        """
        asked = asking(text, agent, session_id, if_busy, request_id)
        run = await self._start(asked)
        await run.wait()
        body = asked._replace(if_busy="error").body()
        chat = await self._wire.call("POST", "/chat", _Chat, body=body)
        more = chat.answer or _Structured()
        return Answer(
            content=chat.message.content,
            title=more.title,
            sources=more.sources,
            value=None if isinstance(more.content, str) else more.content,
            run_id=chat.run_id,
            session_id=chat.session_id,
            state=chat.state,
            tools=chat.tools,
        )

    def follow(self, run_id: str, *, after: int = 0) -> AsyncGenerator[Record | Gap]:
        """A run's Records behind `after` up to its end, live or long ended."""
        connect = self._getting(f"/runs/{part(run_id)}/stream")
        return resuming(connect, self._patience(), after=after, over=ends)

    def watch(self, session_id: str, *, after: int = 0) -> AsyncGenerator[Record | Gap]:
        """A session's Records behind `after`, through all its runs, for as long as you listen."""
        return resuming(self._getting(f"/sessions/{part(session_id)}/stream"), self._patience(), after=after)

    def export(self, run_id: str) -> Whole:
        """All Records of a run; if it is live, up to its end. Raises if some of them are no longer kept."""
        return Whole(self.follow(run_id))

    async def run(self, run_id: str) -> RunInfo:
        """A run's state, and the approvals that it waits for."""
        return await self._wire.call("GET", f"/runs/{part(run_id)}", RunInfo)

    async def cancel(self, run_id: str, reason: str = "") -> str:
        """Stop a run; its state after that. Harmless if it has ended."""
        return (await self._wire.call("POST", f"/runs/{part(run_id)}/cancel", _State, body={"reason": reason})).state

    async def approval(self, run_id: str, approval_id: str) -> ApprovalInfo:
        """A question with its whole arguments, and the decision if there is one."""
        return await self._wire.call("GET", f"/runs/{part(run_id)}/approvals/{part(approval_id)}", ApprovalInfo)

    async def decide(
        self,
        run_id: str,
        approval_id: str,
        decision: Decision,
        *,
        args: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> str:
        """Answer a question of the agent; `args` are the new ones for `edit`. The answer is the decision.

        Raises AlreadyDecided, Expired or NotOffered if it does not count.
        """
        body: dict[str, Any] = {"decision": decision, "reason": reason}
        if args is not None:
            body["args"] = args
        path = f"/runs/{part(run_id)}/approvals/{part(approval_id)}"
        return (await self._wire.call("POST", path, _State, body=body)).state

    async def approve(self, run_id: str, approval_id: str) -> str:
        return await self.decide(run_id, approval_id, "approve")

    async def edit(self, run_id: str, approval_id: str, args: Mapping[str, Any]) -> str:
        """Approve it with these arguments instead."""
        return await self.decide(run_id, approval_id, "edit", args=args)

    async def reject(self, run_id: str, approval_id: str, reason: str = "") -> str:
        return await self.decide(run_id, approval_id, "reject", reason=reason)

    async def result(self, run_id: str, call_id: str) -> ToolResult:
        """A tool call with its whole arguments and result, however large."""
        return await self._wire.call("GET", f"/runs/{part(run_id)}/tools/{part(call_id)}", ToolResult)

    async def answer(self, run_id: str) -> str:
        """The whole answer of a run, as text; JSON if it is not text."""
        return (await self._wire.bytes("GET", f"/runs/{part(run_id)}/answer")).decode("utf-8", "replace")

    async def artifact(self, artifact_id: str) -> bytes:
        """The bytes of a file."""
        return await self._wire.bytes("GET", f"/artifacts/{part(artifact_id)}")

    async def sessions(self, *, q: str = "", state: SessionState | None = None) -> AsyncGenerator[SessionInfo]:
        """Your sessions, last active first; `q` is a part of the title. Pages are fetched as you go."""
        params = {name: value for name, value in (("q", q), ("state", state), ("limit", PAGE)) if value}
        while True:
            page = await self._wire.call("GET", "/sessions", _Sessions, params=params)
            for session in page.sessions:
                yield session
            if page.next is None:
                return
            params["after"] = page.next

    async def session(self, session_id: str) -> SessionInfo:
        return await self._wire.call("GET", f"/sessions/{part(session_id)}", SessionInfo)

    async def rename(self, session_id: str, title: str) -> SessionInfo:
        return await self._wire.call("PATCH", f"/sessions/{part(session_id)}", SessionInfo, body={"title": title})

    async def delete(self, session_id: str) -> None:
        """Remove a session with all that belongs to it. A live run is stopped first."""
        await self._wire.bytes("DELETE", f"/sessions/{part(session_id)}")

    async def open_session(self, agent: str | None = None, *, max_steps: int | None = None) -> State:
        """Make a session with a name of the server's, an agent and the number of steps that its runs may take."""
        body = {name: value for name, value in (("agent_type", agent), ("max_steps", max_steps)) if value is not None}
        return await self._wire.call("POST", "/api/v2/sessions", State, body=body)

    async def state(self, session_id: str) -> State:
        """A session as the Web API v2 has it: with its state, its number of messages and its end."""
        return await self._wire.call("GET", f"/api/v2/sessions/{part(session_id)}", State)

    async def messages(self, session_id: str, *, after: str = "0") -> AsyncGenerator[Message]:
        """The whole messages of a session behind a cursor, oldest first. Pages are fetched as you go."""
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
        """The newest whole messages of a session, or the last before a cursor, oldest first. Without a limit the server
        decides: 100, or what it allows if that is less."""
        params = {name: value for name, value in (("limit", limit), ("before", before)) if value is not None}
        return (await self._messages(session_id, params)).messages

    async def _messages(self, session_id: str, params: Mapping[str, Any]) -> _Messages:
        return await self._wire.call("GET", f"/api/v2/sessions/{part(session_id)}/messages", _Messages, params=params)

    @overload
    def connect(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        after: str | int | None = None,
        format: Literal["v2"] = "v2",
    ) -> Socket[Message]: ...

    @overload
    def connect(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        after: str | int | None = None,
        format: Literal["records"],
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
        """A session's socket, to be used as `async with`; it makes the session if there is none.

        It shows the live run from its beginning on, or what comes behind `after`, as messages or as Records.
        """
        said = {"agent_type": agent, "max_steps": max_steps, "after": after, "format": format}
        params = {name: str(value) for name, value in said.items() if value is not None}
        socket: Socket[Any] = Socket(
            self, self._wire, self._patience(), session_id or f"ses_{uuid.uuid4().hex}", params
        )
        self._sockets.add(socket)
        return socket

    def _patience(self) -> Patience:
        return Patience(self._give_up_seconds)

    def _getting(self, path: str) -> Connect:
        async def connect(after: int) -> httpx.Response | None:
            return await self._wire.open("GET", path, params=RECORDS, headers={"last-event-id": str(after)})

        return connect
