"""Writes the v2 messages for all events other than texts, steps and tool calls.

These are the user's input, todo lists, sub-agents, approvals, statuses, sources, usage, files and the end of a run.
"""

import re
from collections.abc import Callable

from limelight.dialects.base import STOPPED, outcome_field, truncation_fields
from limelight.dialects.v2.message_writer import MessageWriter, Metadata, cost, error_type, step_number
from limelight.dialects.v2.steps import Steps
from limelight.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    Event,
    Plan,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    Terminal,
    Usage,
)
from limelight.links import artifact_url, link

CHECKBOXES = {"completed": "x", "in_progress": "~", "pending": " "}
END_TEXTS = {"max_steps": "The agent stopped at its limit of steps."}


class Notices:
    """Writes v2 messages on input, todo lists, sub-agents, approvals, statuses, sources, usage, files and run ends."""

    def __init__(self, writer: MessageWriter, steps_of: Callable[[str], Steps], root: str) -> None:
        self._writer = writer
        self._root = root
        self._steps_of = steps_of

    def user_input(self, event: RunStarted) -> None:
        message_id = self._writer.new_id()
        self._writer.write_with_id("user", event.input, message_id, "", truncation_fields(event), role="user")

    def todos(self, event: Plan) -> None:
        items = [{"content": todo.content, "status": todo.status} for todo in event.items]
        lines = "\n".join(f"- [{CHECKBOXES.get(todo.status, ' ')}] {todo.content}" for todo in event.items)
        metadata: Metadata = {"items": items, "is_update_plan": event.update, **self._step_number(event)}
        self._writer.write("todos", lines, event.agent_id, **metadata)

    def agent(self, event: AgentStarted | AgentFinished) -> None:
        if isinstance(event, AgentStarted):
            metadata: Metadata = {"parent_id": event.parent_id, "tool_id": event.call_id, "is_active": True}
            metadata |= {"agent_title": event.title} if event.title else {}
            metadata |= {"is_branch": True} if event.branch else {}
            self._writer.write("agent_start", event.name, event.agent_id, **metadata)
        else:
            error = {} if event.error is None else {"error": True, "error_type": error_type(event.error, "AgentError")}
            self._writer.write(
                "agent_end", event.error or "", event.agent_id, is_active=False, **error, **outcome_field(event)
            )

    def approval(self, event: ApprovalRequested | ApprovalResolved) -> None:
        metadata: Metadata = {"approval_id": event.approval_id, **self._step_number(event), **truncation_fields(event)}
        if isinstance(event, ApprovalRequested):
            metadata |= {"tool_name": event.name, "tool_id": event.call_id, "args": event.args}
            metadata |= {"decisions": list(event.decisions), "expires_at": event.expires_at, "is_active": True}
            if event.question:
                metadata["question"] = event.question
            if event.answer_schema is not None:
                metadata["answer_schema"] = event.answer_schema
            self._writer.write("approval_request", f"{event.name} waits for approval.", event.agent_id, **metadata)
            return
        metadata |= {"decision": event.decision, "args": event.args, "reason": event.reason, "by": event.by}
        if event.answered:
            metadata["answered"] = True
        self._writer.write("approval_resolved", event.decision, event.agent_id, is_active=False, **metadata)

    def status(self, event: Status) -> None:
        self._writer.write("status", event.text, event.agent_id, **self._step_number(event))

    def source(self, event: SourceCited) -> None:
        metadata = {"title": event.title, "url": event.url, "truncated": event.truncated}
        self._writer.write("source", event.text or event.title, event.agent_id, **self._step_number(event), **metadata)

    def usage(self, event: Usage) -> None:
        metadata: Metadata = {"model": event.model, **cost(event.input_tokens, event.output_tokens, None)}
        self._writer.write("usage", "", event.agent_id, **self._step_number(event), **metadata)

    def file(self, event: ArtifactMade) -> None:
        url = link(self._root, artifact_url(event.artifact_id))
        named = {"artifact_id": event.artifact_id, "name": event.name, "mime_type": event.media_type, "url": url}
        metadata: Metadata = {**self._step_number(event), **named, "size": event.size, "tool_id": event.call_id}
        if event.media_type.startswith("image/"):
            self._writer.write("observation_image", f"![Image]({url})", event.agent_id, **metadata, image_path=url)
        else:
            self._writer.write("artifact", f"[{_link_label(event.name)}]({url})", event.agent_id, **metadata)

    def run_end(self, event: Terminal) -> None:
        match event:
            case RunFailed():
                kind = error_type(event.message, "".join(word.capitalize() for word in event.code.split("_")))
                metadata: Metadata = {"error": True, "error_type": kind, "code": event.code, "error_id": event.error_id}
                self._writer.write("error", f"Error: {event.message}", **metadata)
            case RunCancelled():
                self._writer.write("status", STOPPED, reason=event.reason)
            case RunFinished() if event.code:
                self._writer.write("status", END_TEXTS.get(event.code, event.code), code=event.code)
            case RunFinished():
                pass

    def _step_number(self, event: Event) -> Metadata:
        return step_number(self._steps_of(event.agent_id).number)


def _link_label(name: str) -> str:
    """Escape a name for use as the label of a markdown link."""
    return re.sub(r"([\[\]\\])", r"\\\1", name)
