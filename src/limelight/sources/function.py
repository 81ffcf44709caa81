"""Source for plain functions: async generators `agent(messages, ctx)` that yield text, Events and files.

A coroutine function that returns its answer is accepted too, and so is an ordinary generator, which runs in its own
thread so that it does not block the event loop. An object with such a method may have hooks (`function_agent`).
"""

import inspect
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
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
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.messages import Message
from limelight.sources.base import NO_OPTIONS, UNSTOPPABLE, AgentResources, FileMade, Item, Options, Source, Turn
from limelight.sources.function_agent import FunctionAgent, agent_method, is_agent_function
from limelight.sources.leftover_threads import report_running_functions
from limelight.sources.messages import AgentMessages, MessageIds
from limelight.sources.thread_bridge import ThreadBridge
from limelight.sources.tool_calls import CallIds

ToolEvent = ToolArgsDelta | ToolReady | ToolOutputDelta | ToolFinished
"""Event types that always belong to a tool call, even if their call id is empty."""


class FunctionSource(Source):
    """Source that runs an async generator, a coroutine or a generator function, or an object with such a method."""

    framework: ClassVar[str] = "function"
    keeps_memory: ClassVar[bool] = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        self._agent = FunctionAgent(target)

    @classmethod
    def accepts(cls, target: object) -> bool:
        return is_agent_function(target) or agent_method(target) is not None

    @property
    def description(self) -> str:
        return self._agent.description

    async def open(self, resources: AgentResources) -> None:
        await self._agent.open()

    async def close(self) -> None:
        await self._agent.close()

    async def forget_session(self, user_id: str, session_id: str) -> None:
        await self._agent.forget(user_id, session_id)

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        if turn.replaces_memory:
            await self._agent.forget(turn.context.user.user_id, turn.context.session_id)
        messages = await turn.complete_messages()
        translator = FunctionTranslator()
        append = translator.messages.append
        try:
            async with aclosing(self._items(messages, turn)) as items:
                async for item in items:
                    if type(item) is str and (delta := append(item)) is not None:  # fast path for most items
                        yield delta
                        continue
                    for event in translator.feed(item):
                        yield event
        except BaseException:  # the run was stopped, or has failed
            report_running_functions(turn.context)
            raise
        for event in translator.end():
            yield event

    def _items(self, messages: list[Message], turn: Turn) -> AsyncGenerator[object, None]:
        function = self._agent.function
        if inspect.isasyncgenfunction(function):
            return function(messages, turn.context)
        if inspect.iscoroutinefunction(function):
            return _returned(function(messages, turn.context))
        return _in_thread(function(messages, turn.context), turn)


class FunctionTranslator:
    """Translates the items that a function yields into Events. Pure.

    Consecutive strings form one text message. Any other item ends the message, except None and events of sub-agents.
    """

    def __init__(self) -> None:
        self.messages = AgentMessages("", MessageIds())
        self._call_ids = CallIds()
        self._answered = False
        self._ended = False

    def feed(self, item: object) -> list[Item]:
        if isinstance(item, str):
            return [*self.messages.text(str.__str__(item))]  # a subclass of str cannot be encoded
        if item is None:
            return []
        if isinstance(item, FileMade):
            return [*self.messages.close(), self._with_unique_id(item)]
        if not isinstance(item, EVENT_TYPES):
            raise BadEvent(f"an agent yields text, events or files, not {type(item).__name__}")
        event: AnyEvent = item  # pyright: ignore[reportAssignmentType]
        self._answered |= isinstance(event, FinalAnswer)
        self._ended |= isinstance(event, TERMINAL_TYPES)
        if isinstance(event, RunFinished):
            return self.end(event)
        if event.agent_id:  # an event of a sub-agent leaves the main agent's message open
            return [self._with_unique_id(event)]
        if isinstance(event, TextDelta):
            self._track_text(event)
        return [*self.messages.close(), self._with_unique_id(event)]

    def _track_text(self, event: TextDelta) -> None:
        """Record text that the function streams as TextDelta events; the last text may be the final answer."""
        if event.message_id != self.messages.last_id:
            self.messages.last_id, self.messages.last_pieces = event.message_id, []
        self.messages.last_pieces.append(event.text)

    def end(self, terminal: RunFinished | None = None) -> list[Item]:
        """Return the events that are missing at the end of the run: final answer and terminal event.

        `terminal` is a RunFinished that the function has yielded; None means that the function has returned.
        """
        if self._ended and terminal is None:
            return []
        self._ended = True
        events: list[Item] = [*self.messages.close()]
        if not self._answered:
            self._answered = True
            events.append(FinalAnswer(content=self.messages.last_text, message_id=self.messages.last_id))
        return [*events, terminal or RunFinished()]

    def _with_unique_id(self, item: Item) -> Item:
        if isinstance(item, ToolStarted):
            return msgspec.structs.replace(item, call_id=self._call_ids.start(item.call_id))
        call_id: str | None = getattr(item, "call_id", None)
        if call_id is None or (not call_id and not isinstance(item, ToolEvent)):  # not an event of a tool call
            return item
        known = self._call_ids.finish(call_id) if isinstance(item, ToolFinished) else self._call_ids.find(call_id)
        return item if known == call_id else msgspec.structs.replace(item, call_id=known)


async def _returned(awaitable: Any) -> AsyncGenerator[object, None]:
    answer = await awaitable
    if isinstance(answer, str) or answer is None:
        yield answer
    else:
        yield FinalAnswer(content=answer)


async def _in_thread(items: Iterator[object], turn: Turn) -> AsyncGenerator[object, None]:
    """Run a sync generator in a thread and yield its items. A Stop takes effect between two items."""

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
        if not await bridge.cancel():
            turn.context.emit(Status(text=UNSTOPPABLE))
