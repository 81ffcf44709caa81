"""A conversation's past in Agno's database: whether it is there, how it gets there, how it goes.

Agno keeps a session of runs, each with its messages. A past that somebody else kept is written as such runs, one for
each question, before the first run of ours; from then on it is Agno's own. Imports Agno, so only methods import it.
"""

import inspect
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from agno.models.message import Message as AgnoMessage
from agno.run.agent import RunInput, RunOutput
from agno.run.base import RunStatus
from agno.run.team import TeamRunInput, TeamRunOutput
from agno.session import AgentSession, TeamSession

from limelight.messages import Message
from limelight.sources.agno.files import sent_along
from limelight.sources.history import put_right
from limelight.sources.values import fields_of

UNANSWERED = "This call was cut off before it had a result."
GIVEN = "limelight_past"
"""How a session is marked that began with a past."""
CUT = "(This turn was cut off here.)"
CUT_OFF = (RunStatus.cancelled, RunStatus.paused)
"""How Agno marks a run that was stopped. It leaves such runs out of the history; a failed one stays out, for what broke
it may be among its messages."""


async def begin(agent: Any, session_id: str, user_id: str, past: Sequence[Message]) -> None:
    """Write a past into a session that has none."""
    is_team = hasattr(agent, "members")
    owner = {"team_id": agent.id} if is_team else {"agent_id": agent.id}
    session = (TeamSession if is_team else AgentSession)(
        session_id=session_id, user_id=user_id, session_data={"session_state": {}}, metadata={GIVEN: True}, **owner
    )
    await agent.asave_session(session)
    for index, messages in enumerate(turns_of(past)):
        run = _run(is_team, owner, session_id, user_id, messages)
        saved = agent.db.upsert_run(run, session_id=session_id, user_id=user_id, run_index=index)
        if inspect.isawaitable(saved):
            await saved


def was_given(session: Any) -> bool:
    """Whether a session began with a past of ours."""
    return bool(fields_of(session.metadata).get(GIVEN))


async def mend(agent: Any, session: Any) -> None:
    """Let the agent remember a turn that was stopped: what was asked and done, every call with an answer."""
    last = next((run for run in reversed(session.runs or ()) if run.parent_run_id is None), None)
    if last is None or last.status not in CUT_OFF or not last.messages:
        return
    last.messages = _mended(last.messages)
    last.status = RunStatus.completed
    saved = agent.db.upsert_run(last, session_id=session.session_id, user_id=session.user_id)
    if inspect.isawaitable(saved):
        await saved


def _mended(messages: list[AgnoMessage]) -> list[AgnoMessage]:
    answered = {message.tool_call_id for message in messages if message.role == "tool"}
    made: list[AgnoMessage] = []
    for message in messages:
        made.append(message)
        ids = [call.get("id") for call in message.tool_calls or ()]
        made += [AgnoMessage(role="tool", tool_call_id=i, content=UNANSWERED) for i in ids if i not in answered]
    return made if made[-1].role == "assistant" else [*made, AgnoMessage(role="assistant", content=CUT)]


def turns_of(past: Sequence[Message]) -> list[list[Message]]:
    """The past in turns: each begins with a question, and every call in it has its answer."""
    turns: list[list[Message]] = []
    for message in put_right(past):
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return [whole(turn) for turn in turns]


def whole(turn: Sequence[Message]) -> list[Message]:
    """A turn that a model accepts: calls without an answer get one."""
    answered = {message.get("tool_call_id") for message in turn if message.role == "tool"}
    made: list[Message] = []
    for message in turn:
        made.append(message)
        ids = [call.get("id") for call in message.get("tool_calls") or ()]
        made += [Message(role="tool", tool_call_id=i, content=UNANSWERED) for i in ids if i not in answered]
    return made


def _run(is_team: bool, owner: dict[str, Any], session_id: str, user_id: str, turn: list[Message]) -> Any:
    said = [message.text for message in turn if message.role == "assistant"]
    make: Any = TeamRunOutput if is_team else RunOutput
    asked = (TeamRunInput if is_team else RunInput)(input_content=turn[0].text)
    return make(
        run_id=str(uuid4()),
        session_id=session_id,
        user_id=user_id,
        input=asked,
        content=said[-1] if said else "",
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
    return AgnoMessage(**fields, **(sent_along(message) if message.role == "user" else {}))
