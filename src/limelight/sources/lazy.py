"""A source whose agent is made while the server runs already: to import a framework takes seconds.

What lists and checks need of it (framework, description, what it lacks) is known before; the framework is not imported
for that. It is imported, and the agent made, in a thread, so that the event loop goes on meanwhile; a run that comes
too early says so and waits. That a package is missing is known before, too; whatever else goes wrong stands in the log,
and is told to whoever asks the agent. It may pass, as a lock on the framework's database does, so the next who asks
has it made anew.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress

import msgspec

from limelight.errors import LimelightError, SetupError, TryLater
from limelight.events import AnyEvent, Status
from limelight.sources.base import NO_OPTIONS, Home, Item, Options, Source, Turn

log = logging.getLogger(__name__)
ONE_AT_A_TIME = threading.Lock()
"""Two threads that import packages which import each other may see half a module."""
TURN_SECONDS = 0.05
"""How often who waits for a turn looks whether it is still needed."""


class Maker(msgspec.Struct, frozen=True, kw_only=True):
    """How to make an agent, and what to say of it before, or if that fails."""

    name: str
    description: str
    extra: str
    prepare: Callable[[Home], Awaitable[Callable[[], object]]]
    """Finds out where the model is. What it gives makes the agent, and is called in a thread."""
    closing: list[Callable[[], Awaitable[None]]] = []
    """What has to be called when the agent is not needed any more; it grows while it is made."""

    def missing(self, module: str) -> str:
        return needs_extra(self.name, self.extra) if self.extra else f"agent {self.name!r} needs the package {module}"


def needs_extra(name: str, extra: str) -> str:
    return f"agent {name!r} needs the {extra} extra: pip install 'limelight[{extra}]'"


class LateSource(Source):
    """Begins to make the agent in `open`, and leaves everything to the source of its framework."""

    kind: type[Source]

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        if not isinstance(target, Maker):
            raise TypeError(f"{target!r} makes no agent")
        self._maker = target
        self._options = options
        self._made: Source | None = None
        self._making: asyncio.Task[Source] | None = None
        self._home: Home | None = None
        self._closing = False

    @classmethod
    def accepts(cls, target: object) -> bool:
        return False  # nobody writes a Maker as a target

    @property
    def description(self) -> str:
        return self._maker.description

    async def open(self, home: Home) -> None:
        """Only begins it, unless there is no framework to be imported."""
        self._closing = False
        self._home = home
        making = self._begin(home)
        if not self._maker.extra:
            await making
        making.add_done_callback(self._tell)

    def _begin(self, home: Home) -> "asyncio.Task[Source]":
        self._making = asyncio.create_task(self._make(home), name=f"making {self._maker.name}")
        return self._making

    @property
    def failed(self) -> bool:
        """Whether the last attempt to make it went wrong."""
        making = self._making
        return making is not None and making.done() and (making.cancelled() or making.exception() is not None)

    async def _make(self, home: Home) -> Source:
        try:
            make = await self._maker.prepare(home)
            made = self.kind(await asyncio.to_thread(self._in_turn, make), self._options)
            await self._open(made, home)
        except BaseException:
            await self._let_go()
            raise
        self._made = made
        return made

    async def _open(self, made: Source, home: Home) -> None:
        try:
            await made.open(home)
        except Exception as error:
            words = error.words if isinstance(error, TryLater) else ""
            told = words or (error.detail if isinstance(error, LimelightError) else f"{type(error).__name__}: {error}")
            raise SetupError(f"agent {self._maker.name!r} cannot be opened: {told}") from error

    def _in_turn(self, make: Callable[[], object]) -> object:
        while not ONE_AT_A_TIME.acquire(timeout=TURN_SECONDS):
            self._check_needed()
        try:
            self._check_needed()
            return make()
        except SetupError:
            raise
        except ModuleNotFoundError as error:
            raise SetupError(self._maker.missing(error.name or "")) from error
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise SetupError(f"agent {self._maker.name!r} cannot be made: {told}") from error
        finally:
            ONE_AT_A_TIME.release()

    def _check_needed(self) -> None:
        if self._closing:
            raise SetupError(f"agent {self._maker.name!r} is not needed any more")

    def _tell(self, making: "asyncio.Task[Source]") -> None:
        if not making.cancelled() and (error := making.exception()) is not None and not self._closing:
            cause = error.__cause__
            fix = f": {cause.detail}" if isinstance(cause, TryLater) else ""
            log.error("%s%s; whoever asks the agent next has it tried again", error, fix)

    async def _ready(self) -> Source:
        """The agent's real source, as soon as it is there. Raises what went wrong with it, to each who asks."""
        if self._making is None or self._home is None:
            raise RuntimeError(f"agent {self._maker.name!r} is not open")
        if self.failed and not self._closing:
            self._begin(self._home).add_done_callback(self._tell)
        return await asyncio.shield(self._making)

    async def close(self) -> None:
        """An import that goes on cannot be ended, so its end is waited for; those that have not begun do not begin."""
        self._closing = True
        if self._making is not None:
            with suppress(Exception):
                await self._making
            self._making = None
        if self._made is not None:
            await self._made.close()
            self._made = None
        await self._let_go()

    async def _let_go(self) -> None:
        while self._maker.closing:
            await self._maker.closing.pop()()

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._made.run(turn) if self._made is not None else self._soon(lambda source: source.run(turn))

    def resume(self, turn: Turn, so_far: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        if self._made is not None:
            return self._made.resume(turn, so_far)
        return self._soon(lambda source: source.resume(turn, so_far))

    async def _soon(self, play: Callable[[Source], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
        if self._making is not None and (self.failed or not self._making.done()):
            yield Status(text=f"Loading {self._maker.extra} ...")
        async with aclosing(play(await self._ready())) as items:
            async for item in items:
                yield item

    async def forget(self, memory_key: str) -> None:
        await (await self._ready()).forget(memory_key)

    async def rest(self, memory_key: str) -> None:
        if self._made is not None:  # or else it holds nothing in memory
            await self._made.rest(memory_key)


def late(kind: type[Source], maker: Maker, options: Options) -> Source:
    """A source that has the traits of another kind before it is one."""

    class Late(LateSource):
        framework = kind.framework
        LACKS = kind.LACKS
        OPTIONS = kind.OPTIONS
        keeps_memory = kind.keeps_memory
        resumes = kind.resumes

    Late.kind = kind
    return Late(maker, options)
