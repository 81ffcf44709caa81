"""Source for Agno: runs a copy of an agent or team for each turn, and requests approvals when Agno pauses the run.

A workflow gets a subclass of the source, `workflow.WorkflowSource`.

This module must not import Agno, because all sources are loaded to select one for a target.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4
from weakref import WeakValueDictionary

from limelight.errors import Interrupted, SetupError
from limelight.events import AnyEvent
from limelight.private_files import create_private_database
from limelight.redaction.rules import strip_credentials
from limelight.sources.agno.approvals import (
    apply_decision,
    approval_request,
    is_waiting_for,
    link_requirements,
    open_requirements,
)
from limelight.sources.agno.files import media_arguments
from limelight.sources.agno.instrument import (
    REJECTIONS,
    cancel_tools,
    copy_for_turn,
    current_run_id,
    enable_history,
    saving_tasks,
    tool_of_frame,
)
from limelight.sources.agno.translator import AgnoTranslator
from limelight.sources.base import (
    CURRENT_AGENT_ID,
    NO_OPTIONS,
    AgentResources,
    Feature,
    Item,
    Options,
    Source,
    Turn,
    first_line,
    is_instance,
)
from limelight.sources.leftover_threads import report_running_tools
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_calls import UniqueIds

log = logging.getLogger(__name__)

DATABASE = "agno.db"
DATABASES: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, Path], Any] = WeakValueDictionary()
"""The open databases by event loop and file. The agents of a server share one database: with separate ones, two
concurrent first turns would both create the tables, and one turn would not be saved."""
CLASSES = {"Agent": "agno.agent", "Team": "agno.team", "Workflow": "agno.workflow"}
"""Names of the Agno classes that the source accepts, and the modules that define them."""
SAVE_SECONDS = 2.0
"""How long to wait for Agno to save a cancelled run."""
STREAM_OPTIONS: dict[str, Any] = {"stream": True, "stream_events": True, "yield_run_output": True}


class Start(NamedTuple):
    """How a turn of an Agno agent starts: with Agno's stream, or with a paused run that waits for a person."""

    agent: Any
    translator: AgnoTranslator
    stream: Any = None
    output: Any = None
    stop: Callable[[], None] = lambda: None
    """Cancels what Agno leaves running when its stream closes, besides tools."""


class AgnoSource(Source):
    """Source that runs an `agno.agent.Agent`, an `agno.team.Team` or an `agno.workflow.Workflow`."""

    framework: ClassVar[str] = "agno"
    LACKS: ClassVar[Mapping[Feature, str]] = {
        "argument_deltas": "Agno reports a call when its arguments are complete",
        "code": "Agno has no agent that acts by writing code",
        "stop_in_a_sync_tool": "Agno runs it in a thread, which cannot be interrupted",
    }
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"max_steps"})
    keeps_memory: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __new__(cls, target: object, options: Options = NO_OPTIONS) -> "AgnoSource":
        """Create the source of an agent or team, or the subclass for a workflow."""
        if is_instance(target, CLASSES["Workflow"], "Workflow"):
            from limelight.sources.agno.workflow import WorkflowSource

            return object.__new__(WorkflowSource)
        return object.__new__(cls)

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        self._target: Any = target
        self._db: Any = None
        self._saving: dict[asyncio.Task[Any], str] = {}
        """The asyncio tasks in which Agno saves cancelled runs, each with the memory key of its conversation."""

    @classmethod
    def accepts(cls, target: object) -> bool:
        return any(is_instance(target, module, name) for name, module in CLASSES.items())

    @classmethod
    def agents_in(cls, target: object) -> dict[str, object]:
        """Return the agents, teams and workflows of an `AgentOS` by name; {} for any other object.

        Those that run elsewhere, factories, and agents of other frameworks in it are left out with a warning in the
        log. An `AgentOS` that has nothing else raises SetupError.
        """
        if not is_instance(target, "agno.os", "AgentOS"):
            return {}
        found: dict[str, object] = {}
        left_out: list[str] = []
        names = UniqueIds()
        for field in ("agents", "teams", "workflows"):
            for held in getattr(target, field, None) or ():
                name = str(getattr(held, "name", None) or getattr(held, "id", None) or field.removesuffix("s"))
                if cls.accepts(held):
                    found[names.assign(name)] = held
                else:
                    left_out.append(f"{name} ({type(held).__name__})")
        if left_out and not found:
            raise SetupError(f"the AgentOS has no agent, team or workflow of Agno, only {', '.join(left_out)}")
        for one in left_out:
            log.warning("Not served: %s of the AgentOS, which is no agent, team or workflow of Agno", one)
        return found

    @property
    def description(self) -> str:
        return first_line(self._target.description or getattr(self._target, "role", None))

    async def open(self, resources: AgentResources) -> None:
        if self._target.db is None:
            from agno.db.sqlite import AsyncSqliteDb

            file = resources.data / DATABASE
            with suppress(OSError):  # SQLite reports why the file cannot be created
                create_private_database(file)
            key = (asyncio.get_running_loop(), file)
            self._db = DATABASES.get(key) or AsyncSqliteDb(db_file=str(file))
            DATABASES[key] = self._db

    async def close(self) -> None:
        if self._db is None:
            return
        await self._wait_until_saved(*self._saving.values())
        await self._db.close()

    async def forget(self, memory_key: str) -> None:
        await self._wait_until_saved(memory_key)
        await self._copy().adelete_session(memory_key)

    def _copy(self) -> Any:
        """Return a copy of the agent that reads and deletes sessions."""
        return copy_for_turn(self._target, self._db, "")

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        return self._run(turn, partial(self._start, turn))

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        return self._run(turn, partial(self._restart, turn, ResumeState(events)))

    async def _start(self, turn: Turn) -> Start:
        agent = copy_for_turn(self._target, self._db, turn.instructions)
        await self._load_history(agent, turn)
        question = turn.question
        media = media_arguments(question)
        stream = agent.arun(question.text, run_id=str(uuid4()), **media, **self._run_arguments(turn))
        return Start(agent, AgnoTranslator(turn.max_steps, _model_address(agent)), stream=stream)

    async def _restart(self, turn: Turn, state: ResumeState) -> Start:
        agent = copy_for_turn(self._target, self._db, "")
        session = await agent.aget_session(turn.memory_key)
        call_ids = {request.call_id for request in state.requests}
        paused = [run for run in (session.runs if session else None) or () if is_waiting_for(run, call_ids)]
        if not paused:
            raise Interrupted("the waiting run is no longer in Agno's database")
        link_requirements(paused[-1])
        translator = AgnoTranslator(turn.max_steps, _model_address(agent))
        translator.restore(state, paused[-1].run_id)
        return Start(agent, translator, output=paused[-1])

    def _run_arguments(self, turn: Turn) -> dict[str, Any]:
        ids = {"session_id": turn.memory_key, "user_id": turn.context.user.user_id}
        return {**ids, "dependencies": self._dependencies(turn), **STREAM_OPTIONS}

    # There is only one generator between Agno and the engine, because each costs time for every token.
    async def _run(self, turn: Turn, start: Callable[[], Awaitable[Start]]) -> AsyncGenerator[Item, None]:
        """Yield the events of a turn; whenever Agno pauses the run, request approvals and continue it."""
        agent, translator, stream, first_output, stop = await start()
        output: Any = first_output
        CURRENT_AGENT_ID.set(lambda: translator.agent_id_of(current_run_id()))
        REJECTIONS.set(translator.rejections)
        try:
            while stream is not None or getattr(output, "is_paused", False):
                if stream is None:
                    async for item in self._decide(turn, translator, output):
                        yield item
                    translator.continue_from(output)
                    stream = await self._continue(turn, agent, output)
                    output = None
                async with aclosing(stream):
                    async for event in stream:
                        if not hasattr(event, "event"):
                            output = event
                            continue
                        for item in translator.feed(event):
                            yield item
                        if translator.ended:
                            return
                stream = None
                output = await self._final_output(turn, agent, translator, output)
            for item in translator.end(output):
                yield item
        finally:
            stop()
            cancel_tools(translator.run_ids)
            for task in saving_tasks(turn.memory_key):
                self._saving[task] = turn.memory_key
                task.add_done_callback(lambda done: self._saving.pop(done, None))
            report_running_tools(turn.context, tool_of_frame)

    async def _continue(self, turn: Turn, agent: Any, output: Any) -> Any:
        """Return Agno's stream of a run that continues after its requirements were resolved."""
        return agent.acontinue_run(run_response=output, requirements=output.requirements, **self._run_arguments(turn))

    async def _final_output(self, turn: Turn, agent: Any, translator: AgnoTranslator, output: Any) -> Any:
        """Return Agno's record of the run whose stream has ended; `output` is the record in the stream."""
        return output

    async def _wait_until_saved(self, *memory_keys: str) -> None:
        """Wait until Agno has saved the cancelled runs of these conversations."""
        tasks = [task for task, key in self._saving.items() if key in memory_keys]
        if tasks:
            await asyncio.wait(tasks, timeout=SAVE_SECONDS)

    async def _load_history(self, agent: Any, turn: Turn) -> None:
        """Write the history into a new session of Agno, or repair the history of an existing session.

        A client that sends a history expects the agent to use it. The agent therefore uses the history in this turn and
        in later ones, even if its own setting is to use none.
        """
        from limelight.sources.agno.history import has_given_history, repair_session, start_session

        await self._wait_until_saved(turn.memory_key)
        session = await agent.aget_session(turn.memory_key)
        if session is None:
            history = await turn.history()
            if history:
                enable_history(agent)
                await start_session(agent, turn.memory_key, turn.context.user.user_id, history)
        elif not agent.add_history_to_context:
            if has_given_history(session):
                enable_history(agent)
        elif self._db is not None:  # the user's own database is never repaired
            await repair_session(agent, session)

    def _dependencies(self, turn: Turn) -> dict[str, Any] | None:
        """Return the session and the user as Agno dependencies, which tools can read.

        Returns None if Agno would add them to the prompt, because the prompt must not change.
        """
        if self._target.add_dependencies_to_context:
            return None
        context = turn.context
        ours = {"session_id": context.session_id, "user_id": context.user.user_id, "user_name": context.user.name}
        own: dict[str, Any] = self._target.dependencies or {}
        return {name: value for name, value in ours.items() if name not in own}

    async def _decide(self, turn: Turn, translator: AgnoTranslator, output: Any) -> AsyncGenerator[Item, None]:
        """Emit the calls of a paused run, request all their approvals at once, and apply the decisions.

        `output` is a paused run, or any object with its `requirements` and the `executor_run_id` to which they belong.
        """
        waiting: list[Any] = []
        for requirement in open_requirements(output):
            run_id = requirement.member_run_id or getattr(output, "executor_run_id", None)
            call, run, events = translator.await_approval(requirement.tool_execution, run_id)
            for event in events:
                yield event
            waiting.append((requirement, call, run))
        requests: list[Any] = []
        for requirement, call, run in waiting:
            request = approval_request(requirement)
            asking = turn.context.approve(
                call.name,
                request.args,
                call_id=call.call_id,
                agent_id=run.agent_id,
                decisions=request.decisions,
                question=request.question,
                answer_schema=request.answer_schema,
            )
            requests.append(asking)
        approvals = await turn.context.together(*requests)
        for (requirement, call, run), approval in zip(waiting, approvals, strict=True):
            outcome = apply_decision(requirement, approval)
            for event in translator.finish_call(run, call, outcome.result, outcome.error) if outcome else ():
                yield event


def _model_address(agent: Any) -> str:
    """Return the URL of the agent's model, without credentials; "" if it is unknown."""
    return strip_credentials(str(getattr(getattr(agent, "model", None), "base_url", None) or ""))
