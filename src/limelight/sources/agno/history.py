"""Writes a conversation's history into Agno's database for a new session, and repairs it after a cancelled run.

Agno stores a session as runs, each with its messages. A history from a client or from the log is written as such runs,
one for each question, before the first run of the agent. This module imports Agno, so it is imported only when an agent
runs.
"""

import inspect
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from agno.models.message import Message as AgnoMessage
from agno.run.agent import RunInput, RunOutput
from agno.run.base import RunStatus
from agno.run.team import TeamRunInput, TeamRunOutput
from agno.run.workflow import WorkflowRunOutput
from agno.session import AgentSession, TeamSession, WorkflowSession

from limelight.json_values import fields_of
from limelight.messages import Message
from limelight.sources.agno.files import media_arguments
from limelight.sources.history import CUT_OFF, normalized

GIVEN = "limelight_past"
"""Metadata key of Agno sessions that were created with a history from a client or from the log."""
TURN_CUT_OFF = "(This turn was cut off here.)"
CANCELLED = (RunStatus.cancelled, RunStatus.paused)
"""The statuses of a stopped run, which Agno leaves out of the history and `repair_session` adds again. Failed runs are
not added, because their messages may contain the cause of the failure."""


async def start_session(agent: Any, session_id: str, user_id: str, history: Sequence[Message]) -> None:
    """Create a session in Agno's database with a history from a client or from the log."""
    is_team = hasattr(agent, "members")
    owner = {"team_id": agent.id} if is_team else {"agent_id": agent.id}
    session = (TeamSession if is_team else AgentSession)(
        session_id=session_id, user_id=user_id, session_data={"session_state": {}}, metadata={GIVEN: True}, **owner
    )
    await agent.asave_session(session)
    for index, messages in enumerate(turns_of(history)):
        run = _run(is_team, owner, session_id, user_id, messages)
        await _save(agent.db.upsert_run(run, session_id=session_id, user_id=user_id, run_index=index))


async def start_workflow_session(workflow: Any, session_id: str, user_id: str, history: Sequence[Message]) -> None:
    """Create a session of a workflow with a history: for each turn, a run with the question and the answer."""
    session = WorkflowSession(
        session_id=session_id,
        user_id=user_id,
        workflow_id=workflow.id,
        workflow_name=workflow.name,
        session_data={"session_state": {}},
        metadata={GIVEN: True},
    )
    await workflow.asave_session(session)
    for index, turn in enumerate(turns_of(history)):
        answers = [message.text for message in turn if message.role == "assistant"]
        run = WorkflowRunOutput(
            run_id=str(uuid4()),
            session_id=session_id,
            user_id=user_id,
            workflow_id=workflow.id,
            workflow_name=workflow.name,
            input=turn[0].text if turn[0].role == "user" else "",
            content=answers[-1] if answers else "",
            status=RunStatus.completed,
        )
        await _save(workflow.db.upsert_run(run, session_id=session_id, user_id=user_id, run_index=index))


def has_initial_history(session: Any) -> bool:
    """Whether Limelight created a session of Agno with an earlier history, from a client or from the log."""
    return bool(fields_of(session.metadata).get(GIVEN))


async def repair_session(agent: Any, session: Any) -> None:
    """Add the session's last run to the agent's history if it was stopped, with a result for every tool call."""
    last = next((run for run in reversed(session.runs or ()) if run.parent_run_id is None), None)
    if last is None or last.status not in CANCELLED or not last.messages:
        return
    last.messages = _completed(last.messages)
    last.status = RunStatus.completed
    await _save(agent.db.upsert_run(last, session_id=session.session_id, user_id=session.user_id))


async def _save(saved: Any) -> None:
    """Await what a method of Agno's database has returned, if the database is async."""
    if inspect.isawaitable(saved):
        await saved


def _completed(messages: list[AgnoMessage]) -> list[AgnoMessage]:
    """Return the messages of a stopped run, completed with a result for every call and an answer at the end."""
    answered = {message.tool_call_id for message in messages if message.role == "tool"}
    completed: list[AgnoMessage] = []
    for message in messages:
        completed.append(message)
        ids = [call.get("id") for call in message.tool_calls or ()]
        completed += [AgnoMessage(role="tool", tool_call_id=i, content=CUT_OFF) for i in ids if i not in answered]
    has_answer = completed[-1].role == "assistant"
    return completed if has_answer else [*completed, AgnoMessage(role="assistant", content=TURN_CUT_OFF)]


def turns_of(history: Sequence[Message]) -> list[list[Message]]:
    """Normalize a history and split it into turns; each turn, except possibly the first, begins with a question."""
    turns: list[list[Message]] = []
    for message in normalized(history):
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _run(is_team: bool, owner: dict[str, Any], session_id: str, user_id: str, turn: list[Message]) -> Any:
    answers = [message.text for message in turn if message.role == "assistant"]
    make: Any = TeamRunOutput if is_team else RunOutput
    return make(
        run_id=str(uuid4()),
        session_id=session_id,
        user_id=user_id,
        input=(TeamRunInput if is_team else RunInput)(input_content=turn[0].text),
        content=answers[-1] if answers else "",
        messages=[_message(message) for message in turn],
        status=RunStatus.completed,
        **owner,
    )


def _message(message: Message) -> AgnoMessage:
    fields: dict[str, Any] = {
        "role": message.role,
        "content": message.text.encode("utf-8", "replace").decode() or None,
        "tool_calls": message.get("tool_calls") or None,
        "tool_call_id": message.get("tool_call_id"),
        "tool_name": message.get("name") if message.role == "tool" else None,
    }
    return AgnoMessage(**fields, **(media_arguments(message) if message.role == "user" else {}))
