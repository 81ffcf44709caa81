"""The client without asyncio: the same methods, which wait; the same streams, as plain iterators.

A thin face on `Client`, which lives on an event loop in a thread of its own, so that this works in scripts, in threads
and inside a running loop (Jupyter). May be used from several threads at once.
"""

import weakref
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Literal, Self, overload

from limelight.client.client import Client, SessionState
from limelight.client.loop_thread import LoopThread
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
    ToolResult,
)
from limelight.client.run import Run
from limelight.client.run_request import IfBusy, Messages
from limelight.client.socket import Socket, SocketFormat
from limelight.client.sync_socket import SyncSocket
from limelight.events import Decision, Record


class SyncRun:
    """A run that was started here: an iterator of its Records. Leaving the loop leaves the run alone."""

    def __init__(self, client: "SyncClient", thread: LoopThread, run: Run) -> None:
        self._client = client  # which lives as long as its runs
        self._thread = thread
        self._run = run
        self._records = thread.iterate(run)

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def session_id(self) -> str:
        return self._run.session_id

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        return next(self._records)

    def close(self) -> None:
        """Stop listening. The run goes on."""
        self._thread.run(self._run.aclose())

    def text(self) -> str:
        """Wait for the end and return the answer, or what was said until somebody stopped it. A failed run raises."""
        return self._thread.run(self._run.text())

    def cancel(self, reason: str = "") -> str:
        """Stop the run; its state after that."""
        return self._thread.run(self._run.cancel(reason))

    def decide(
        self, approval_id: str, decision: Decision, *, args: Mapping[str, Any] | None = None, reason: str = ""
    ) -> str:
        """Answer a question of the agent, see `Client.decide`."""
        return self._thread.run(self._run.decide(approval_id, decision, args=args, reason=reason))

    def approve(self, approval_id: str) -> str:
        return self._thread.run(self._run.approve(approval_id))

    def edit(self, approval_id: str, args: Mapping[str, Any]) -> str:
        """Approve it with these arguments instead."""
        return self._thread.run(self._run.edit(approval_id, args))

    def reject(self, approval_id: str, reason: str = "") -> str:
        return self._thread.run(self._run.reject(approval_id, reason))


class SyncClient:
    """See `Client`. Use it as `with`, or call `close` at the end."""

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
        self._client = Client(
            url, key=key, user_id=user_id, user_name=user_name, timeout=timeout, give_up_seconds=give_up_seconds
        )
        self._thread = LoopThread()
        self._finalizer = weakref.finalize(self, self._thread.close, self._client.aclose)

    @property
    def url(self) -> str:
        return self._client.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections; whoever still waits gets ConnectionLost. Runs go on."""
        self._finalizer()

    def me(self) -> Me:
        return self._thread.run(self._client.me())

    def agents(self) -> list[AgentInfo]:
        return self._thread.run(self._client.agents())

    def start(
        self,
        messages: Messages,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
    ) -> SyncRun:
        starting = self._client.start(
            messages, agent=agent, session_id=session_id, if_busy=if_busy, request_id=request_id
        )
        return SyncRun(self, self._thread, self._thread.run(starting))

    def ask(
        self,
        text: Messages,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
    ) -> Answer:
        return self._thread.run(
            self._client.ask(text, agent=agent, session_id=session_id, if_busy=if_busy, request_id=request_id)
        )

    def follow(self, run_id: str, *, after: int = 0) -> Generator[Record | Gap]:
        yield from self._thread.iterate(self._client.follow(run_id, after=after))

    def watch(self, session_id: str, *, after: int = 0) -> Generator[Record | Gap]:
        yield from self._thread.iterate(self._client.watch(session_id, after=after))

    def export(self, run_id: str) -> Generator[Record]:
        yield from self._thread.iterate(self._client.export(run_id))

    def run(self, run_id: str) -> RunInfo:
        return self._thread.run(self._client.run(run_id))

    def cancel(self, run_id: str, reason: str = "") -> str:
        return self._thread.run(self._client.cancel(run_id, reason))

    def approval(self, run_id: str, approval_id: str) -> ApprovalInfo:
        return self._thread.run(self._client.approval(run_id, approval_id))

    def decide(
        self,
        run_id: str,
        approval_id: str,
        decision: Decision,
        *,
        args: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> str:
        return self._thread.run(self._client.decide(run_id, approval_id, decision, args=args, reason=reason))

    def approve(self, run_id: str, approval_id: str) -> str:
        return self._thread.run(self._client.approve(run_id, approval_id))

    def edit(self, run_id: str, approval_id: str, args: Mapping[str, Any]) -> str:
        return self._thread.run(self._client.edit(run_id, approval_id, args))

    def reject(self, run_id: str, approval_id: str, reason: str = "") -> str:
        return self._thread.run(self._client.reject(run_id, approval_id, reason))

    def result(self, run_id: str, call_id: str) -> ToolResult:
        return self._thread.run(self._client.result(run_id, call_id))

    def answer(self, run_id: str) -> str:
        return self._thread.run(self._client.answer(run_id))

    def artifact(self, artifact_id: str) -> bytes:
        return self._thread.run(self._client.artifact(artifact_id))

    def sessions(self, *, q: str = "", state: SessionState | None = None) -> Generator[SessionInfo]:
        yield from self._thread.iterate(self._client.sessions(q=q, state=state))

    def session(self, session_id: str) -> SessionInfo:
        return self._thread.run(self._client.session(session_id))

    def rename(self, session_id: str, title: str) -> SessionInfo:
        return self._thread.run(self._client.rename(session_id, title))

    def delete(self, session_id: str) -> None:
        self._thread.run(self._client.delete(session_id))

    def open_session(self, agent: str | None = None, *, max_steps: int | None = None) -> State:
        return self._thread.run(self._client.open_session(agent, max_steps=max_steps))

    def state(self, session_id: str) -> State:
        return self._thread.run(self._client.state(session_id))

    def messages(self, session_id: str, *, after: str = "0") -> Generator[Message]:
        yield from self._thread.iterate(self._client.messages(session_id, after=after))

    def last_messages(self, session_id: str, limit: int | None = None, *, before: str | None = None) -> list[Message]:
        return self._thread.run(self._client.last_messages(session_id, limit, before=before))

    @overload
    def connect(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        after: str | int | None = None,
        format: Literal["v2"] = "v2",
    ) -> SyncSocket[Message]: ...

    @overload
    def connect(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        after: str | int | None = None,
        format: Literal["records"],
    ) -> SyncSocket[Record]: ...

    def connect(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        after: str | int | None = None,
        format: SocketFormat = "v2",
    ) -> SyncSocket[Any]:
        socket: Socket[Any] = self._client.connect(
            session_id,
            agent=agent,
            max_steps=max_steps,
            after=after,
            format=format,  # pyright: ignore[reportArgumentType, reportCallIssue]
        )
        return SyncSocket(self, self._thread, socket)
