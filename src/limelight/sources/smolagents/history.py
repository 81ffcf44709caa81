"""Converts a history of OpenAI messages to the memory steps that a smolagents agent itself would have recorded.

An answer becomes a call of `final_answer`, or code with such a call.
"""

# pyright: reportMissingTypeStubs=false

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from smolagents.memory import ActionStep, TaskStep, ToolCall
from smolagents.monitoring import Timing

from limelight.json_values import fields_of, items_of
from limelight.messages import Message
from limelight.sources.image_budget import ImageLease
from limelight.sources.smolagents.files import sent_files
from limelight.sources.smolagents.reports import ANSWER, CODE


def steps_of(history: Sequence[Message], tags: tuple[str, str] | None, lease: ImageLease) -> list[Any]:
    """Convert a message history to the memory steps of an agent.

    `tags` are the tags around the code of a code agent; None for an agent that calls tools. The pixels of images are
    taken from the `lease` of the turn, those of the newest message first.
    """
    images = [sent_files(message, lease).images for message in reversed(history) if message.role == "user"]
    has_code = tags is not None and any(call["function"]["name"] == CODE for m in history for call in _calls(m))
    steps: list[Any] = []
    for message in history:
        match message.role:
            case "user":
                steps.append(TaskStep(task=message.text, task_images=images.pop() or None))
            case "assistant" if calls := _calls(message):
                calls = [call for call in calls if not has_code or call["function"]["name"] == CODE]
                if calls:  # calls made by code are left out: the code contains them
                    steps.append(_action_step(message.text, calls, tags, len(steps)))
            case "assistant" if steps and _has_answer_code(steps[-1]):
                steps[-1].is_final_answer, steps[-1].action_output = True, message.text
                steps[-1].observations = _logs(steps[-1].observations, message.text)
            case "assistant":
                steps.append(_answer_step(message.text, tags, len(steps)))
            case "tool":
                _add_result(steps, message)
            case _:
                pass
    return steps


def note_step(text: str, model_output: Any = None, number: int = 1) -> Any:
    """Return a memory step with a note to the model that a turn was cut off."""
    return ActionStep(step_number=number, timing=Timing(0.0, 0.0), model_output=model_output, observations=text)


def _calls(message: Message) -> list[dict[str, Any]]:
    calls = [fields_of(call) for call in items_of(message.get("tool_calls"))]
    return [call for call in calls if isinstance(call.get("function"), dict)]


def _action_step(text: str, calls: list[dict[str, Any]], tags: tuple[str, str] | None, number: int) -> Any:
    tool_calls = [_tool_call(call, f"call_{number}_{at}") for at, call in enumerate(calls, 1)]
    output: str | None = text or None
    if tags is not None and output is None and tool_calls[0].name == CODE:
        output = _block(str(tool_calls[0].arguments), tags)
    return ActionStep(step_number=number, timing=Timing(0.0, 0.0), model_output=output, tool_calls=tool_calls)


def _tool_call(call: dict[str, Any], default_id: str) -> ToolCall:
    name = str(call["function"].get("name") or "unknown")
    arguments = call["function"].get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            arguments = msgspec.json.decode(arguments)
    if name == CODE and isinstance(arguments, dict) and "code" in arguments:
        arguments = cast("dict[str, Any]", arguments)["code"]
    return ToolCall(name=name, arguments=arguments, id=str(call.get("id") or default_id))


def _answer_step(text: str, tags: tuple[str, str] | None, number: int) -> Any:
    step = ActionStep(step_number=number, timing=Timing(0.0, 0.0), is_final_answer=True, action_output=text)
    if tags is None:
        step.tool_calls = [ToolCall(name=ANSWER, arguments={"answer": text}, id=f"call_{number}")]
        step.observations = text
    else:
        code = f"final_answer({text!r})"
        step.model_output = _block(code, tags)
        step.tool_calls = [ToolCall(name=CODE, arguments=code, id=f"call_{number}")]
        step.observations = _logs("", text)
    return step


def _has_answer_code(step: Any) -> bool:
    """Whether the code of a step calls `final_answer`, so that the next message is the result of the step."""
    calls = getattr(step, "tool_calls", None) or ()
    return any(call.name == CODE and "final_answer(" in str(call.arguments) for call in calls)


def _logs(printed: str | None, text: str) -> str:
    """Return the output and result of code as smolagents writes them into an observation."""
    return f"Execution logs:\n{printed or ''}\nLast output from code snippet:\n{text}".replace(":\n\n", ":\n", 1)


def _block(code: str, tags: tuple[str, str]) -> str:
    return f"{tags[0]}\n{code}\n{tags[1]}"


def _add_result(steps: list[Any], message: Message) -> None:
    """Add a tool's result to the step with its call. Drop a result without a call."""
    call_id = message.get("tool_call_id")
    for step in reversed(steps):
        calls = getattr(step, "tool_calls", None) or ()
        if any(call.id == call_id for call in calls):
            step.observations = f"{step.observations}\n{message.text}" if step.observations else message.text
            return
