"""Sources whose agent is created in the background after the server has started.

`LazySource` is for a built-in agent, whose framework takes seconds to import. Framework and description are known in
advance; a thread imports the framework and creates the agent. A run that starts before the agent is created emits a
status and waits. If the creation fails, the error is logged and the next request retries, because the cause may be
temporary, such as a lock on the framework's database.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress

import msgspec

from limelight.errors import LimelightError, SetupError, TryLater
from limelight.events import AnyEvent, Status
from limelight.sources.base import NO_OPTIONS, AgentResources, Item, Options, Source, Turn
from limelight.sources.input_schemas import NO_SCHEMAS, UNKNOWN_SCHEMAS, InputSchemas

log = logging.getLogger(__name__)
TRAITS = ("framework", "LACKS", "OPTIONS", "keeps_memory", "resumes")
"""Names of the attributes of Source that depend only on the framework, so that a LazySource has them before its agent.
"""
IMPORT_LOCK = threading.Lock()
"""Lock that a thread holds while it creates an agent. Without it, parallel imports of packages that import each other
may fail on incomplete modules."""
LOCK_POLL_SECONDS = 0.05
"""Interval at which a thread that waits for IMPORT_LOCK checks whether its agent is still needed."""


class DelegatingSource(Source):
    """Base class of LazySource and FactorySource: forwards each call to the agent's source once that is created."""

    _source: Source | None = None

    @classmethod
    def accepts(cls, target: object) -> bool:
        return False  # these sources are never selected for a target

    @property
    def schemas(self) -> InputSchemas:
        return UNKNOWN_SCHEMAS if self._source is None else self._source.schemas

    async def _ready(self) -> Source:
        """Return the agent's source, after waiting until the agent is created. Raises an error if that fails."""
        raise NotImplementedError

    def _loading_text(self) -> str:
        """Return the status text for a run that has to wait for its agent; "" for no status."""
        return ""

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()
            self._source = None

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._stream(lambda source: source.run(turn))

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        return self._stream(lambda source: source.resume(turn, events))

    def _stream(self, start: Callable[[Source], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
        return self._wait(start) if self._source is None else start(self._source)

    async def _wait(self, start: Callable[[Source], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
        """Emit a status, wait until the agent is created, and yield the items of the stream that `start` returns."""
        if text := self._loading_text():
            yield Status(text=text)
        async with aclosing(start(await self._ready())) as items:
            async for item in items:
                yield item

    async def forget(self, memory_key: str) -> None:
        await (await self._ready()).forget(memory_key)

    async def forget_session(self, user_id: str, session_id: str) -> None:
        await (await self._ready()).forget_session(user_id, session_id)

    def held_bytes(self, memory_key: str) -> int:
        return 0 if self._source is None else self._source.held_bytes(memory_key)

    async def unload(self, memory_key: str) -> None:
        if self._source is not None:  # without an agent there is no memory to release
            await self._source.unload(memory_key)


class LazyAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in agent that is created later: its name, description, required extra, and how to create it."""

    name: str
    description: str
    extra: str
    """The pip extra that installs the agent's framework; "" if the agent needs none."""
    prepare: Callable[[AgentResources], Awaitable[Callable[[], object]]]
    """Finds the model's address and returns the function that creates the agent, which is called in a thread."""
    cleanups: list[Callable[[], Awaitable[None]]] = []
    """Functions that are called when the agent is closed or its creation fails. `prepare` and the function that it
    returns append to this list."""

    def missing(self, module: str) -> str:
        """Return the error message about a package that the agent needs and that is not installed."""
        return needs_extra(self.name, self.extra) if self.extra else f"agent {self.name!r} needs the package {module}"


def needs_extra(name: str, extra: str) -> str:
    """Return the error message about an agent whose pip extra is not installed."""
    return f"agent {name!r} needs the {extra} extra: pip install 'limelight[{extra}]'"


class LazySource(DelegatingSource):
    """Source for a built-in agent that is created in the background after `open`."""

    source_class: type[Source]

    def __init__(self, target: LazyAgent, options: Options = NO_OPTIONS) -> None:
        self._agent = target
        self._options = options
        self._task: asyncio.Task[Source] | None = None
        """The asyncio task of the last attempt to create the agent."""
        self._resources: AgentResources | None = None
        self._closing = False

    @property
    def description(self) -> str:
        return self._agent.description

    @property
    def schemas(self) -> InputSchemas:
        return NO_SCHEMAS  # built-in agents are asked in words

    async def open(self, resources: AgentResources) -> None:
        """Start to create the agent. Wait until it is created only if that needs no import of a framework."""
        self._closing = False
        self._resources = resources
        task = self._start(resources)
        if not self._agent.extra:
            await task
        task.add_done_callback(self._log_failure)

    def _start(self, resources: AgentResources) -> "asyncio.Task[Source]":
        self._task = asyncio.create_task(self._make(resources), name=f"making {self._agent.name}")
        return self._task

    @property
    def failed(self) -> bool:
        """Whether the last attempt to create the agent has failed."""
        task = self._task
        return task is not None and task.done() and (task.cancelled() or task.exception() is not None)

    async def loaded(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _make(self, resources: AgentResources) -> Source:
        try:
            make = await self._agent.prepare(resources)
            source = self.source_class(await asyncio.to_thread(self._make_locked, make), self._options)
            await self._open(source, resources)
        except BaseException:
            await self._clean_up()
            raise
        self._source = source
        return source

    async def _open(self, source: Source, resources: AgentResources) -> None:
        try:
            await source.open(resources)
        except Exception as error:
            words = error.words if isinstance(error, TryLater) else ""
            reason = error.detail if isinstance(error, LimelightError) else f"{type(error).__name__}: {error}"
            raise SetupError(f"agent {self._agent.name!r} cannot be opened: {words or reason}") from error

    def _make_locked(self, make: Callable[[], object]) -> object:
        while not IMPORT_LOCK.acquire(timeout=LOCK_POLL_SECONDS):
            self._check_needed()
        try:
            self._check_needed()
            return make()
        except SetupError:
            raise
        except ModuleNotFoundError as error:
            raise SetupError(self._agent.missing(error.name or "")) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise SetupError(f"agent {self._agent.name!r} cannot be created: {reason}") from error
        finally:
            IMPORT_LOCK.release()

    def _check_needed(self) -> None:
        if self._closing:
            raise SetupError(f"agent {self._agent.name!r} is not needed any more")

    def _log_failure(self, task: "asyncio.Task[Source]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not self._closing:
            cause = error.__cause__
            fix = f": {cause.detail}" if isinstance(cause, TryLater) else ""
            log.error("%s%s; the next request to the agent retries", error, fix)

    async def _ready(self) -> Source:
        """Return the agent's source once the agent is created. Raises the error if that fails.

        If the last attempt has failed, start another one.
        """
        if self._task is None or self._resources is None:
            raise RuntimeError(f"agent {self._agent.name!r} is not open")
        if self.failed and not self._closing:
            self._start(self._resources).add_done_callback(self._log_failure)
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Close the agent. An import that is running is awaited; one that waits for its turn is skipped."""
        self._closing = True
        if self._task is not None:
            with suppress(Exception):
                await self._task
            self._task = None
        await super().close()
        await self._clean_up()

    async def _clean_up(self) -> None:
        while self._agent.cleanups:
            await self._agent.cleanups.pop()()

    def _loading_text(self) -> str:
        is_loading = self._task is not None and (self.failed or not self._task.done())
        return f"Loading {self._agent.extra} ..." if is_loading else ""


def lazy_source(kind: type[Source], agent: LazyAgent, options: Options) -> Source:
    """Create a LazySource for a built-in agent; `kind` is the source class of the agent's framework.

    The LazySource gets the framework's attributes (TRAITS) before the agent is created.
    """
    traits = {trait: getattr(kind, trait) for trait in TRAITS}
    return type("LazySource", (LazySource,), {**traits, "source_class": kind})(agent, options)
