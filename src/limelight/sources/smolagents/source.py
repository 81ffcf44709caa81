"""Source for smolagents: runs the agent in a thread, because smolagents blocks, with one copy per conversation.

The copies are in memory. A conversation that continues without a copy gets a new one with its history. This module must
not import smolagents, because all sources are loaded to select one for a target.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar

from limelight.errors import AgentFailed, LimelightError
from limelight.events import Status
from limelight.messages import Message
from limelight.sources.base import NO_OPTIONS, Feature, Item, Options, Source, Turn, first_line, is_instance
from limelight.sources.leftover_threads import still_running_text
from limelight.sources.smolagents.approvals import ApprovalRequests, check_tool_names
from limelight.sources.smolagents.reports import CODE, ApprovalNeeded, named_error_text
from limelight.sources.smolagents.translator import AnyReport, SmolagentsTranslator
from limelight.sources.thread_bridge import CANCEL_SECONDS, ThreadBridge

MAX_WORKERS = 16
"""How many idle conversations of an agent keep their sandbox, and with it the variables of their code."""
KILL_SECONDS = 2.0
"""How long a stopped turn waits until its killed sandbox has ended."""


class SmolagentsSource(Source):
    """Source that runs a CodeAgent, a ToolCallingAgent or any other MultiStepAgent."""

    framework: ClassVar[str] = "smolagents"
    keeps_memory: ClassVar[bool] = True
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"max_steps", "planning_interval", "approve", "sandbox"})
    LACKS: ClassVar[Mapping[Feature, str]] = {
        "approvals": "an agent cannot ask by itself; the setting `approve` names tools that need an approval",
        "output_deltas": "a tool has no output before it returns; output of code is streamed",
        "stop_in_a_sync_tool": "it runs in a thread, which cannot be interrupted; async tools and code can",
        "memory_after_restart": "steps are kept in this process; after a restart the log has the conversation",
    }

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        self._target: Any = target
        self._options = options
        if options.approve:
            check_tool_names(target, options.approve)
        self._conversations: dict[str, Any] = {}
        """The conversations by memory key, the least recently used first."""
        self._live: set[str] = set()
        """The memory keys of the turns that are running."""

    @classmethod
    def accepts(cls, target: object) -> bool:
        return is_instance(target, "smolagents.agents", "MultiStepAgent")

    @property
    def description(self) -> str:
        return first_line(getattr(self._target, "description", None))

    async def close(self) -> None:
        for key in list(self._conversations):
            await self.unload(key)

    async def unload(self, memory_key: str) -> None:
        conversation = self._conversations.pop(memory_key, None)
        if conversation is not None:
            await asyncio.to_thread(conversation.close)

    async def forget(self, memory_key: str) -> None:
        await self.unload(memory_key)

    def held_bytes(self, memory_key: str) -> int:
        conversation = self._conversations.get(memory_key)
        return 0 if conversation is None else conversation.held_bytes

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        from limelight.sources.smolagents.instrument import AgentTurn

        conversation = self._conversations.get(turn.memory_key) if turn.memory_key else None
        history: Sequence[Message] = () if conversation is not None else await turn.history()
        agent_turn = AgentTurn(self._target, self._options, turn, conversation, history)
        self._live.add(turn.memory_key)
        translator = SmolagentsTranslator()
        requests = ApprovalRequests(turn.context)
        bridge: ThreadBridge[AnyReport | ApprovalNeeded] = ThreadBridge(
            agent_turn.run, f"limelight-{turn.context.run_id}"
        )
        try:
            async for report in bridge.items():
                if isinstance(report, ApprovalNeeded):
                    requests.add(report, translator.call_id(report.call_number))
                    continue
                for item in translator.feed(report):
                    yield item
        except LimelightError:
            raise
        except Exception as error:
            raise AgentFailed(named_error_text(error)) from error
        finally:
            requests.cancel()
            thread_ended = await self._cancel(bridge, agent_turn)
            self._live.discard(turn.memory_key)
            await self._store(turn.memory_key, agent_turn.conversation, translator.answered, thread_ended)
            if agent_turn.running_tools or not thread_ended:
                turn.context.emit(Status(text=still_running_text(agent_turn.running_tools)))
        for item in translator.end():
            yield item

    async def _cancel(self, bridge: ThreadBridge[Any], agent_turn: Any) -> bool:
        """Cancel the thread of a turn. If only sandboxed code runs, kill the sandbox, so that the thread ends soon."""
        is_killable = self._options.sandbox is not None and agent_turn.running_tools == [CODE]
        return await bridge.cancel(KILL_SECONDS if is_killable else CANCEL_SECONDS)

    async def _store(self, key: str, conversation: Any, answered: bool, thread_ended: bool) -> None:
        """Store the conversation for its next turn, repaired so that it can continue."""
        if conversation is None:
            return
        if not thread_ended:
            conversation.abandon()
        elif not answered:
            conversation.repair()
        if key:
            await asyncio.to_thread(conversation.shrink)
            if self._options.sandbox is not None:
                await asyncio.to_thread(conversation.pause)
            self._conversations.pop(key, None)
            self._conversations[key] = conversation
            await self._limit_workers()
        elif thread_ended:
            await asyncio.to_thread(conversation.close)
        elif self._options.sandbox is not None:
            await asyncio.to_thread(conversation.kill_code)

    async def _limit_workers(self) -> None:
        """Kill the sandboxes of the idle conversations used least recently; the variables of their code are lost."""
        idle = [one for key, one in self._conversations.items() if key not in self._live and one.has_worker]
        for conversation in idle[:-MAX_WORKERS]:
            await asyncio.to_thread(conversation.close)
