"""A plain function as an agent: `async def agent(messages, ctx)` that yields text, Events and files.

An async generator is the usual form. A coroutine function that returns its answer works too, and so does an ordinary
generator, which runs in a thread of its own so that it blocks nobody.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, ClassVar

import msgspec

from limelight.errors import BadEvent
from limelight.events import (
    EVENT_TYPES,
    TERMINAL_TYPES,
    AnyEvent,
    FinalAnswer,
    RunFinished,
    Status,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.sources.base import NO_OPTIONS, UNSTOPPABLE, CallIds, FileMade, Item, Options, Source, Turn, first_line
from limelight.sources.threads import ThreadBridge

ToolEvent = ToolArgsDelta | ToolReady | ToolOutputDelta | ToolFinished
"""What always belongs to a call, also if the call has no id of its own."""


class FunctionSource(Source):
    """Wraps a function."""

    framework: ClassVar[str] = "function"

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        if not callable(target):
            raise TypeError(f"{target!r} is not a function")
        self._target: Callable[..., Any] = target

    @classmethod
    def accepts(cls, target: object) -> bool:
        return (
            inspect.isasyncgenfunction(target)
            or inspect.iscoroutinefunction(target)
            or inspect.isgeneratorfunction(target)
        )

    @property
    def description(self) -> str:
        return first_line(inspect.getdoc(self._target))

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        translator = FunctionTranslator()
        items = self._items(turn)
        try:
            async for item in items:
                if type(item) is str and item:  # most items are text, so they take the short way
                    yield translator.text(item)
                    continue
                for event in translator.feed(item):
                    yield event
        finally:
            await items.aclose()
        for event in translator.end():
            yield event

    def _items(self, turn: Turn) -> AsyncGenerator[object, None]:
        if inspect.isasyncgenfunction(self._target):
            return self._target(turn.messages, turn.context)
        if inspect.iscoroutinefunction(self._target):
            return _answer_of(self._target(turn.messages, turn.context))
        return _in_thread(self._target(turn.messages, turn.context), turn)


class FunctionTranslator:
    """Pure: what a function yields -> Events. Strings become the text of a message that the next other item ends."""

    def __init__(self) -> None:
        self._calls = CallIds()
        self._messages = 0
        self._open: str | None = None
        self._last: str | None = None
        self._text: list[str] = []
        self._answered = False
        self._ended = False

    def feed(self, item: object) -> list[Item]:
        if isinstance(item, str):
            return [self.text(item)] if item else []
        if item is None:
            return []
        if isinstance(item, FileMade):
            return [*self._finish_text(), self._with_unique_id(item)]
        if not isinstance(item, EVENT_TYPES):
            raise BadEvent(f"an agent yields text, events or files, not {type(item).__name__}")
        event: AnyEvent = item  # pyright: ignore[reportAssignmentType]
        self._answered |= isinstance(event, FinalAnswer)
        self._ended |= isinstance(event, TERMINAL_TYPES)
        if isinstance(event, RunFinished):
            return self.end(event)
        if isinstance(event, TextDelta) and not event.agent_id:
            if event.message_id != self._last:
                self._last, self._text = event.message_id, []
            self._text.append(event.text)
        return [*self._finish_text(event.agent_id), self._with_unique_id(event)]

    def end(self, terminal: RunFinished | None = None) -> list[Item]:
        """What the function leaves for us to say at its end."""
        if self._ended and terminal is None:
            return []
        self._ended = True
        events: list[Item] = [*self._finish_text()]
        if not self._answered:
            self._answered = True
            events.append(FinalAnswer(content="".join(self._text), message_id=self._last))
        return [*events, terminal or RunFinished()]

    def text(self, text: str) -> TextDelta:
        """One more piece of the open message, or the first one of a new message."""
        if self._open is None:
            self._messages += 1
            self._open = self._last = f"msg-{self._messages}"
            self._text = []
        self._text.append(text)
        return TextDelta(message_id=self._open, text=text)

    def _finish_text(self, agent_id: str = "") -> list[Item]:
        if self._open is None or agent_id:  # what a sub-agent does leaves the main agent's message open
            return []
        finished = TextFinished(message_id=self._open)
        self._open = None
        return [finished]

    def _with_unique_id(self, item: Item) -> Item:
        if isinstance(item, ToolStarted):
            return msgspec.structs.replace(item, call_id=self._calls.start(item.call_id))
        call_id: str | None = getattr(item, "call_id", None)
        if call_id is None or (not call_id and not isinstance(item, ToolEvent)):  # it belongs to no call
            return item
        known = self._calls.finish(call_id) if isinstance(item, ToolFinished) else self._calls.of(call_id)
        return item if known == call_id else msgspec.structs.replace(item, call_id=known)


async def _answer_of(awaitable: Any) -> AsyncGenerator[object, None]:
    answer = await awaitable
    if isinstance(answer, str) or answer is None:
        yield answer
    else:
        yield FinalAnswer(content=answer)


async def _in_thread(items: Iterator[object], turn: Turn) -> AsyncGenerator[object, None]:
    """Drive an ordinary generator from a thread. Stop is seen between two items; a running one cannot be broken off."""

    def drive(bridge: ThreadBridge[object]) -> None:
        try:
            for item in items:
                bridge.put(item)
                if turn.context.cancelled:
                    break
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    bridge: ThreadBridge[object] = ThreadBridge(drive, f"limelight-{turn.context.run_id}")
    try:
        async for item in bridge.items():
            yield item
    finally:
        if not await bridge.leave():
            turn.context.emit(Status(text=UNSTOPPABLE))
