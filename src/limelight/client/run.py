"""A run that this client has started: its Records from the first on, its answer, Stop, decisions.

It folds what passes by, so that `text` may be called at any point of the iteration. It must not know HTTP; `Client`
makes it and does its errands.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Self

import msgspec

from limelight.client.errors import Busy, ClientError, ServerError
from limelight.client.models import Gap
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


class Whole:
    """An async iterator of Records where every one matters: a gap is an error."""

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
        """Stop listening. The run goes on."""
        await self._items.aclose()


class Run(Whole):
    """An async iterator of Records. Leaving the loop leaves the run alone; `cancel` stops it."""

    def __init__(self, client: "Client", run_id: str, session_id: str, records: AsyncGenerator[Record | Gap]) -> None:
        super().__init__(records)
        self.run_id = run_id
        self.session_id = session_id
        self.end: RunFinished | RunFailed | RunCancelled | None = None
        """The terminal event, once it has come."""
        self.began = False
        """False for a request that was stopped or refused while it waited for its session: it has no run and no log."""
        self._client = client
        self._answer: FinalAnswer | None = None
        self._message_id = ""
        self._said: list[str] = []

    async def __anext__(self) -> Record:
        record = await super().__anext__()
        self._take(record)
        return record

    async def text(self) -> str:
        """Wait for the end and return the answer, or what was said until somebody stopped it. A failed run raises."""
        await self.wait()
        if self._answer is None:
            return "".join(self._said)
        if self._answer.truncated:
            return await self._client.answer(self.run_id)
        return text_of(self._answer.content)

    async def wait(self) -> None:
        """Wait for the end. Raises if the run failed, or was stopped before it began."""
        async for _ in self:
            pass
        if isinstance(self.end, RunFailed):
            raise ServerError(self.end.message, status=502, code=self.end.code, run_id=self.run_id)
        if self.end is not None and not self.began:
            raise Busy("the request was stopped while it waited for the session", code="session_busy")

    async def cancel(self, reason: str = "") -> str:
        """Stop the run; its state after that."""
        return await self._client.cancel(self.run_id, reason)

    async def decide(
        self, approval_id: str, decision: Decision, *, args: Mapping[str, Any] | None = None, reason: str = ""
    ) -> str:
        """Answer a question of the agent, see `Client.decide`."""
        return await self._client.decide(self.run_id, approval_id, decision, args=args, reason=reason)

    async def approve(self, approval_id: str) -> str:
        return await self.decide(approval_id, "approve")

    async def edit(self, approval_id: str, args: Mapping[str, Any]) -> str:
        """Approve it with these arguments instead."""
        return await self.decide(approval_id, "edit", args=args)

    async def reject(self, approval_id: str, reason: str = "") -> str:
        return await self.decide(approval_id, "reject", reason=reason)

    def _take(self, record: Record) -> None:
        event = record.event
        if record.seq:
            self.began = True
            self.run_id = record.run_id  # a request that was sent twice may have been given another one's id first
        match event:
            case TextDelta(agent_id=""):
                if event.message_id != self._message_id:
                    self._message_id, self._said = event.message_id, []
                self._said.append(event.text)
            case FinalAnswer():
                self._answer = event
            case RunFinished() | RunFailed() | RunCancelled():
                self.end = event
            case _:
                pass


def ends(record: Record) -> bool:
    return isinstance(record.event, TERMINAL_TYPES)


def text_of(value: JsonValue) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
