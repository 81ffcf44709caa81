"""An agent that a coroutine makes: `async def make()`. It is made when the server opens its agents, in their loop, as
connections of databases belong to the loop that they are opened in. Until then nobody knows what kind of agent it is.

`targets` finds such factories; what kind it is becomes known in `open`, and all is left to the source of its framework.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import ClassVar

import msgspec

from limelight.errors import SetupError
from limelight.events import AnyEvent
from limelight.sources.base import NO_OPTIONS, Home, Item, Options, Source, Turn, first_line

TRAITS = ("framework", "LACKS", "OPTIONS", "keeps_memory", "resumes")
"""What is true of all agents of a framework."""


class Factory(msgspec.Struct, frozen=True):
    """How to make an agent, and how to find the source for it."""

    make: Callable[[], Awaitable[object]]
    label: str
    wrapped: Callable[[object], Source]


class AwaitedSource(Source):
    """Stands for an agent until it is made, and then for its source."""

    framework: ClassVar[str] = "async factory"
    OPTIONS: ClassVar[frozenset[str]] = frozenset(msgspec.structs.asdict(NO_OPTIONS))

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        if not isinstance(target, Factory):
            raise TypeError(f"{target!r} makes no agent")
        self._factory = target
        self._options = options
        self._made: Source | None = None

    @classmethod
    def accepts(cls, target: object) -> bool:
        return False  # nobody writes a Factory as a target

    @property
    def description(self) -> str:
        return self._made.description if self._made is not None else first_line(self._factory.make.__doc__)

    async def open(self, home: Home) -> None:
        try:
            target = await self._factory.make()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise SetupError(f"target {self._factory.label!r} cannot be made: {told}") from error
        made = self._factory.wrapped(target)
        self._refuse_in_vain(made)
        await made.open(home)
        self._made = made
        for trait in TRAITS:
            setattr(self, trait, getattr(made, trait))

    def _refuse_in_vain(self, made: Source) -> None:
        for name, value in msgspec.structs.asdict(self._options).items():
            if value != getattr(NO_OPTIONS, name) and name not in made.OPTIONS:
                raise SetupError(
                    f"target {self._factory.label!r}: {name} makes no difference for this agent, as its framework "
                    f"({made.framework}) does not have it"
                )

    @property
    def _source(self) -> Source:
        if self._made is None:
            raise RuntimeError(f"the agent of {self._factory.label!r} is not open")
        return self._made

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._source.run(turn)

    def resume(self, turn: Turn, so_far: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        return self._source.resume(turn, so_far)

    async def forget(self, memory_key: str) -> None:
        await self._source.forget(memory_key)

    async def rest(self, memory_key: str) -> None:
        await self._source.rest(memory_key)
