"""The client for programs without asyncio: blocking methods, and streams as plain iterators.

Each class wraps its asyncio counterpart, which lives on an event loop in a thread. So it works in scripts, in threads
and inside a running event loop (Jupyter), and from several threads at once.
"""

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from limelight.client.client import Client, ConnectOptions
from limelight.client.errors import ConnectionLost
from limelight.client.models import Gap, Message, State
from limelight.client.run import IfBusy, Messages, Run, Values
from limelight.client.session_socket import Socket, SocketFormat
from limelight.events import Record

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")
_END: Any = object()


class ClosableIterator(Protocol[T_co]):
    """An async iterator that has the method `aclose`."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...
    def __anext__(self) -> Awaitable[T_co]: ...
    def aclose(self) -> Awaitable[None]: ...


class LoopThread:
    """An event loop in a daemon thread, which runs coroutines for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._loop.run_forever, name="limelight-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for its result in the calling thread.

        An exception in the waiting thread, such as Ctrl-C, cancels the coroutine.
        """
        future = self._submit(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise ConnectionLost("the client is closed") from None
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: ClosableIterator[T]) -> Generator[T]:
        """Yield the items of an async iterator. Closing this generator closes the iterator."""
        lock = asyncio.Lock()

        async def get() -> T:
            async with lock:
                return await anext(items, _END)

        async def close() -> None:
            async with lock:
                await items.aclose()

        try:
            while (item := self.run(get())) is not _END:
                yield item
        finally:
            with suppress(ConnectionLost):  # raised if the loop is closed, which has closed the iterator
                closing = self._submit(close())
                if threading.current_thread() is not self._thread:  # the garbage collector may run in any thread
                    with suppress(CancelledError):
                        closing.result()

    def close(self, finish: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel all tasks of the loop, run `finish`, and stop the thread."""
        if threading.current_thread() is self._thread:
            threading.Thread(target=self.close, args=(finish,)).start()
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._end(finish), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._closed:
                coroutine.close()
                raise ConnectionLost("the client is closed")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _end(self, finish: Callable[[], Coroutine[Any, Any, None]]) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        await self._loop.shutdown_asyncgens()
        await finish()


class SyncWrapper(Generic[T]):
    """Base class of the blocking classes: wraps an asyncio object and the thread of its event loop."""

    def __init__(self, thread: LoopThread, wrapped: T, client: "SyncClient | None" = None) -> None:
        self._thread = thread
        self._wrapped = wrapped
        self._client = client  # keeps the client open while its runs and sockets are used


W = TypeVar("W")


def blocking(
    method: Callable[Concatenate[W, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncWrapper[W], P], T]:
    """Convert an async method to a blocking method with the same signature and docstring."""

    @wraps(method)
    def call(self: SyncWrapper[W], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.run(method(self._wrapped, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    return call


def iterating(
    method: Callable[Concatenate[W, P], ClosableIterator[T]],
) -> Callable[Concatenate[SyncWrapper[W], P], Generator[T]]:
    """Convert a method that returns an async iterator to a generator method with the same signature and docstring."""

    @wraps(method)
    def call(self: SyncWrapper[W], *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        yield from self._thread.iterate(method(self._wrapped, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    return call


class SyncRun(SyncWrapper[Run]):
    """An iterator of the Records of a run that was started here. Leaving the loop does not stop the run."""

    def __init__(self, thread: LoopThread, run: Run, client: "SyncClient") -> None:
        super().__init__(thread, run, client)
        self._records = thread.iterate(run)

    @property
    def run_id(self) -> str:
        return self._wrapped.run_id

    @property
    def session_id(self) -> str:
        return self._wrapped.session_id

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        return next(self._records)

    close = blocking(Run.aclose)
    text = blocking(Run.text)
    wait = blocking(Run.wait)
    cancel = blocking(Run.cancel)
    decide = blocking(Run.decide)
    approve = blocking(Run.approve)
    edit = blocking(Run.edit)
    reject = blocking(Run.reject)
    respond = blocking(Run.respond)


class SyncSocket(SyncWrapper[Socket[T]]):
    """A session's socket, see `Socket`. Use as `with`. One thread may iterate while others send."""

    @property
    def session_id(self) -> str:
        return self._wrapped.session_id

    def __enter__(self) -> Self:
        self._thread.run(self._wrapped.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[T | State | Gap]:
        return self

    def __next__(self) -> T | State | Gap:
        try:
            return self._thread.run(self._wrapped.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    close = blocking(Socket[T].aclose)
    send = blocking(Socket[T].send)
    ping = blocking(Socket[T].ping)
    cancel = blocking(Socket[T].cancel)
    decide = blocking(Socket[T].decide)
    approve = blocking(Socket[T].approve)
    edit = blocking(Socket[T].edit)
    reject = blocking(Socket[T].reject)
    respond = blocking(Socket[T].respond)
    state = blocking(Socket[T].state)
    last_messages = blocking(Socket[T].last_messages)


class SyncClient(SyncWrapper[Client]):
    """A client of one server for one user, see `Client`. Use it as `with`, or call `close` at the end."""

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
        client = Client(
            url, key=key, user_id=user_id, user_name=user_name, timeout=timeout, give_up_seconds=give_up_seconds
        )
        super().__init__(LoopThread(), client)
        self._finalizer = weakref.finalize(self, self._thread.close, client.aclose)

    @property
    def url(self) -> str:
        return self._wrapped.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; threads that wait get ConnectionLost. Runs continue."""
        self._finalizer()

    def start(
        self,
        messages: Messages | None = None,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
        input: Values | None = None,
        context: Values | None = None,
    ) -> SyncRun:
        """Start a run, see `Client.start`."""
        starting = self._wrapped.start(
            messages,
            agent=agent,
            session_id=session_id,
            if_busy=if_busy,
            request_id=request_id,
            input=input,
            context=context,
        )
        return SyncRun(self._thread, self._thread.run(starting), self)

    me = blocking(Client.me)
    agents = blocking(Client.agents)
    ask = blocking(Client.ask)
    follow = iterating(Client.follow)
    watch = iterating(Client.watch)
    export = iterating(Client.export)
    run = blocking(Client.run)
    cancel = blocking(Client.cancel)
    approval = blocking(Client.approval)
    decide = blocking(Client.decide)
    approve = blocking(Client.approve)
    edit = blocking(Client.edit)
    reject = blocking(Client.reject)
    respond = blocking(Client.respond)
    result = blocking(Client.result)
    answer = blocking(Client.answer)
    artifact = blocking(Client.artifact)
    sessions = iterating(Client.sessions)
    session = blocking(Client.session)
    rename = blocking(Client.rename)
    delete = blocking(Client.delete)
    open_session = blocking(Client.open_session)
    state = blocking(Client.state)
    messages = iterating(Client.messages)
    last_messages = blocking(Client.last_messages)

    @overload
    def connect(
        self, session_id: str | None = None, *, format: Literal["v2"] = "v2", **options: Unpack[ConnectOptions]
    ) -> SyncSocket[Message]: ...

    @overload
    def connect(
        self, session_id: str | None = None, *, format: Literal["records"], **options: Unpack[ConnectOptions]
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
        """Return a socket of a session, for `with`, see `Client.connect`."""
        socket: Socket[Any] = self._wrapped.connect(
            session_id,
            agent=agent,
            max_steps=max_steps,
            after=after,
            format=format,  # pyright: ignore[reportArgumentType, reportCallIssue]
        )
        return SyncSocket(self._thread, socket, self)
