"""Source for an agent that a factory function creates when the server starts and that is closed when it ends.

A factory may open connections, which belong to the event loop, and some of them also to the task that opens them. So
one task opens the factory, waits until the source is closed, and closes what the factory has opened. The agent's
framework is known only when the factory has been opened. If that fails, the next request to the agent tries it again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from contextvars import Context
from typing import ClassVar

import msgspec

from limelight.errors import LimelightError, SetupError
from limelight.sources.base import NO_OPTIONS, AgentResources, Options, Source, first_line
from limelight.sources.input_schemas import option_mistakes
from limelight.sources.lazy_agents import TRAITS, DelegatingSource

log = logging.getLogger(__name__)


class Factory(msgspec.Struct, frozen=True):
    """A function that creates an agent, and the functions and texts that FactorySource needs to use it.

    The function pushes what has to be closed on an exit stack.
    """

    make: Callable[[AsyncExitStack], Awaitable[object]]
    label: str
    """The agent's target from the settings, for error messages."""
    wrap: Callable[[object], Source]
    """Returns the source for the created agent."""
    describe: Callable[[BaseException], str] = repr
    """Returns an error of the factory as one line of text."""
    doc: str | None = None
    """The factory's docstring, which describes the agent until it is created."""


class FactorySource(DelegatingSource):
    """Source for an agent that a factory creates when the source is opened."""

    framework: ClassVar[str] = "factory"
    OPTIONS: ClassVar[frozenset[str]] = frozenset(msgspec.structs.asdict(NO_OPTIONS))

    def __init__(self, target: Factory, options: Options = NO_OPTIONS) -> None:
        self._factory = target
        self._options = options
        self._resources: AgentResources | None = None
        self._lock = asyncio.Lock()
        self._closing: asyncio.Event | None = None
        """Event that is set when the source is closed; None before the source is opened."""
        self._holder: asyncio.Task[None] | None = None
        """The asyncio task that has called the factory and will close what the factory has opened."""
        self._failed = False

    @property
    def description(self) -> str:
        return self._source.description if self._source is not None else first_line(self._factory.doc)

    @property
    def failed(self) -> bool:
        return self._failed

    async def open(self, resources: AgentResources) -> None:
        """Call the factory. Raises SetupError, also if the agent does not support the given options."""
        self._resources = resources
        self._closing = closing = asyncio.Event()
        opened: asyncio.Future[Source] = asyncio.get_running_loop().create_future()
        self._failed = True
        self._holder = asyncio.create_task(
            self._keep_open(resources, opened, closing),
            name=f"agent of {self._factory.label}",
            context=Context(),  # what the factory starts belongs to no run, even if a run opens it again
        )
        try:
            self._source = source = await opened
        except asyncio.CancelledError:
            self._holder.cancel()
            raise
        self._failed = False
        for trait in TRAITS:
            setattr(self, trait, getattr(source, trait))

    async def _keep_open(
        self, resources: AgentResources, opened: "asyncio.Future[Source]", closing: asyncio.Event
    ) -> None:
        """Call the factory and open its agent, wait until the source is closed, and close both."""
        try:
            async with AsyncExitStack() as stack:
                source = await self._create(stack)
                await source.open(resources)
                stack.push_async_callback(source.close)
                if not opened.cancelled():
                    opened.set_result(source)
                    await closing.wait()
        except BaseException as error:
            if closing.is_set():
                raise self._error("closed", error) from error
            if opened.done():  # such as a connection whose own task has failed
                self._source, self._failed = None, True
                log.error("%s; the next request opens it again", self._error("kept open", error))
            elif isinstance(error, LimelightError):
                opened.set_exception(error)
            else:
                opened.set_exception(self._error("opened", error))
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
                raise
        if not opened.done():  # a context manager has suppressed an error
            opened.set_exception(self._error("opened", RuntimeError("it ended before there was an agent")))

    async def _create(self, stack: AsyncExitStack) -> Source:
        try:
            target = await self._factory.make(stack)
        except (Exception, SystemExit) as error:
            raise self._error("created", error) from error
        source = self._factory.wrap(target)
        self._check_options(source)
        return source

    def _error(self, what: str, error: BaseException) -> SetupError:
        described = SetupError(f"target {self._factory.label!r} cannot be {what}: {self._factory.describe(error)}")
        described.__cause__ = error
        return described

    def _check_options(self, source: Source) -> None:
        for name, value in msgspec.structs.asdict(self._options).items():
            if value != getattr(NO_OPTIONS, name) and name not in source.OPTIONS:
                raise SetupError(
                    f"target {self._factory.label!r}: {name} has no effect on this agent, as its framework "
                    f"({source.framework}) does not have it"
                )
        for mistake in option_mistakes(source.schemas, self._options.input, self._options.context):
            raise SetupError(f"target {self._factory.label!r}: {mistake.path} is wrong: {mistake.message}")

    async def close(self) -> None:
        """Close the agent and what its factory has opened. Raises SetupError if that fails."""
        holder, self._holder, self._source = self._holder, None, None
        if holder is None or self._closing is None:
            return
        self._closing.set()
        try:
            await asyncio.shield(holder)
        except asyncio.CancelledError:
            holder.cancel()
            raise

    async def _ready(self) -> Source:
        """Return the agent's source; call the factory again if it has failed before. Raises SetupError."""
        async with self._lock:
            if self._source is None:
                if self._resources is None or (self._closing is not None and self._closing.is_set()):
                    raise RuntimeError(f"the agent of {self._factory.label!r} is not open")
                await self.open(self._resources)
            assert self._source is not None
            return self._source
