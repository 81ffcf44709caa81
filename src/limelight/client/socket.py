"""A session's WebSocket, which survives its connections: what happens there as it happens, and commands.

One task reads. Messages wait in an inbox until they are taken; if it is full, reading stops, and so does the server.
Answers to commands come the same way as messages. So, if somebody waits for an answer and nobody takes messages, what
does not fit is let go, and fetched again by a new connection behind the last one that did. `Client.connect` makes it.
"""

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast

from limelight.client.backoff import Patience
from limelight.client.bounded_queue import Inbox
from limelight.client.connection import Cut, Link, Unreachable, open_link
from limelight.client.correlation import Command, Exchange
from limelight.client.errors import ClientError, ConnectionLost, Limited, NotFound, ServerError, refusal_by_code
from limelight.client.models import Gap, Message, State
from limelight.client.position import Progress
from limelight.client.replies import Refused, Shown, Told, heard
from limelight.client.run_request import IfBusy
from limelight.client.transport import Wire, part
from limelight.events import Decision

if TYPE_CHECKING:
    from limelight.client.client import Client

T = TypeVar("T")
SocketFormat = Literal["v2", "records"]
ROOM_SECONDS = 0.25
"""How long an answer may be held up by messages that nobody takes."""
REFUSED, TOO_LARGE, SESSION_GONE = 1008, 1009, 4404


class Socket(Generic[T]):
    """Use as `async with`. An async iterator without an end: messages or Records, states when they change, gaps.

    Leaving the loop leaves the socket open, and the run alone; the next loop goes on where this one was.
    """

    def __init__(
        self, client: "Client", wire: Wire, patience: Patience, session_id: str, params: dict[str, str]
    ) -> None:
        self.session_id = session_id
        self._client = client
        self._wire = wire
        self._patience = patience
        self._params = params
        self._progress = Progress(params.pop("after", None))
        self._inbox: Inbox[T | State | Gap] = Inbox()
        self._exchange = Exchange()
        self._writing = asyncio.Lock()
        self._first: State | None = None
        self._link: Link | None = None
        self._complaint: Refused | None = None
        self._skipping = False
        self._reader: asyncio.Task[None] | None = None
        self._saying: asyncio.Task[None] | None = None
        self._over: Exception | None = None

    async def __aenter__(self) -> Self:
        """Connect. That nobody is there at all is said at once; after a cut it is tried again."""
        if self._reader is not None:
            raise RuntimeError("a socket is entered once: client.connect(…) makes another one")
        was_cut = False
        while self._first is None:
            try:
                await self._open()
            except (Unreachable, ServerError) as error:
                if not was_cut:
                    raise (self._wire.lost(error) if isinstance(error, Cut) else error) from error
                await self._patience.wait(error)
            except Cut as cut:
                was_cut = True
                self._raise_if_final(cut)
                await self._patience.wait(cut)
        self._reader = asyncio.create_task(self._live(), name=f"limelight-socket-{self.session_id}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave. Runs go on. Whoever still listens comes to the end."""
        self._finish(self._wire.gone() if self._wire.closed else None)
        link, self._link = self._link, None
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})
        if link is not None:
            await link.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T | State | Gap:
        if self._skipping and self._inbox.empty and self._link is not None:
            self._link.abort()
        return await self._inbox.take()

    async def send(self, query: str, *, if_busy: IfBusy = "error", request_id: str | None = None) -> str:
        """Ask the agent; the run's id. If the connection is cut meanwhile, it is asked again under the same name."""
        request_id = request_id or f"req_{uuid.uuid4().hex}"
        return await self._command("query", request_id, query=query, if_busy=if_busy, request_id=request_id)

    async def ping(self) -> float:
        """Whether the server answers on this socket, and in how many seconds."""
        began = asyncio.get_running_loop().time()
        await self._command("ping")
        return asyncio.get_running_loop().time() - began

    async def cancel(self, reason: str = "", *, request_id: str = "") -> None:
        """Stop the session's live run, or the question of that name, also while it waits for its turn: then `send`
        raises. Raises if there is none."""
        named = {"request_id": request_id} if request_id else {}
        await self._command("cancel", reason=reason, **named)

    async def decide(
        self, approval_id: str, decision: Decision, *, args: Mapping[str, Any] | None = None, reason: str = ""
    ) -> str:
        """Answer a question of the agent, see `Client.decide`."""
        fields: dict[str, Any] = {"approval_id": approval_id, "decision": decision, "reason": reason}
        if args is not None:
            fields["args"] = args
        return await self._command("approve", **fields)

    async def approve(self, approval_id: str) -> str:
        return await self.decide(approval_id, "approve")

    async def edit(self, approval_id: str, args: Mapping[str, Any]) -> str:
        """Approve it with these arguments instead."""
        return await self.decide(approval_id, "edit", args=args)

    async def reject(self, approval_id: str, reason: str = "") -> str:
        return await self.decide(approval_id, "reject", reason=reason)

    async def state(self) -> State:
        """The session as it is now."""
        return await self._client.state(self.session_id)

    async def last_messages(self, limit: int | None = None, *, before: str | None = None) -> list[Message]:
        """See `Client.last_messages`."""
        return await self._client.last_messages(self.session_id, limit, before=before)

    async def _command(self, kind: str, question_id: str = "", /, **fields: Any) -> str:
        if self._reader is None:
            raise RuntimeError("the socket is not open: async with client.connect(…) as socket")
        if self._over is not None:
            raise self._over
        command = Command(kind, fields, question_id)
        self._exchange.add(command)
        self._inbox.stir()
        await self._say_all()
        return await command.answer

    async def _say_all(self) -> None:
        async with self._writing:
            while (link := self._link) is not None and (frames := self._exchange.next()):
                try:
                    await link.say(*frames)
                except Cut:  # which the reader sees as well
                    return

    async def _live(self) -> None:
        """Read, and come back after cuts, until something happens that coming back cannot mend."""
        try:
            while True:
                try:
                    await self._listen()
                except Cut as cut:
                    await self._come_back(cut)
        except asyncio.CancelledError:
            self._finish(self._wire.gone())
            self._drop_link()  # there is one only if the loop itself is ending, and then there is no time for manners
            raise
        except Exception as error:
            self._finish(error)
            self._drop_link()

    async def _listen(self) -> None:
        link = self._link
        assert link is not None
        while True:
            reply = heard(await link.hear())
            self._patience.well()
            match reply:
                case None:
                    pass
                case Shown():
                    if await self._has_room():
                        self._keep(self._progress.show(reply))
                case Told():
                    if await self._has_room():
                        self._keep(self._progress.tell(reply.state))
                case _:
                    self._complaint = reply if isinstance(reply, Refused) else None
                    self._exchange.take(reply)
            if self._skipping and (self._inbox.empty or not self._exchange.busy):
                raise Cut("there was no room")

    def _keep(self, items: Iterable[object]) -> None:
        for item in items:
            self._inbox.put(cast("T | State | Gap", item))

    async def _has_room(self) -> bool:
        """Wait for it, but not for long if somebody waits for an answer. Once False, it stays so on this connection."""
        while self._inbox.full and not self._skipping:
            waited_for = self._exchange.busy
            stirred = await self._inbox.stirred(ROOM_SECONDS if waited_for else None)
            self._skipping = waited_for and not stirred
        return not self._skipping

    async def _come_back(self, cut: Cut) -> None:
        """With patience, unless we went by ourselves to fetch what we had let go."""
        self._raise_if_final(cut)
        by_ourselves, self._skipping = self._skipping, False
        self._drop_link()
        if cut.code == TOO_LARGE:
            self._exchange.end(refusal_by_code("the server takes no message of this size", "body_too_large"))
        self._exchange.cut()
        why: Exception = cut
        while self._link is None:
            if not by_ourselves:
                await self._patience.wait(why)
            by_ourselves = False
            try:
                await self._open()
            except (Cut, ServerError, Limited, ConnectionLost) as error:
                if isinstance(error, Cut):
                    self._raise_if_final(error)
                if isinstance(error, Limited) and not error.retry_after:
                    raise
                if self._wire.closed:
                    raise self._wire.gone() from error
                why = error
        # Not by the reader itself: a server may want to be heard before it hears more.
        self._saying = asyncio.create_task(self._say_all())

    def _drop_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.abort()

    def _raise_if_final(self, cut: Cut) -> None:
        if cut.code in (REFUSED, SESSION_GONE):
            if self._complaint is not None:
                raise _refusal(self._complaint) from cut
            kind = NotFound if cut.code == SESSION_GONE else ClientError
            raise kind(f"the server closed the socket: {cut}") from cut

    async def _open(self) -> None:
        """Connect behind the last item that came, and hear the session's state."""
        if self._first is not None:
            await self.state()  # connecting would make it again if somebody has deleted it meanwhile
            if self._progress.after is None:
                self._progress.after = await self._beginning(self._first)
        after = {} if self._progress.after is None else {"after": self._progress.after}
        link = await open_link(self._wire, f"/api/v2/ws/{part(self.session_id)}", {**self._params, **after})
        try:
            await self._arrive(await self._greeting(link))
        except BaseException:
            link.abort()
            raise
        self._link = link

    async def _greeting(self, link: Link) -> State:
        match reply := heard(await link.hear()):
            case Told():
                return reply.state
            case Refused():
                raise _refusal(reply)
            case _:
                raise self._wire.foreign("its socket does not begin with the session's state")

    async def _arrive(self, state: State) -> None:
        """What the state is news for: the end of a run that we have missed comes behind what we have missed of it."""
        first, self._first = self._first is None, self._first or state
        if first and (state.live or self._progress.after is None):
            self._progress.begin(state)
            if not state.live:
                self._progress.after = state.cursor
        elif state.live:
            self._keep(self._progress.tell(state))
        elif self._progress.is_news(state):
            self._keep(self._progress.hold(state, await self._last_cursor(state)))

    async def _last_cursor(self, state: State) -> str:
        """Of the last item that there is. Not everything in the log is seen in messages."""
        if self._params.get("format") == "records":
            return state.cursor
        last = await self.last_messages(1)
        return last[-1].cursor if last else "0"

    async def _beginning(self, state: State) -> str:
        """The place where the server began to show, if that was the beginning of a run and nothing has come of it."""
        async with aclosing(self._client.follow(state.run_id or "")) as records:
            async for item in records:
                return str((item.first if isinstance(item, Gap) else item.seq) - 1)
        return state.cursor

    def _finish(self, error: Exception | None) -> None:
        if self._over is None:
            self._over = error or ConnectionLost("the socket is closed")
        self._inbox.end(error)
        self._exchange.end(self._over)


def _refusal(reply: Refused) -> ClientError:
    return refusal_by_code(reply.message, reply.error_code, reply.run_id, reply.retry_after)
