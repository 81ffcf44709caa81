"""Source for LangGraph: streams a graph, requests approvals at interrupts, and resumes the graph with the decisions.

This module must not import LangGraph, because all sources are loaded to select one for a target.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

from limelight.errors import AgentFailed, Interrupted, SetupError
from limelight.events import AnyEvent
from limelight.json_values import safe_text
from limelight.sources.base import (
    CURRENT_AGENT_ID,
    NO_OPTIONS,
    AgentResources,
    Approval,
    Feature,
    FileMade,
    Item,
    Options,
    Source,
    Turn,
    first_line,
)
from limelight.sources.langgraph.approvals import ApprovalRequest, Interrupt, resume_value
from limelight.sources.langgraph.instrument import current_namespace, tool_of_frame, with_threaded_nodes
from limelight.sources.langgraph.stream_parts import MODES, part_of
from limelight.sources.langgraph.translator import LangGraphTranslator
from limelight.sources.leftover_threads import report_running_tools
from limelight.sources.resume_state import ResumeState

MAX_STEPS = "max_steps"
NOT_SERIALIZABLE = "is not msgpack serializable"
"""Part of LangGraph's error message for a state that no checkpointer can save."""
STATE_ADVICE = (
    "the state of this graph holds something that cannot be kept ({error}): leave it out of the state, or compile the "
    "graph with checkpointer=False, so that it keeps no state"
)
BREAKPOINT = "breakpoint"
"""Name of the approval request at a breakpoint, where the graph was compiled to stop."""


class LangGraphSource(Source):
    """Source for a graph of LangGraph, compiled or not."""

    framework: ClassVar[str] = "langgraph"
    LACKS: ClassVar[Mapping[Feature, str]] = {
        "code": "a graph does not run code itself; a tool that runs code is shown as a tool",
        "stop_in_a_sync_tool": "LangChain runs it in a thread, which cannot be interrupted",
    }
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"max_steps"})
    keeps_memory: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        graph: Any = target
        self._graph: Any = graph.compile() if _is_instance(target, "StateGraph") else graph
        self._saver: Any = None
        """The default checkpointer, if the graph has none."""

    @classmethod
    def accepts(cls, target: object) -> bool:
        return not isinstance(target, type) and (_is_instance(target, "Pregel") or _is_instance(target, "StateGraph"))

    @property
    def description(self) -> str:
        name = str(getattr(self._graph, "name", "") or "")
        return "" if name in ("LangGraph", "") else first_line(name)

    async def open(self, resources: AgentResources) -> None:
        """Prepare a copy of the graph that does not block the event loop. Add a checkpointer if it has none."""
        from limelight.sources.langgraph.checkpointer import is_blocking, open_saver, with_async_methods

        self._graph = with_threaded_nodes(self._graph)
        own = self._graph.checkpointer
        if own not in (None, True):  # True means the checkpointer of the parent graph
            if own is not False and is_blocking(own):
                self._graph = self._graph.copy({"checkpointer": with_async_methods(own)})
            return
        try:
            self._saver = await open_saver(resources.data)
        except ModuleNotFoundError as error:
            raise SetupError(
                f"graphs need the package {error.name} to keep their state: pip install 'limelight[langgraph]'"
            ) from error
        self._graph = self._graph.copy({"checkpointer": self._saver})

    async def close(self) -> None:
        if self._saver is not None:
            await self._saver.conn.close()
            self._saver = None

    async def forget(self, memory_key: str) -> None:
        saver = self._graph.checkpointer
        if hasattr(saver, "adelete_thread"):
            await saver.adelete_thread(memory_key)

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._run(turn, LangGraphTranslator(turn.max_steps))

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        translator = LangGraphTranslator(turn.max_steps)
        state = ResumeState(events)
        translator.restore(state)
        return self._run(turn, translator, state)

    # There is only one generator between the graph and the engine, because each costs time for every token.
    async def _run(
        self, turn: Turn, translator: LangGraphTranslator, state: ResumeState | None = None
    ) -> AsyncGenerator[Item, None]:
        """Run a turn. With a `state`, resume a run that waited for a person."""
        from limelight.sources.langgraph.graph_input import graph_config

        config = graph_config(turn)
        CURRENT_AGENT_ID.set(lambda: translator.agent_at(current_namespace()))
        append = translator.append
        code, proceed = "", True
        try:
            if state is None:
                graph_input = await self._input(turn, config, translator)
            else:
                proceed, graph_input = await self._ask_again(turn, config, translator, state)
            while proceed:
                try:
                    async with aclosing(self._stream(graph_input, config, turn)) as parts:
                        async for part in parts:
                            if part["type"] == "messages" and (delta := append(part["data"][0])) is not None:
                                yield delta  # fast path for most parts
                                continue
                            for event in translator.feed(part_of(part)):
                                yield event
                            if translator.limit_exceeded:
                                break
                except Exception as error:
                    if type(error).__name__ != "GraphRecursionError":
                        raise
                    code = MAX_STEPS
                finally:
                    report_running_tools(turn.context, tool_of_frame)
                code = MAX_STEPS if translator.limit_exceeded else code
                if code:
                    break
                proceed, graph_input = await self._ask(turn, config, translator.take_interrupts())
            for item in await self._end(config, translator, code):
                yield item
        except (asyncio.CancelledError, GeneratorExit):
            for item in translator.stopped():
                if not isinstance(item, FileMade):
                    turn.context.emit(item)
            raise
        except Exception as error:
            for item in translator.failed(f"{type(error).__name__}: {safe_text(error)}"):
                yield item
            if self._saver is not None and NOT_SERIALIZABLE in safe_text(error):
                raise AgentFailed(STATE_ADVICE.format(error=safe_text(error))) from error
            raise

    def _stream(self, graph_input: Any, config: Any, turn: Turn) -> AsyncGenerator[Any, None]:
        """Return the graph's stream, which lasts until the graph ends or is interrupted."""
        from limelight.sources.langgraph.graph_input import graph_context

        return self._graph.astream(
            graph_input,
            config,
            context=graph_context(self._graph.context_schema, turn.context),
            stream_mode=[*MODES, *(() if self._graph.checkpointer else ("values",))],
            subgraphs=True,
            version="v2",
        )

    async def _input(self, turn: Turn, config: Any, translator: LangGraphTranslator) -> Any:
        from limelight.sources.langgraph import graph_input, history

        saved = await self._saved_state(config)
        if saved is None or history.is_new(saved) or not graph_input.uses_state(self._graph):
            before = history.langchain_messages(await turn.history())
        else:
            before = history.repair_messages(saved, graph_input.can_remove_messages(self._graph))
        translator.initial_values = saved.values if saved is not None else None
        earlier = [*before, *(history.messages_of(saved.values) if saved else ())]
        translator.add_earlier(message.id for message in earlier)
        return graph_input.graph_input(self._graph, turn.question, before, turn.instructions)

    async def _saved_state(self, config: Any) -> Any:
        """Return the saved state of the conversation; None for a graph without a checkpointer."""
        return await self._graph.aget_state(config) if self._graph.checkpointer else None

    async def _ask(self, turn: Turn, config: Any, interrupts: list[Interrupt]) -> tuple[bool, Any]:
        """Request all approvals that the graph waits for. Returns whether the graph continues, and its next input."""
        if not interrupts:
            return await self._ask_at_breakpoint(turn, config), None
        if not self._graph.checkpointer:
            raise AgentFailed("this graph waits for a decision, but keeps no state from which it could continue")
        from langgraph.types import Command

        requests = [request for interrupt in interrupts for request in interrupt.requests]
        approvals = iter(await turn.context.together(*(_approve(turn, request) for request in requests)))
        resume = {i.interrupt_id: resume_value(i, [next(approvals) for _ in i.requests]) for i in interrupts}
        return True, Command(resume=resume)

    async def _ask_again(
        self, turn: Turn, config: Any, translator: LangGraphTranslator, state: ResumeState
    ) -> tuple[bool, Any]:
        """Request the approvals of a resumed run again. Returns whether the graph continues, and its next input."""
        from limelight.sources.langgraph.history import messages_of

        saved = await self._saved_state(config)
        if saved is None or not saved.next:
            raise Interrupted("the graph has no state any more from which this run could continue")
        translator.add_earlier(message.id for message in messages_of(saved.values))
        interrupts = translator.restored_interrupts(saved.interrupts, state)
        if not interrupts and state.requests[-1].name != BREAKPOINT:
            raise Interrupted("a tool had asked this question itself, and is gone with the server that ended")
        return await self._ask(turn, config, interrupts)

    async def _ask_at_breakpoint(self, turn: Turn, config: Any) -> bool:
        """Ask a person whether a graph that has stopped at a breakpoint continues. Returns False if it has not stopped.

        Only the saved state shows a breakpoint.
        """
        state = await self._saved_state(config)
        if state is None or not state.next:
            return False
        return bool(await turn.context.approve(BREAKPOINT, {"next": list(state.next)}, decisions=("approve", "reject")))

    async def _end(self, config: Any, translator: LangGraphTranslator, code: str) -> list[Item]:
        from limelight.sources.langgraph.final_answer import answer_in, changed_values

        saved = await self._saved_state(config)
        values = translator.values if saved is None else saved.values
        if saved is not None and saved.next:  # stopped early: unchanged values are from earlier turns
            values = changed_values(translator.initial_values, values)
        answer, raw_id = (None, None) if code else answer_in(self._graph, values)
        return translator.end(answer, raw_id, code)


def _approve(turn: Turn, request: ApprovalRequest) -> Coroutine[Any, Any, Approval]:
    return turn.context.approve(
        request.name,
        request.args,
        call_id=request.call.call_id if request.call else "",
        agent_id=request.agent_id,
        decisions=request.decisions,
    )


def _is_instance(target: object, class_name: str) -> bool:
    """Whether the target is an instance of LangGraph's class with this name."""
    return any(
        base.__name__ == class_name and base.__module__.partition(".")[0] == "langgraph"
        for base in type(target).__mro__
    )
