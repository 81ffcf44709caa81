"""Names and values of span attributes, by OpenTelemetry's conventions for generative AI. Pure.

Attributes that are not part of the conventions begin with `limelight.`; `docs/observing.md` lists all of them.
"""

import msgspec

from limelight.events import ApprovalRequested, ApprovalResolved, JsonValue, RunStarted, StepStarted, ToolStarted
from limelight.tracing.span import NS_PER_MS, Attributes, SpanEvent

ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"
ERROR_TYPE = "error.type"
ERROR_ID = "limelight.error.id"
RUN_STATE = "limelight.run.state"
RUN_CODE = "limelight.run.code"
RESULT_SEEN = "limelight.tool.result_seen"
"""The attribute of a tool call's span that is False if the call ended and its result was not seen; else missing."""
TOOL_DURATION = "limelight.tool.duration_ms"
AGENT_ID = "gen_ai.agent.id"


def agent_attributes(name: str, session_id: str) -> Attributes:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": session_id,
    }


def run_attributes(event: RunStarted, run_id: str, session_id: str) -> Attributes:
    framework: Attributes = {"limelight.framework": event.framework} if event.framework else {}
    return {
        **agent_attributes(event.agent, session_id),
        "limelight.run.id": run_id,
        "limelight.run.turn": event.turn,
        **framework,
    }


def step_attributes(event: StepStarted) -> Attributes:
    return {"limelight.step.number": event.number, "limelight.step.kind": event.step_kind}


def chat_attributes(model: str) -> Attributes:
    return {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}


def call_attributes(event: ToolStarted) -> Attributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.name,
        "gen_ai.tool.call.id": event.call_id,
    }


def approval_event(event: ApprovalRequested | ApprovalResolved, at: int) -> SpanEvent:
    """Return the span event of an approval, without its arguments and without the name of the user."""
    attributes: Attributes = {"limelight.approval.id": event.approval_id}
    if isinstance(event, ApprovalRequested):
        name, attributes["limelight.approval.name"] = "limelight.approval.requested", event.name
    else:
        name, attributes["limelight.approval.decision"] = "limelight.approval.resolved", event.decision
    return SpanEvent(name, at * NS_PER_MS, attributes)


def input_messages(text: str) -> JsonValue:
    """Return the user's input in the message format of the conventions."""
    return [{"role": "user", "parts": [{"type": "text", "content": text}]}]


def output_messages(content: JsonValue) -> JsonValue:
    """Return the final answer in the message format of the conventions."""
    return [
        {"role": "assistant", "parts": [{"type": "text", "content": attribute_text(content)}], "finish_reason": "stop"}
    ]


def attribute_text(value: JsonValue) -> str:
    """Return a value as the text of an attribute: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
