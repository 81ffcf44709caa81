"""Source for Agno's workflows: runs a copy of a workflow for each turn, and requests approvals when Agno pauses it.

A workflow without a database gets Limelight's, and then its agents get the earlier turns of the session. This module
must not import Agno.
"""

from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import msgspec

from limelight.errors import AgentFailed, Interrupted
from limelight.json_values import fields_of, items_of
from limelight.sources.agno.approvals import (
    StepRequest,
    decide_error,
    decide_step,
    error_request,
    open_requirements,
    step_request,
)
from limelight.sources.agno.files import media_arguments
from limelight.sources.agno.source import AgnoSource, Start
from limelight.sources.agno.translator import AgnoTranslator
from limelight.sources.agno.workflow_translator import WorkflowTranslator
from limelight.sources.base import Approval, Item, Turn
from limelight.sources.resume_state import ResumeState

MAX_ASKED = 5
"""How often a person is asked for the input of a step if it is not valid."""


class WorkflowSource(AgnoSource):
    """Source that runs an `agno.workflow.Workflow`. `AgnoSource(workflow)` creates it."""

    def _copy(self) -> Any:
        return self._copy_for(None)[0]

    def _copy_for(self, turn: Turn | None) -> tuple[Any, Any]:
        """Return a copy of the workflow for a turn, and the branches that run in it."""
        from limelight.sources.agno.workflow_steps import Branches, copy_workflow

        branches = Branches()
        instructions = "" if turn is None else turn.instructions
        return copy_workflow(self._target, self._db, instructions, branches), branches

    async def _start(self, turn: Turn) -> Start:
        workflow, branches = self._copy_for(turn)
        await self._load_history(workflow, turn)
        run_id = str(uuid4())
        stream = workflow.arun(
            input=_input(workflow, turn.question.text),
            run_id=run_id,
            session_id=turn.memory_key,
            user_id=turn.context.user.user_id,
            stream=True,
            stream_events=True,
            **media_arguments(turn.question),
        )
        return Start(workflow, WorkflowTranslator(run_id, turn.max_steps), stream=stream, stop=branches.stop)

    async def _restart(self, turn: Turn, state: ResumeState) -> Start:
        workflow, branches = self._copy_for(turn)
        session = await workflow.aget_session(turn.memory_key)
        paused = [run for run in (session.runs if session else None) or () if run.is_paused and not run.parent_run_id]
        if not paused:
            raise Interrupted("Agno's database does not have the run any more that waited")
        translator = WorkflowTranslator(paused[-1].run_id, turn.max_steps)
        translator.restore(state, paused[-1].run_id)
        return Start(workflow, translator, output=paused[-1], stop=branches.stop)

    async def _continue(self, turn: Turn, agent: Any, output: Any) -> Any:
        return await agent.acontinue_run(run_response=output, stream=True, stream_events=True)

    async def _final_output(self, turn: Turn, agent: Any, translator: AgnoTranslator, output: Any) -> Any:
        """Return the workflow's run from its database if it is paused; Agno's stream does not contain it."""
        if not isinstance(translator, WorkflowTranslator) or not translator.is_paused:
            return None
        run = await agent.aget_run_output(run_id=translator.run_id, session_id=turn.memory_key)
        return run if run is not None and run.is_paused else None

    async def _load_history(self, agent: Any, turn: Turn) -> None:
        """Write the history of the request or of the log into a new session of Agno, for this turn and later ones."""
        from limelight.sources.agno.history import has_initial_history, start_workflow_session
        from limelight.sources.agno.workflow_steps import enable_history

        await self._wait_until_saved(turn.memory_key)
        session = await agent.aget_session(turn.memory_key)
        if session is None:
            history = await turn.history()
            if history:
                enable_history(agent)
                await start_workflow_session(agent, turn.memory_key, turn.context.user.user_id, history)
        elif has_initial_history(session):
            enable_history(agent)

    async def _decide(self, turn: Turn, translator: AgnoTranslator, output: Any) -> AsyncGenerator[Item, None]:
        """Request the approvals of a paused workflow: of calls of a step's agent, or of the step itself."""
        for error in output.active_error_requirements:
            decide_error(error, await self._approve(turn, error_request(error)))
        if output.error_requirements:
            return
        for requirement in items_of(output.step_requirements)[-1:]:
            if requirement.requires_executor_input:
                async for item in self._decide_calls(turn, translator, requirement):
                    yield item
            elif not requirement.is_resolved:
                await self._decide_step(turn, requirement)

    async def _decide_calls(
        self, turn: Turn, translator: AgnoTranslator, requirement: Any
    ) -> AsyncGenerator[Item, None]:
        from agno.run.requirement import RunRequirement

        given = items_of(requirement.executor_requirements)
        calls = [RunRequirement.from_dict(fields) if (fields := fields_of(call)) else call for call in given]
        paused = SimpleNamespace(requirements=calls, executor_run_id=requirement.executor_run_id)
        if open_requirements(paused):
            async for item in super()._decide(turn, translator, paused):
                yield item
        requirement.executor_requirements = calls

    async def _decide_step(self, turn: Turn, requirement: Any) -> None:
        """Request the decision about a step, again if the person's input is not valid."""
        request, problem = step_request(requirement), ""
        for _ in range(MAX_ASKED):
            args = {**request.args, "error": problem} if problem else request.args
            problem = decide_step(requirement, await self._approve(turn, request._replace(args=args)))
            if not problem:
                return
        raise AgentFailed(f"The step {request.name} got no valid input: {problem}")

    async def _approve(self, turn: Turn, request: StepRequest) -> Approval:
        asking = turn.context.approve(
            request.name,
            request.args,
            decisions=request.decisions,
            question=request.question,
            answer_schema=request.answer_schema,
        )
        return (await turn.context.together(asking))[0]


def _input(workflow: Any, text: str) -> Any:
    """Return the input of a workflow: the text, or the object in it if the workflow has a schema for its input."""
    if getattr(workflow, "input_schema", None) is None:
        return text
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return text
