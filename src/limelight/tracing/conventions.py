"""What spans are called and what they say, by OpenTelemetry's conventions for generative AI. Pure.

Names that the conventions do not have begin with `limelight.`; `docs/observing.md` lists them all.
"""

import msgspec

from limelight.events import ApprovalRequested, ApprovalResolved, JsonValue, RunStarted, StepStarted, ToolStarted
from limelight.tracing.span import NS, SpanEvent

Said = dict[str, str | int | bool]

ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"
ERROR_TYPE = "error.type"
ERROR_ID = "limelight.error.id"
RUN_STATE = "limelight.run.state"
RUN_CODE = "limelight.run.code"
RESULT_SEEN = "limelight.tool.result_seen"
"""False on a call that is over and whose result was not seen; not there otherwise."""
TOOL_DURATION = "limelight.tool.duration_ms"
AGENT_ID = "gen_ai.agent.id"


def of_agent(name: str, session_id: str) -> Said:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": session_id,
    }


def of_run(event: RunStarted, run_id: str, session_id: str) -> Said:
    framework: Said = {"limelight.framework": event.framework} if event.framework else {}
    return {
        **of_agent(event.agent, session_id),
        "limelight.run.id": run_id,
        "limelight.run.turn": event.turn,
        **framework,
    }


def of_step(event: StepStarted) -> Said:
    return {"limelight.step.number": event.number, "limelight.step.kind": event.step_kind}


def of_chat(model: str) -> Said:
    return {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}


def of_call(event: ToolStarted) -> Said:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.name,
        "gen_ai.tool.call.id": event.call_id,
    }


def approval(event: ApprovalRequested | ApprovalResolved, at: int) -> SpanEvent:
    """That a person was asked, or has decided; not what about, and not who."""
    about: Said = {"limelight.approval.id": event.approval_id}
    if isinstance(event, ApprovalRequested):
        name, about["limelight.approval.name"] = "limelight.approval.requested", event.name
    else:
        name, about["limelight.approval.decision"] = "limelight.approval.resolved", event.decision
    return SpanEvent(name, at * NS, about)


def question(text: str) -> JsonValue:
    """A user's message, in the form that the conventions have for them."""
    return [{"role": "user", "parts": [{"type": "text", "content": text}]}]


def answer(content: JsonValue) -> JsonValue:
    return [{"role": "assistant", "parts": [{"type": "text", "content": written(content)}], "finish_reason": "stop"}]


def written(value: JsonValue) -> str:
    """Attributes are texts: a value that is none is JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
