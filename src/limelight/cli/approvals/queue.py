"""The desk: which approvals of a run are open, and how this command decides on them, one after the other.

It sees every Record that the view sees. It must not know the terminal: whoever decides is given to it.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Literal, NamedTuple, Self

from limelight.cli.server_choice import DEFAULT_URL
from limelight.cli.view.subject import subject_of
from limelight.client import AlreadyDecided, Client, ClientError, Expired
from limelight.events import TERMINAL_TYPES, ApprovalRequested, ApprovalResolved, Record

log = logging.getLogger(__name__)
Approve = Literal["ask", "all", "none"]
NOBODY = "nobody was there to decide"


class Waiting(NamedTuple):
    """An approval that is open."""

    run_id: str
    asked: ApprovalRequested


Decide = Callable[[Waiting], Coroutine[Any, Any, None]]


class Desk:
    """Use as `async with`. Questions that are decided elsewhere go away."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self._waiting: dict[str, Waiting] = {}
        self._current = ""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def take(self, record: Record, *, decide: bool = True) -> None:
        """One more Record. Without `decide` it is known to be old: whether it still waits comes later."""
        match record.event:
            case ApprovalRequested() as asked:
                self._waiting[asked.approval_id] = Waiting(record.run_id, asked)
            case ApprovalResolved(approval_id=approval_id):
                self._drop(approval_id)
            case event if isinstance(event, TERMINAL_TYPES):
                for approval_id in [*self._waiting, self._current]:
                    self._drop(approval_id)
            case _:
                pass
        if decide:
            self._next()

    def _drop(self, approval_id: str) -> None:
        self._waiting.pop(approval_id, None)
        if self._task is not None and approval_id == self._current:
            self._task.cancel()

    def _next(self) -> None:
        if self._task is None and self._waiting:
            self._current, waiting = next(iter(self._waiting.items()))
            del self._waiting[self._current]
            self._task = asyncio.create_task(self._decide(waiting))
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task, self._current = None, ""
        if not task.cancelled() and task.exception() is not None:
            log.error("the question could not be asked", exc_info=task.exception())
        self._next()


def decide_all(client: Client, approve: Literal["all", "none"]) -> Decide:
    """The same answer to everything."""

    async def decide(waiting: Waiting) -> None:
        try:
            if approve == "all":
                await client.approve(waiting.run_id, waiting.asked.approval_id)
            else:
                await client.reject(waiting.run_id, waiting.asked.approval_id, NOBODY)
        except (AlreadyDecided, Expired):
            pass  # somebody else was faster, and the view says who
        except ClientError as error:
            sys.stderr.write(f"{error.detail}. {how_to_decide(client.url, waiting)}\n")

    return decide


def tell(client: Client) -> Decide:
    """Nobody can be asked here: say where it can be decided, and leave it at that."""

    async def decide(waiting: Waiting) -> None:
        sys.stderr.write(f"{how_to_decide(client.url, waiting)}\n")

    return decide


def how_to_decide(url: str, waiting: Waiting) -> str:
    """One line with a command that can be copied."""
    server = "" if url == DEFAULT_URL else f" --url {url}"
    command = f"limelight approve {waiting.run_id} {waiting.asked.approval_id}{server}"
    return f"{subject_of(waiting.asked.name, waiting.asked.args).name} waits for a decision: {command}"
