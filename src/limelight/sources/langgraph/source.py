"""A compiled graph as an agent: drives `astream`, asks people when it stops, and goes on with their answers.

The framework is loaded only once there is a graph; to find out whether something is one, its class's name is enough.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

from limelight.errors import AgentFailed, Interrupted, SetupError
from limelight.events import AnyEvent
from limelight.sources.base import (
    NO_OPTIONS,
    SPEAKER,
    Approval,
    Feature,
    FileMade,
    Home,
    Item,
    Options,
    Source,
    Turn,
    first_line,
)
from limelight.sources.langgraph.approvals import Interrupt, Question, resume_value
from limelight.sources.langgraph.cancellation import name_at_work
from limelight.sources.langgraph.graph_context import graph_context, known
from limelight.sources.langgraph.stream_parts import MODES, Namespace, part_of, place_of
from limelight.sources.langgraph.translator import LangGraphTranslator
from limelight.sources.resume_state import SoFar
from limelight.sources.running_threads import tell_what_goes_on
from limelight.sources.values import safe_text

MAX_STEPS = "max_steps"
UNKEEPABLE = "is not msgpack serializable"
"""What LangGraph says of a state that no checkpointer can keep."""
KEEPABLE = (
    "the state of this graph holds something that cannot be kept ({error}): leave it out of the state, or compile the "
    "graph with checkpointer=False, so that it keeps no state"
)
BREAKPOINT = "breakpoint"
"""What a stop is called that the graph was compiled with."""


class LangGraphSource(Source):
    """Wraps a compiled graph, or one that only has to be compiled."""

    framework: ClassVar[str] = "langgraph"
    LACKS: ClassVar[Mapping[Feature, str]] = {
        "code": "a graph has no code of its own that it runs; a tool that runs code is shown as a tool",
        "stop_in_a_sync_tool": "LangChain runs it in a thread, which cannot be broken off",
    }
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"max_steps"})
    keeps_memory: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        graph: Any = target
        self._graph: Any = graph.compile() if _is(target, "StateGraph") else graph
        self._saver: Any = None

    @classmethod
    def accepts(cls, target: object) -> bool:
        return not isinstance(target, type) and (_is(target, "Pregel") or _is(target, "StateGraph"))

    @property
    def description(self) -> str:
        name = str(getattr(self._graph, "name", "") or "")
        return "" if name in ("LangGraph", "") else first_line(name)

    async def open(self, home: Home) -> None:
        """A graph without a checkpointer gets ours, on a copy: the given object stays as it is."""
        from limelight.sources.langgraph.async_saver import in_threads, is_blocking
        from limelight.sources.langgraph.threaded_nodes import off_loop

        self._graph = off_loop(self._graph)
        own = self._graph.checkpointer
        if own not in (None, True):  # True is for subgraphs: it means that of the graph above
            if own is not False and is_blocking(own):
                self._graph = self._graph.copy({"checkpointer": in_threads(own)})
            return
        try:
            from limelight.sources.langgraph.checkpointer import open_saver
        except ModuleNotFoundError as error:
            raise SetupError(
                f"graphs need the package {error.name} to keep their state: pip install 'limelight[langgraph]'"
            ) from error
        self._saver = await open_saver(home.data)
        self._graph = self._graph.copy({"checkpointer": self._saver})

    async def close(self) -> None:
        if self._saver is not None:
            from limelight.sources.langgraph.checkpointer import close_saver

            await close_saver(self._saver)
            self._saver = None

    async def forget(self, memory_key: str) -> None:
        saver = self._graph.checkpointer
        if hasattr(saver, "adelete_thread"):
            await saver.adelete_thread(memory_key)

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._play(turn, LangGraphTranslator(turn.max_steps))

    def resume(self, turn: Turn, so_far: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        translator = LangGraphTranslator(turn.max_steps)
        left = SoFar(so_far)
        translator.restore(left)
        return self._play(turn, translator, left)

    # One generator from the graph to the engine, and none in between: every token goes through all of them.
    async def _play(
        self, turn: Turn, translator: LangGraphTranslator, left: SoFar | None = None
    ) -> AsyncGenerator[Item, None]:
        """The whole turn, or the rest of one that was `left` while it waited for a person."""
        config = _config(turn)
        SPEAKER.set(lambda: translator.agent_at(_place_here()))
        code, goes_on = "", True
        try:
            if left is None:
                given = await self._input(turn, config, translator)
            else:
                goes_on, given = await self._asked_again(turn, config, translator, left)
            while goes_on:
                try:
                    async with aclosing(self._stretch(given, config, turn)) as parts:
                        async for part in parts:
                            if part["type"] == "messages" and (more := translator.goes_on(part["data"][0])):
                                yield more  # nine parts in ten, and nothing else is to be done
                                continue
                            for event in translator.feed(part_of(part)):
                                yield event
                            if translator.over_limit:
                                break
                except Exception as error:
                    if type(error).__name__ != "GraphRecursionError":
                        raise
                    code = MAX_STEPS
                finally:
                    tell_what_goes_on(turn.context, name_at_work)
                code = MAX_STEPS if translator.over_limit else code
                if code:
                    break
                goes_on, given = await self._asked(turn, config, translator.take_interrupts())
            for item in await self._ended(config, translator, code):
                yield item
        except (asyncio.CancelledError, GeneratorExit):
            for item in translator.stopped():
                if not isinstance(item, FileMade):
                    turn.context.emit(item)
            raise
        except Exception as error:
            for item in translator.broken(f"{type(error).__name__}: {safe_text(error)}"):
                yield item
            if self._saver is not None and UNKEEPABLE in safe_text(error):
                raise AgentFailed(KEEPABLE.format(error=safe_text(error))) from error
            raise

    def _stretch(self, given: Any, config: Any, turn: Turn) -> AsyncGenerator[Any, None]:
        """The graph's stream: to its end, or to a stop in which a person decides."""
        return self._graph.astream(
            given,
            config,
            context=graph_context(self._graph.context_schema, turn.context),
            stream_mode=[*MODES, *(() if self._graph.checkpointer else ("values",))],
            subgraphs=True,
            version="v2",
        )

    async def _input(self, turn: Turn, config: Any, translator: LangGraphTranslator) -> Any:
        from limelight.sources.langgraph import graph_input, history

        kept = await self._state(config)
        if kept is None or history.is_new(kept) or not graph_input.remembers(self._graph):
            before = history.messages_from(await turn.history())
        else:
            before = history.repairs(kept, graph_input.removes(self._graph))
        translator.began_with = kept.values if kept is not None else None
        translator.past(message.id for message in [*before, *(history.messages_of(kept.values) if kept else ())])
        return graph_input.graph_input(self._graph, turn.question, before, turn.instructions)

    async def _state(self, config: Any) -> Any:
        """What is kept of the conversation; nothing if the graph is set to keep none."""
        return await self._graph.aget_state(config) if self._graph.checkpointer else None

    async def _asked(self, turn: Turn, config: Any, interrupts: list[Interrupt]) -> tuple[bool, Any]:
        """Ask a person about everything that the graph waits for: whether it goes on, and with what input."""
        if not interrupts:
            return await self._at_breakpoint(turn, config), None
        if not self._graph.checkpointer:
            raise AgentFailed("this graph waits for a decision, but keeps no state from which it could go on")
        from langgraph.types import Command

        questions = [question for interrupt in interrupts for question in interrupt.questions]
        answers = iter(await turn.context.together(*(_ask(turn, question) for question in questions)))
        resume = {i.interrupt_id: resume_value(i, [next(answers) for _ in i.questions]) for i in interrupts}
        return True, Command(resume=resume)

    async def _asked_again(
        self, turn: Turn, config: Any, translator: LangGraphTranslator, left: SoFar
    ) -> tuple[bool, Any]:
        from limelight.sources.langgraph.history import messages_of

        kept = await self._state(config)
        if kept is None or not kept.next:
            raise Interrupted("the graph has no state any more from which this run could go on")
        translator.past(message.id for message in messages_of(kept.values))
        stops = translator.waits_for(kept.interrupts, left)
        if not stops and left.requests[-1].name != BREAKPOINT:
            raise Interrupted("a tool had asked this question itself, and is gone with the server that ended")
        return await self._asked(turn, config, stops)

    async def _at_breakpoint(self, turn: Turn, config: Any) -> bool:
        """A graph that was compiled to stop before or after some nodes says nothing; its state tells where it is."""
        state = await self._state(config)
        if state is None or not state.next:
            return False
        return bool(await turn.context.approve(BREAKPOINT, {"next": list(state.next)}, decisions=("approve", "reject")))

    async def _ended(self, config: Any, translator: LangGraphTranslator, code: str) -> list[Item]:
        from limelight.sources.langgraph.final_answer import answer_in, changed

        kept = await self._state(config)
        values = translator.values if kept is None else kept.values
        if kept is not None and kept.next:  # broken off: what it has not changed is the answer of an earlier turn
            values = changed(translator.began_with, values)
        answer, raw_id = (None, None) if code else answer_in(self._graph, values)
        return translator.end(answer, raw_id, code)


def _ask(turn: Turn, question: Question) -> Coroutine[Any, Any, Approval]:
    return turn.context.approve(
        question.name,
        question.args,
        call_id=question.call.call_id if question.call else "",
        agent_id=question.agent_id,
        decisions=question.decisions,
    )


def _place_here() -> Namespace:
    """Where in the graph the code runs that asks: LangChain keeps that in a variable of its context."""
    from langchain_core.runnables.config import var_child_runnable_config

    config: Any = var_child_runnable_config.get() or {}
    return place_of(str(config.get("configurable", {}).get("checkpoint_ns") or ""))


def _config(turn: Turn) -> dict[str, Any]:
    return {"configurable": {"thread_id": turn.memory_key, **known(turn.context)}}


def _is(target: object, name: str) -> bool:
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == "langgraph" for base in type(target).__mro__
    )
