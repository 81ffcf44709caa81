"""Everything that is neither text, step nor tool: the question, plans as lists, helpers, approvals, files, the end."""

import re
from collections.abc import Callable
from typing import assert_never

from limelight.dialects.base import cut_of
from limelight.dialects.v2.message import Metadata, error_type, numbered
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.writer import Outbox
from limelight.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    Plan,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    Usage,
)
from limelight.links import artifact_url, link

BOXES = {"completed": "x", "in_progress": "~", "pending": " "}
ENDS = {"max_steps": "The agent stopped at its limit of steps."}


class Asides:
    """One message for each event."""

    def __init__(self, outbox: Outbox, steps_of: Callable[[str], Steps], root: str) -> None:
        self._outbox = outbox
        self._root = root
        self._steps_of = steps_of

    def question(self, event: RunStarted) -> None:
        self._outbox.put("user", event.input, self._outbox.new_id(), "", cut_of(event), role="user")

    def todos(self, event: Plan) -> None:
        items = [{"content": todo.content, "status": todo.status} for todo in event.items]
        lines = "\n".join(f"- [{BOXES.get(todo.status, ' ')}] {todo.content}" for todo in event.items)
        self._outbox.send("todos", lines, event.agent_id, items=items, is_update_plan=event.update, **self._step(event))

    def agent(self, event: AgentStarted | AgentFinished) -> None:
        if isinstance(event, AgentStarted):
            about = {"parent_id": event.parent_id, "tool_id": event.call_id, "is_active": True}
            self._outbox.send("agent_start", event.name, event.agent_id, **about)
        else:
            failed = {} if event.error is None else {"error": True, "error_type": error_type(event.error, "AgentError")}
            self._outbox.send("agent_end", event.error or "", event.agent_id, is_active=False, **failed)

    def approval(self, event: ApprovalRequested | ApprovalResolved) -> None:
        about: Metadata = {"approval_id": event.approval_id, **self._step(event), **cut_of(event)}
        if isinstance(event, ApprovalRequested):
            about |= {"tool_name": event.name, "tool_id": event.call_id, "args": event.args}
            about |= {"decisions": list(event.decisions), "expires_at": event.expires_at, "is_active": True}
            self._outbox.send("approval_request", f"{event.name} waits for approval.", event.agent_id, **about)
            return
        about |= {"decision": event.decision, "args": event.args, "reason": event.reason, "by": event.by}
        self._outbox.send("approval_resolved", event.decision, event.agent_id, is_active=False, **about)

    def tell(self, event: Status | SourceCited | ArtifactMade | Usage) -> None:
        about = self._step(event)
        match event:
            case Status():
                self._outbox.send("status", event.text, event.agent_id, **about)
            case SourceCited():
                source = {"title": event.title, "url": event.url, "truncated": event.truncated}
                self._outbox.send("source", event.text or event.title, event.agent_id, **about, **source)
            case Usage():
                total = event.input_tokens + event.output_tokens
                usage = {"input_tokens": event.input_tokens, "output_tokens": event.output_tokens}
                self._outbox.send(
                    "usage",
                    "",
                    event.agent_id,
                    **about,
                    model=event.model,
                    token_usage={**usage, "total_tokens": total},
                )
            case ArtifactMade():
                self._file(event, about)
            case _:
                assert_never(event)

    def end(self, event: RunFinished | RunFailed | RunCancelled) -> None:
        match event:
            case RunFailed():
                kind = error_type(event.message, "".join(word.capitalize() for word in event.code.split("_")))
                about: Metadata = {"error": True, "error_type": kind, "code": event.code, "error_id": event.error_id}
                self._outbox.send("error", f"Error: {event.message}", **about)
            case RunCancelled():
                self._outbox.send("status", "Stopped", reason=event.reason)
            case RunFinished() if event.code:
                self._outbox.send("status", ENDS.get(event.code, event.code), code=event.code)
            case RunFinished():
                pass

    def _file(self, event: ArtifactMade, about: Metadata) -> None:
        url = link(self._root, artifact_url(event.artifact_id))
        named = {"artifact_id": event.artifact_id, "name": event.name, "mime_type": event.media_type, "url": url}
        shared: Metadata = {**about, **named, "size": event.size, "tool_id": event.call_id}
        if event.media_type.startswith("image/"):
            self._outbox.send("observation_image", f"![Image]({url})", event.agent_id, **shared, image_path=url)
        else:
            self._outbox.send("artifact", f"[{_label(event.name)}]({url})", event.agent_id, **shared)

    def _step(
        self, event: Plan | Status | SourceCited | ArtifactMade | Usage | ApprovalRequested | ApprovalResolved
    ) -> Metadata:
        return numbered(self._steps_of(event.agent_id).number)


def _label(name: str) -> str:
    """A name inside the brackets of a link."""
    return re.sub(r"([\[\]\\])", r"\\\1", name)
