"""Source for LangGraph: streams a graph, requests approvals at interrupts, and resumes the graph with the decisions.

This module must not import LangGraph, because all sources are loaded to select one for a target.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from limelight.errors import AgentFailed, Interrupted, SetupError
from limelight.events import AnyEvent
from limelight.json_values import fields_of, safe_text
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
    is_instance,
)
from limelight.sources.input_schemas import InputSchemas
from limelight.sources.langgraph.approvals import ApprovalRequest, Interrupt, RepeatedQuestions, resume_value
from limelight.sources.langgraph.instrument import (
    current_task,
    structured_output_marker,
    subgraph_nodes,
    tool_of_frame,
    tool_task_recorder,
    with_threaded_nodes,
    with_written_tasks,
)
from limelight.sources.langgraph.stream_parts import MODES, part_of
from limelight.sources.langgraph.translator import LangGraphTranslator
from limelight.sources.leftover_threads import report_running_tools
from limelight.sources.resume_state import ResumeState

if TYPE_CHECKING:
    from limelight.sources.langgraph.schemas import GraphField, GraphInput

MAX_STEPS = "max_steps"
NOT_SERIALIZABLE = "is not msgpack serializable"
"""Part of LangGraph's error message about a state that no checkpointer can save."""
STATE_ADVICE = (
    "the state of this graph holds something that cannot be kept ({error}): leave it out of the state, or compile the "
    "graph with checkpointer=False, so that it keeps no state"
)
BREAKPOINT = "breakpoint"
"""Name of the approval request at a LangGraph breakpoint: a node before or after which the graph must stop."""


class LangGraphSource(Source):
    """Source that runs a LangGraph graph, compiled or not."""

    framework: ClassVar[str] = "langgraph"
    LACKS: ClassVar[Mapping[Feature, str]] = {
        "code": "a graph does not run code itself; a tool that runs code is shown as a tool",
        "stop_in_a_sync_tool": "LangChain runs it in a thread, which cannot be interrupted",
    }
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"max_steps", "input", "context"})
    keeps_memory: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        graph: Any = target
        self._graph: Any = graph.compile() if is_instance(target, "langgraph", "StateGraph") else graph
        self._options = options
        self._saver: Any = None
        """The default checkpointer, if the graph has none."""
        self._store_folder: Path | None = None
        """The data folder of the default store, if the graph has none."""

    @classmethod
    def accepts(cls, target: object) -> bool:
        return any(is_instance(target, "langgraph", name) for name in ("Pregel", "StateGraph"))

    @property
    def description(self) -> str:
        name = str(getattr(self._graph, "name", "") or "")
        return "" if name in ("LangGraph", "") else first_line(name)

    @property
    def schemas(self) -> InputSchemas:
        return self._schemas

    @cached_property
    def _schemas(self) -> InputSchemas:
        from limelight.sources.langgraph.schemas import input_schemas

        return input_schemas(self._graph, self._options)

    @cached_property
    def _input_fields(self) -> "GraphInput":
        from limelight.sources.langgraph.schemas import graph_input_of

        return graph_input_of(self._graph)

    @cached_property
    def _context_fields(self) -> "dict[str, GraphField]":
        from limelight.sources.langgraph.schemas import context_fields

        return context_fields(self._graph)

    async def open(self, resources: AgentResources) -> None:
        """Prepare a copy of the graph that does not block the event loop, with a checkpointer and a store if it had
        none."""
        from limelight.sources.langgraph.store import open_store

        self._graph = with_threaded_nodes(self._graph)
        await self._open_checkpointer(resources)
        if self._graph.store is None:
            self._graph = self._graph.copy({"store": open_store(resources.data)})
            self._store_folder = resources.data
        await asyncio.to_thread(lambda: self.schemas)  # takes some milliseconds

    async def _open_checkpointer(self, resources: AgentResources) -> None:
        from limelight.sources.langgraph.checkpointer import is_blocking, open_saver, with_async_methods

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
            from limelight.sources.langgraph.checkpointer import close_saver

            saver, self._saver = self._saver, None
            await close_saver(saver)
        if self._store_folder is not None:
            from limelight.sources.langgraph.store import release_store

            folder, self._store_folder = self._store_folder, None
            await release_store(folder)

    async def forget(self, memory_key: str) -> None:
        saver = self._graph.checkpointer
        if hasattr(saver, "adelete_thread"):
            await saver.adelete_thread(memory_key)

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._run(turn, self._translator(turn))

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        translator = self._translator(turn)
        state = ResumeState(events)
        translator.restore(state)
        return self._run(turn, translator, state)

    def _translator(self, turn: Turn) -> LangGraphTranslator:
        return LangGraphTranslator(turn.max_steps, subgraphs=subgraph_nodes(self._graph))

    # There is only one generator between the graph and the engine, because each costs time for every token.
    async def _run(
        self, turn: Turn, translator: LangGraphTranslator, state: ResumeState | None = None
    ) -> AsyncGenerator[Item, None]:
        """Run a turn and yield its events. With a `state`, resume a run that was waiting for a person."""
        from limelight.sources.langgraph.graph_input import graph_config

        context_values = {**self._options.context, **turn.context_values}
        callbacks = [tool_task_recorder(translator.tool_tasks), structured_output_marker()]
        config = {**graph_config(turn, context_values), "callbacks": callbacks}
        CURRENT_AGENT_ID.set(lambda: translator.agent_at(*current_task()))
        append, repeated = translator.append, RepeatedQuestions()
        code, proceed = "", True
        given: Any = {}
        try:
            context = self._context(turn, context_values)
            if state is None:
                graph_input = given = await self._input(turn, config, translator)
            else:
                proceed, graph_input = await self._ask_again(turn, config, translator, state, repeated)
            while proceed:
                try:
                    async with aclosing(self._stream(graph_input, config, context)) as parts:
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
                proceed, graph_input = await self._ask(turn, config, translator.take_interrupts(), repeated)
            for item in await self._end(turn, config, translator, code, given):
                yield item
        except (asyncio.CancelledError, GeneratorExit):
            for item in translator.stopped():
                if not isinstance(item, FileMade):
                    turn.context.emit(item)
            raise
        except Exception as error:
            for item in translator.failed(f"{type(error).__name__}: {safe_text(error)}"):
                yield item
            if type(error).__name__ == "ValidationError" and is_invalid_resume(error):
                raise AgentFailed(f"the answer does not fit what the graph asks for: {safe_text(error)}") from error
            if self._saver is not None and NOT_SERIALIZABLE in safe_text(error):
                raise AgentFailed(STATE_ADVICE.format(error=safe_text(error))) from error
            raise

    def _context(self, turn: Turn, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the context of a turn; None for a graph without a context schema. Raises AgentFailed."""
        from limelight.sources.langgraph.graph_input import graph_context

        return graph_context(self._graph.context_schema, self._context_fields, turn, values)

    def _stream(self, graph_input: Any, config: Any, context: Any) -> AsyncGenerator[Any, None]:
        """Return the graph's stream, which ends when the graph ends or is interrupted."""
        return self._graph.astream(
            graph_input,
            with_written_tasks(config, self._graph.store),
            context=context,
            stream_mode=[
                *MODES,
                *(() if self._graph.checkpointer else ("values",)),
                *(("updates",) if self._graph.cache is not None else ()),
            ],
            subgraphs=True,
            version="v2",
        )

    async def _input(self, turn: Turn, config: Any, translator: LangGraphTranslator) -> Any:
        from limelight.sources.langgraph import graph_input, history

        found = self._input_fields
        saved = await self._saved_state(config)
        is_new = saved is None or history.is_new(saved)
        if is_new or not graph_input.uses_state(self._graph, found):
            before = history.langchain_messages(await turn.history())
        else:
            before = history.repair_messages(saved, graph_input.can_remove_messages(self._graph))
        translator.initial_values = saved.values if saved is not None else None
        earlier = [*before, *(history.messages_of(saved.values) if saved else ())]
        translator.add_earlier(message.id for message in earlier)
        if is_new or found.is_function:
            return graph_input.graph_input(found, turn, before, defaults=self._options.input)
        # Later turns read the defaults from the saved state, where the graph may have changed them.
        known = fields_of(saved.values) if saved is not None else {}
        return graph_input.graph_input(found, turn, before, saved=known)

    async def _saved_state(self, config: Any) -> Any:
        """Return the conversation's state that the checkpointer has saved; None for a graph without a checkpointer."""
        return await self._graph.aget_state(config) if self._graph.checkpointer else None

    async def _ask(
        self, turn: Turn, config: Any, interrupts: list[Interrupt], repeated: RepeatedQuestions
    ) -> tuple[bool, Any]:
        """Request the approvals that the graph waits for. Returns whether the graph continues, and its next input."""
        if not interrupts:
            return await self._ask_at_breakpoint(turn, config), None
        if not self._graph.checkpointer:
            raise AgentFailed("this graph waits for a decision, but keeps no state from which it could continue")
        from langgraph.types import Command

        repeated.check(interrupts)
        requests = [request for interrupt in interrupts for request in interrupt.requests]
        approvals = iter(await turn.context.together(*(_approve(turn, request) for request in requests)))
        resume: dict[str, Any] = {}
        for interrupt in interrupts:
            value = resume_value(interrupt, [next(approvals) for _ in interrupt.requests])
            repeated.add(interrupt, value)
            if interrupt.takes_value:
                resume[interrupt.interrupt_id] = value
        return True, Command(resume=resume) if resume else None

    async def _ask_again(
        self,
        turn: Turn,
        config: Any,
        translator: LangGraphTranslator,
        state: ResumeState,
        repeated: RepeatedQuestions,
    ) -> tuple[bool, Any]:
        """Repeat the approval requests of a resumed run. Returns whether the graph continues, and its next input."""
        from limelight.sources.langgraph.history import messages_of

        saved = await self._saved_state(config)
        if saved is None or not saved.next:
            raise Interrupted("the graph has no state any more from which this run could continue")
        translator.add_earlier(message.id for message in messages_of(saved.values))
        interrupts = translator.restored_interrupts(saved.tasks, state)
        if not interrupts and state.requests[-1].name != BREAKPOINT:
            raise Interrupted("a tool requested this approval itself, and it ended with the previous server process")
        return await self._ask(turn, config, interrupts, repeated)

    async def _ask_at_breakpoint(self, turn: Turn, config: Any) -> bool:
        """Ask a person whether a graph at a breakpoint continues. Returns False if it is at none.

        Only the saved state shows a breakpoint.
        """
        state = await self._saved_state(config)
        if state is None or not state.next:
            return False
        return bool(await turn.context.approve(BREAKPOINT, {"next": list(state.next)}, decisions=("approve", "reject")))

    async def _end(self, turn: Turn, config: Any, translator: LangGraphTranslator, code: str, given: Any) -> list[Item]:
        """Return the events that end a run. `given` is the input of the graph in this turn."""
        from limelight.sources.langgraph.final_answer import answer_in, changed_values

        saved = await self._saved_state(config)
        values = translator.values if saved is None else saved.values
        if saved is not None and saved.next:  # stopped early: unchanged values are from earlier turns
            values = changed_values(translator.initial_values, values)
        if code:
            return translator.end(None, None, code)
        found = self._input_fields
        known = fields_of(given) or {found.question_key: turn.question.text}
        earlier = fields_of(translator.initial_values)
        if turn.input is None:  # then only values that an earlier turn must have got as input
            earlier = {name: value for name, value in earlier.items() if name in found.required}
        answer, raw_id = answer_in(self._graph, found, values, known, earlier)
        return translator.end(answer, raw_id, code)


def is_invalid_resume(error: Exception) -> bool:
    """Whether a graph has refused an answer because it does not fit the `response_schema` of its question."""
    from langgraph import errors

    check: Any = getattr(errors, "is_invalid_resume", None)  # older versions of LangGraph have none
    return check is not None and bool(check(error))


def _approve(turn: Turn, request: ApprovalRequest) -> Coroutine[Any, Any, Approval]:
    return turn.context.approve(
        request.name,
        request.args,
        call_id=request.call.call_id if request.call else "",
        agent_id=request.agent_id,
        decisions=request.decisions,
        question=request.question,
        answer_schema=request.answer_schema,
        args_schema=request.args_schema,
    )
