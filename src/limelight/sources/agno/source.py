"""An Agno agent or team as an agent of ours: a copy of it for each turn, its stream translated, its pauses asked for.

It must not import Agno: it is loaded to find out who takes a target. What needs Agno is imported where it is used.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

from limelight.addresses import without_secrets
from limelight.errors import Interrupted
from limelight.events import AnyEvent
from limelight.sources.agno.agent_copy import for_turn, with_past
from limelight.sources.agno.approvals import answer, open_requirements, question, tie_together, waits_for
from limelight.sources.agno.cancellation import cancel_tools, name_at_work, tasks_that_write
from limelight.sources.agno.current_run import run_id_here
from limelight.sources.agno.files import sent_along
from limelight.sources.agno.rejected_calls import REFUSALS
from limelight.sources.agno.translator import AgnoTranslator
from limelight.sources.base import NO_OPTIONS, SPEAKER, Feature, Home, Item, Options, Source, Turn, first_line
from limelight.sources.resume_state import SoFar
from limelight.sources.running_threads import tell_what_goes_on

DATABASE = "agno.db"
KINDS = {"Agent": "agno.agent", "Team": "agno.team"}
"""The classes that are taken, and where they are defined."""
WRITING_SECONDS = 2.0
"""How long Agno may take to write a run down that was cut off."""
STREAMED: dict[str, Any] = {"stream": True, "stream_events": True, "yield_run_output": True}


class Scene(NamedTuple):
    """Where a turn begins: Agno's stream, or its run that waits for a person."""

    agent: Any
    translator: AgnoTranslator
    stream: Any = None
    output: Any = None


class AgnoSource(Source):
    """Wraps an `agno.agent.Agent` or an `agno.team.Team`."""

    framework: ClassVar[str] = "agno"
    LACKS: ClassVar[Mapping[Feature, str]] = {
        "argument_deltas": "Agno tells of a call once its arguments are whole",
        "code": "Agno has no agent that acts by writing code",
        "stop_in_a_sync_tool": "Agno runs it in a thread, which cannot be broken off",
    }
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"max_steps"})
    keeps_memory: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        self._target: Any = target
        self._db: Any = None
        self._writing: dict[asyncio.Task[Any], str] = {}
        """What Agno still writes down of runs that were cut off, by the task that does it: of which conversation."""

    @classmethod
    def accepts(cls, target: object) -> bool:
        return any(f"{base.__module__}.".startswith(f"{KINDS.get(base.__name__)}.") for base in type(target).__mro__)

    @property
    def description(self) -> str:
        return first_line(self._target.description or self._target.role)

    async def open(self, home: Home) -> None:
        if self._target.db is None:
            from agno.db.sqlite import AsyncSqliteDb

            self._db = AsyncSqliteDb(db_file=str(home.data / DATABASE))

    async def close(self) -> None:
        if self._db is None:
            return
        await self._written_down(*self._writing.values())
        await self._db.close()

    async def forget(self, memory_key: str) -> None:
        await self._written_down(memory_key)
        await for_turn(self._target, self._db, "").adelete_session(memory_key)

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._play(turn, partial(self._begin, turn))

    def resume(self, turn: Turn, so_far: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        return self._play(turn, partial(self._find_again, turn, SoFar(so_far)))

    async def _begin(self, turn: Turn) -> Scene:
        agent = for_turn(self._target, self._db, turn.instructions)
        await self._recall(agent, turn)
        asked = turn.question
        stream = agent.arun(asked.text, run_id=str(uuid4()), **sent_along(asked), **self._known(turn))
        return Scene(agent, AgnoTranslator(turn.max_steps, _address_of(agent)), stream=stream)

    async def _find_again(self, turn: Turn, left: SoFar) -> Scene:
        agent = for_turn(self._target, self._db, "")
        session = await agent.aget_session(turn.memory_key)
        asked = {request.call_id for request in left.requests}
        paused = [run for run in (session.runs if session else None) or () if waits_for(run, asked)]
        if not paused:
            raise Interrupted("Agno's database does not have the run any more that waited")
        tie_together(paused[-1])
        translator = AgnoTranslator(turn.max_steps, _address_of(agent))
        translator.restore(left, paused[-1].run_id)
        return Scene(agent, translator, output=paused[-1])

    def _known(self, turn: Turn) -> dict[str, Any]:
        who = {"session_id": turn.memory_key, "user_id": turn.context.user.user_id}
        return {**who, "dependencies": self._dependencies(turn), **STREAMED}

    # One generator from Agno to the engine, and none in between: every token goes through all of them.
    async def _play(self, turn: Turn, set_up: Callable[[], Awaitable[Scene]]) -> AsyncGenerator[Item, None]:
        """Follow Agno's stream; where there is none, or it ends in a pause, ask people first and then go on."""
        scene = await set_up()
        agent, translator, stream = scene.agent, scene.translator, scene.stream
        output: Any = scene.output
        SPEAKER.set(lambda: translator.agent_of(run_id_here()))
        REFUSALS.set(translator.refusals)
        try:
            while stream is not None or getattr(output, "is_paused", False):
                if stream is None:
                    async for item in self._decided(turn, translator, output):
                        yield item
                    requirements = output.requirements
                    stream = agent.acontinue_run(run_response=output, requirements=requirements, **self._known(turn))
                    output = None
                async with aclosing(stream):
                    async for event in stream:
                        if not hasattr(event, "event"):
                            output = event
                            continue
                        for item in translator.feed(event):
                            yield item
                        if translator.over:
                            return
                stream = None
            for item in translator.end(output):
                yield item
        finally:
            cancel_tools(translator.run_ids)
            for task in tasks_that_write(turn.memory_key):
                self._writing[task] = turn.memory_key
                task.add_done_callback(lambda done: self._writing.pop(done, None))
            tell_what_goes_on(turn.context, name_at_work)

    async def _written_down(self, *memory_keys: str) -> None:
        """Wait until Agno has written down what was cut off in these conversations."""
        writing = [task for task, key in self._writing.items() if key in memory_keys]
        if writing:
            await asyncio.wait(writing, timeout=WRITING_SECONDS)

    async def _recall(self, agent: Any, turn: Turn) -> None:
        """Give the agent the conversation's past, if it has nothing of it yet. An agent that looks at no past, but was
        sent one, gets that and what follows: who sends a conversation means it."""
        from limelight.sources.agno.history import begin, mend, was_given

        await self._written_down(turn.memory_key)
        session = await agent.aget_session(turn.memory_key)
        if session is None:
            past = await turn.history()
            if past:
                with_past(agent)
                await begin(agent, turn.memory_key, turn.context.user.user_id, past)
        elif not agent.add_history_to_context:
            if was_given(session):
                with_past(agent)
        elif self._db is not None:  # a database of the user's own stays as Agno writes it
            await mend(agent, session)

    def _dependencies(self, turn: Turn) -> dict[str, Any] | None:
        """Who asks, for tools. Not if the model would be told: it gets what it would get without us."""
        if self._target.add_dependencies_to_context:
            return None
        context = turn.context
        ours = {"session_id": context.session_id, "user_id": context.user.user_id, "user_name": context.user.name}
        own: dict[str, Any] = self._target.dependencies or {}
        return {name: value for name, value in ours.items() if name not in own}

    async def _decided(self, turn: Turn, translator: AgnoTranslator, output: Any) -> AsyncGenerator[Item, None]:
        """Show the calls that wait, ask for all of them at once, and tell Agno what was said."""
        waiting: list[Any] = []
        for requirement in open_requirements(output):
            call, run, events = translator.pause(requirement.tool_execution, requirement.member_run_id)
            for event in events:
                yield event
            waiting.append((requirement, call, run))
        asking: list[Any] = []
        for requirement, call, run in waiting:
            args, decisions = question(requirement)
            ids = {"call_id": call.call_id, "agent_id": run.agent_id}
            asking.append(turn.context.approve(call.name, args, decisions=decisions, **ids))
        approvals = await turn.context.together(*asking)
        for (requirement, call, run), approval in zip(waiting, approvals, strict=True):
            settled = answer(requirement, approval)
            for event in translator.settle(run, call, settled.result, settled.error) if settled else ():
                yield event


def _address_of(agent: Any) -> str:
    """Where its model is, if that is said."""
    return without_secrets(str(getattr(getattr(agent, "model", None), "base_url", None) or ""))
