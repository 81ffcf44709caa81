"""Which pane of a client shows a message: one table, which the page tests too."""

from typing import Literal

Component = Literal["chat", "webide", "terminal"]

PANES: dict[str, Component] = {
    "user": "chat",
    "status": "chat",
    "planning_header": "chat",
    "planning_content": "chat",
    "planning_footer": "chat",
    "action_header": "chat",
    "action_thought": "chat",
    "reasoning": "chat",
    "todos": "chat",
    "tool_call": "chat",
    "tool_invocation": "chat",
    "execution_logs": "terminal",
    "observation": "terminal",
    "observation_image": "chat",
    "artifact": "chat",
    "source": "chat",
    "usage": "chat",
    "agent_start": "chat",
    "agent_end": "chat",
    "approval_request": "chat",
    "approval_resolved": "chat",
    "action_footer": "chat",
    "separator": "chat",
    "final_answer": "chat",
    "error": "chat",
}
"""The pane of each type of message."""

CODE_PANE: Component = "webide"
"""Where the `tool_invocation` of a Python tool goes instead."""


def pane_of(message_type: str, *, is_code: bool = False) -> Component:
    return CODE_PANE if is_code and message_type == "tool_invocation" else PANES[message_type]
