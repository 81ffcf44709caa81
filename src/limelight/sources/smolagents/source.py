"""The source for smolagents. It imports smolagents only when an agent runs, as it is loaded to ask who takes a target.

A turn runs in a thread of its own, because smolagents blocks. The copy of the agent that a conversation has is kept
in memory; who comes back later gets a new one, which is told what was said before.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar

from limelight.errors import AgentFailed, LimelightError
from limelight.events import Status
from limelight.messages import Message
from limelight.sources.base import NO_OPTIONS, Feature, Item, Options, Source, Turn, first_line
from limelight.sources.running_threads import unstoppable
from limelight.sources.smolagents.approvals import Asked, Questions, check_names
from limelight.sources.smolagents.error_text import named
from limelight.sources.smolagents.translator import AnySignal, Translator
from limelight.sources.threads import ThreadBridge


class SmolagentsSource(Source):
    """Wraps a CodeAgent, a ToolCallingAgent or a subclass of theirs."""

    framework: ClassVar[str] = "smolagents"
    keeps_memory: ClassVar[bool] = True
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"max_steps", "planning_interval", "approve"})
    LACKS: ClassVar[Mapping[Feature, str]] = {
        "approvals": "an agent cannot ask by itself; `approve` in its table holds up the tools that are named there",
        "output_deltas": "a tool says nothing before it returns; code that prints is heard",
        "stop_in_a_sync_tool": "it runs in a thread, which cannot be broken off; async tools can, code between lines",
        "memory_after_restart": "steps live in this process; after a restart the log tells the conversation",
    }

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        self._target: Any = target
        self._options = options
        if options.approve:
            check_names(target, options.approve)
        self._conversations: dict[str, Any] = {}

    @classmethod
    def accepts(cls, target: object) -> bool:
        return any(
            base.__name__ == "MultiStepAgent" and base.__module__ == "smolagents.agents"
            for base in type(target).__mro__
        )

    @property
    def description(self) -> str:
        return first_line(getattr(self._target, "description", None))

    async def close(self) -> None:
        for key in list(self._conversations):
            await self.rest(key)

    async def rest(self, memory_key: str) -> None:
        conversation = self._conversations.pop(memory_key, None)
        if conversation is not None:
            await asyncio.to_thread(conversation.close)

    async def forget(self, memory_key: str) -> None:
        await self.rest(memory_key)

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        from limelight.sources.smolagents.turn import Performance

        known = self._conversations.get(turn.memory_key) if turn.memory_key else None
        history: Sequence[Message] = () if known is not None else await turn.history()
        performance = Performance(self._target, self._options, turn, known, history)
        translator = Translator()
        questions = Questions(turn.context)
        bridge: ThreadBridge[AnySignal | Asked] = ThreadBridge(performance.play, f"limelight-{turn.context.run_id}")
        try:
            async for signal in bridge.items():
                if isinstance(signal, Asked):
                    questions.ask(signal, translator.call_id(signal.ticket))
                    continue
                for item in translator.feed(signal):
                    yield item
        except LimelightError:
            raise
        except Exception as error:
            raise AgentFailed(named(error)) from error
        finally:
            questions.close()
            gone = await bridge.leave()
            await self._keep(turn.memory_key, performance.conversation, translator.answered, gone)
            if not gone:
                turn.context.emit(Status(text=unstoppable(performance.at_work)))
        for item in translator.end():
            yield item

    async def _keep(self, key: str, conversation: Any, answered: bool, gone: bool) -> None:
        """What the next turn starts from. `gone`: nobody works on it any more."""
        if conversation is None:
            return
        if not gone:
            conversation.abandon()
        elif not answered:
            conversation.mend()
        if key:
            self._conversations[key] = conversation
        elif gone:
            await asyncio.to_thread(conversation.close)
