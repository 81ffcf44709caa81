"""The shape of a message, for documents and for readers. The dialect writes it by hand, for speed; tests compare."""

from typing import Annotated, Any, Literal, TypedDict

import msgspec

from limelight.dialects.v2.routing import Component
from limelight.events import Decision, OutputStream, TodoStatus

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


class TokenUsage(TypedDict):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class Timing(TypedDict):
    duration: float


class Item(TypedDict):
    """One line of a plan."""

    content: str
    status: TodoStatus


class Routing(TypedDict):
    """What every message has."""

    component: Component
    message_type: MessageType
    status: Literal["streaming", "done"]


class Metadata(Routing, total=False):
    """What a message may have besides; which it has depends on its type."""

    # Where it belongs
    step_type: Literal["planning", "action", "final_answer"]
    step_number: int
    agent_id: str
    agent_name: str
    depth: int
    # Texts that grow
    streaming: bool
    is_delta: bool
    is_initial_stream: bool
    stream_id: str
    continued: Annotated[bool, msgspec.Meta(description="True if a very long text goes on in the next message")]
    continues: Annotated[str, msgspec.Meta(description="The id of the message that this one goes on from")]
    # What a status bar may show
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
    # Errors and ends
    error: bool
    error_type: str
    error_id: str
    reason: str
    # Agents, approvals, files, sources, usage
    parent_id: str
    approval_id: str
    args: dict[str, Any] | str | None
    decisions: list[Decision]
    decision: Decision
    expires_at: int | None
    by: str
    artifact_id: str
    name: str
    mime_type: str
    image_path: str
    url: str
    model: str
    # What was cut
    truncated: bool
    size: int
    result_url: str


class RunMessage(msgspec.Struct, kw_only=True):
    """What the agent does, as a DSAgentRunMessage. `cursor` is where a reconnecting client goes on."""

    session_id: str
    cursor: str
    role: Literal["user", "assistant"]
    content: str
    metadata: Metadata
    message_id: str
    timestamp: str
    step_number: int | None
