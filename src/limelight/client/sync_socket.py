"""A session's socket without asyncio: the same methods, which wait, and a plain iterator. See `Socket`."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from limelight.client.loop_thread import LoopThread
from limelight.client.models import Gap, Message, State
from limelight.client.run_request import IfBusy
from limelight.client.socket import Socket
from limelight.events import Decision

if TYPE_CHECKING:
    from limelight.client.sync import SyncClient

T = TypeVar("T")


class SyncSocket(Generic[T]):
    """Use as `with`. One thread may listen while others send."""

    def __init__(self, client: "SyncClient", thread: LoopThread, socket: Socket[T]) -> None:
        self._client = client  # which lives as long as its sockets
        self._thread = thread
        self._socket = socket

    @property
    def session_id(self) -> str:
        return self._socket.session_id

    def __enter__(self) -> Self:
        self._thread.run(self._socket.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave. Runs go on."""
        self._thread.run(self._socket.aclose())

    def __iter__(self) -> Iterator[T | State | Gap]:
        return self

    def __next__(self) -> T | State | Gap:
        item = self._thread.run(self._take())
        if item is None:
            raise StopIteration
        return item

    async def _take(self) -> T | State | Gap | None:
        return await anext(self._socket, None)

    def send(self, query: str, *, if_busy: IfBusy = "error", request_id: str | None = None) -> str:
        return self._thread.run(self._socket.send(query, if_busy=if_busy, request_id=request_id))

    def ping(self) -> float:
        return self._thread.run(self._socket.ping())

    def cancel(self, reason: str = "", *, request_id: str = "") -> None:
        self._thread.run(self._socket.cancel(reason, request_id=request_id))

    def decide(
        self, approval_id: str, decision: Decision, *, args: Mapping[str, Any] | None = None, reason: str = ""
    ) -> str:
        return self._thread.run(self._socket.decide(approval_id, decision, args=args, reason=reason))

    def approve(self, approval_id: str) -> str:
        return self._thread.run(self._socket.approve(approval_id))

    def edit(self, approval_id: str, args: Mapping[str, Any]) -> str:
        return self._thread.run(self._socket.edit(approval_id, args))

    def reject(self, approval_id: str, reason: str = "") -> str:
        return self._thread.run(self._socket.reject(approval_id, reason))

    def state(self) -> State:
        return self._thread.run(self._socket.state())

    def last_messages(self, limit: int | None = None, *, before: str | None = None) -> list[Message]:
        return self._thread.run(self._socket.last_messages(limit, before=before))
