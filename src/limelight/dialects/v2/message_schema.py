"""The schema of v2 messages: their types, the client's pane for each type, and their metadata.

The dialect writes messages as plain dicts, because that is faster; tests compare the dicts with these types. The
specification of the API and the page's table of panes are generated from this module.
"""

from typing import Annotated, Any, Literal, TypedDict, get_args

import msgspec

from limelight.events import Decision, Outcome, OutputStream, TodoStatus

Component = Literal["chat", "webide", "terminal"]
"""Names of the panes of a v2 client: parts of its screen."""

MessageType = Literal[
    "user",
    "status",
    "planning_header",
    "planning_content",
    "planning_footer",
    "action_header",
    "action_thought",
    "reasoning",
    "todos",
    "tool_call",
    "tool_invocation",
    "execution_logs",
    "observation",
    "observation_image",
    "artifact",
    "source",
    "usage",
    "agent_start",
    "agent_end",
    "approval_request",
    "approval_resolved",
    "action_footer",
    "separator",
    "final_answer",
    "error",
]

PANES: dict[str, Component] = {
    message_type: "terminal" if message_type in ("execution_logs", "observation") else "chat"
    for message_type in get_args(MessageType)
}
"""The client's pane for each type of message."""

CODE_PANE: Component = "webide"
"""The client's pane for a `tool_invocation` message with Python code."""


def pane_of(message_type: str, *, is_code: bool = False) -> Component:
    """Return the client's pane for a message; `is_code` means that the message contains Python code."""
    return CODE_PANE if is_code and message_type == "tool_invocation" else PANES[message_type]


class TokenUsage(TypedDict):
    """Token counts of a step or of a request to a model."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class Timing(TypedDict):
    """The duration of a step in seconds."""

    duration: float


class Item(TypedDict):
    """One item of a todo list."""

    content: str
    status: TodoStatus


class Routing(TypedDict):
    """The metadata that every message has."""

    component: Component
    message_type: MessageType
    status: Literal["streaming", "done"]


class Metadata(Routing, total=False):
    """All metadata keys. Which optional keys a message has depends on its type."""

    # Step and agent
    step_type: Literal["planning", "action", "final_answer"]
    step_number: int
    agent_id: str
    agent_name: str
    depth: int
    agent_title: Annotated[str, msgspec.Meta(description="What distinguishes a sub-agent from others of its name")]
    is_branch: Annotated[bool, msgspec.Meta(description="True if a sub-agent is a branch of its parent")]
    # Streamed texts
    streaming: bool
    is_delta: bool
    is_initial_stream: bool
    stream_id: str
    continued: Annotated[bool, msgspec.Meta(description="True if a long text continues in the next message")]
    continues: Annotated[str, msgspec.Meta(description="The id of the message that this one continues")]
    # Status bar
    agent_status: Literal["initial_planning", "update_planning", "thinking", "coding", "actions_running", "writing"]
    is_active: bool
    title: str
    # Plans
    planning_type: Literal["initial", "update"]
    is_update_plan: bool
    planning_step_number: int
    content_length: int
    items: list[Item]
    # Thoughts
    thoughts_content: str
    full_thought_length: int
    is_raw_thought: bool
    # Tools
    tool_name: str
    tool_id: str
    tool_args_summary: str
    tool_args: dict[str, Any] | str
    is_python_interpreter: bool
    code: Annotated[
        str,
        msgspec.Meta(description="In `tool_invocation` what Python runs; in `error` and `status` how the run ended"),
    ]
    language: Literal["python"]
    code_lines: int
    has_imports: bool
    stream: OutputStream
    output_lines: int
    has_error: bool
    outcome: Outcome
    result_seen: bool
    execution_duration: float
    # Footers
    footer_label: str
    step_name: str
    token_usage: TokenUsage
    timing: Timing
    # Answers
    is_final_answer: bool
    has_structured_data: bool
    answer_title: str
    answer_content: str
    answer_sources: list[str]
    answer_format: Literal["json"]
    # Errors and run ends
    error: bool
    error_type: str
    error_id: str
    reason: str
    # Agents, approvals, files, sources, usage
    parent_id: str
    approval_id: str
    args: dict[str, Any] | str | None
    decisions: list[Decision]
    question: str
    answer_schema: dict[str, Any]
    decision: Decision
    answered: bool
    expires_at: int | None
    by: str
    artifact_id: str
    name: str
    mime_type: str
    image_path: str
    url: str
    model: str
    # Truncation
    truncated: bool
    size: int
    result_url: str


class StreamedMessage(msgspec.Struct, kw_only=True):
    """A DSAgentRunMessage in a stream of server-sent events."""

    role: Literal["user", "assistant"]
    content: str
    metadata: Metadata
    message_id: str
    timestamp: str
    step_number: int | None


class RunMessage(StreamedMessage, kw_only=True):
    """A DSAgentRunMessage on the socket. A client that reconnects resumes after the last `cursor`."""

    session_id: str
    cursor: str
