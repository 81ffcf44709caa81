"""A source whose agent is made when the server starts: only then is the address of its model known.

What lists and checks need of it (framework, description, what it lacks) is known before; the framework is not imported
for that. It is imported, and the agent made, in a thread, so that the event loop goes on meanwhile.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import msgspec

from limelight.errors import SetupError
from limelight.events import AnyEvent
from limelight.sources.base import NO_OPTIONS, Home, Item, Options, Source, Turn

_one_at_a_time = threading.Lock()
"""Two threads that import packages which import each other may see half a module."""


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
    """Makes the agent in `open`, then leaves everything to the source of its framework."""

    kind: type[Source]

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        if not isinstance(target, Maker):
            raise TypeError(f"{target!r} makes no agent")
        self._maker = target
        self._options = options
        self._made: Source | None = None

    @classmethod
    def accepts(cls, target: object) -> bool:
        return False  # nobody writes a Maker as a target

    @property
    def description(self) -> str:
        return self._maker.description

    async def open(self, home: Home) -> None:
        try:
            make = await self._maker.prepare(home)
            made = self.kind(await asyncio.to_thread(self._in_turn, make), self._options)
            await made.open(home)
        except BaseException:
            await self.close()
            raise
        self._made = made

    def _in_turn(self, make: Callable[[], object]) -> object:
        with _one_at_a_time:
            try:
                return make()
            except ModuleNotFoundError as error:
                raise SetupError(self._maker.missing(error.name or "")) from error
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                raise SetupError(f"agent {self._maker.name!r} cannot be made: {told}") from error

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()
            self._made = None
        while self._maker.closing:
            await self._maker.closing.pop()()

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._opened.run(turn)

    def resume(self, turn: Turn, so_far: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        return self._opened.resume(turn, so_far)

    async def forget(self, memory_key: str) -> None:
        await self._opened.forget(memory_key)

    async def rest(self, memory_key: str) -> None:
        await self._opened.rest(memory_key)

    @property
    def _opened(self) -> Source:
        if self._made is None:
            raise RuntimeError(f"agent {self._maker.name!r} is not open")
        return self._made


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
