"""A conversation in OpenAI's form, as the steps of an agent's memory, so that the model sees it as its own past.

The past is put in the form in which the agent would have lived it: an answer is a call of `final_answer`, or code that
makes one.
"""

# pyright: reportMissingTypeStubs=false

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from smolagents.memory import ActionStep, TaskStep, ToolCall
from smolagents.monitoring import Timing

from limelight.messages import Message
from limelight.sources.smolagents.files import pictures_of
from limelight.sources.smolagents.signals import ANSWER, CODE


def steps_of(history: Sequence[Message], tags: tuple[str, str] | None) -> list[Any]:
    """The steps of this past, for an agent that puts its code between these tags, or calls tools if it has none."""
    inner = tags is not None and any(call["function"]["name"] == CODE for m in history for call in _calls(m))
    steps: list[Any] = []
    for message in history:
        match message.role:
            case "user":
                steps.append(TaskStep(task=message.text, task_images=pictures_of(message).images or None))
            case "assistant" if calls := _calls(message):
                calls = [call for call in calls if not inner or call["function"]["name"] == CODE]
                if calls:  # what code has called is in the code
                    steps.append(_acted(message.text, calls, tags, len(steps)))
            case "assistant" if steps and _answers_by_code(steps[-1]):
                steps[-1].is_final_answer, steps[-1].action_output = True, message.text
                steps[-1].observations = _logs(steps[-1].observations, message.text)
            case "assistant":
                steps.append(_answered(message.text, tags, len(steps)))
            case "tool":
                _observed(steps, message)
            case _:
                pass
    return steps


def marked(text: str, model_output: Any = None, number: int = 1) -> Any:
    """A step that says what became of a turn that was broken off."""
    return ActionStep(step_number=number, timing=Timing(0.0, 0.0), model_output=model_output, observations=text)


def _calls(message: Message) -> list[dict[str, Any]]:
    calls: Any = message.get("tool_calls")
    found = cast("list[Any]", calls) if isinstance(calls, list) else []
    made = [cast("dict[str, Any]", call) for call in found if isinstance(call, dict)]
    return [call for call in made if isinstance(call.get("function"), dict)]


def _acted(text: str, calls: list[dict[str, Any]], tags: tuple[str, str] | None, number: int) -> Any:
    made = [_call(call, f"call_{number}_{at}") for at, call in enumerate(calls, 1)]
    said: str | None = text or None
    if tags is not None and said is None and made[0].name == CODE:
        said = _block(str(made[0].arguments), tags)
    return ActionStep(step_number=number, timing=Timing(0.0, 0.0), model_output=said, tool_calls=made)


def _call(call: dict[str, Any], made_up: str) -> ToolCall:
    name = str(call["function"].get("name") or "unknown")
    arguments = call["function"].get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            arguments = msgspec.json.decode(arguments)
    if name == CODE and isinstance(arguments, dict) and "code" in arguments:
        arguments = cast("dict[str, Any]", arguments)["code"]
    return ToolCall(name=name, arguments=arguments, id=str(call.get("id") or made_up))


def _answered(text: str, tags: tuple[str, str] | None, number: int) -> Any:
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


def _answers_by_code(step: Any) -> bool:
    """True for code that gives the answer itself: the answer is then its outcome, and no step of its own."""
    calls = getattr(step, "tool_calls", None) or ()
    return any(call.name == CODE and "final_answer(" in str(call.arguments) for call in calls)


def _logs(printed: str | None, text: str) -> str:
    """As smolagents tells a model what its code has done."""
    return f"Execution logs:\n{printed or ''}\nLast output from code snippet:\n{text}".replace(":\n\n", ":\n", 1)


def _block(code: str, tags: tuple[str, str]) -> str:
    return f"{tags[0]}\n{code}\n{tags[1]}"


def _observed(steps: list[Any], message: Message) -> None:
    """A result goes to the step whose call it answers; one that answers nothing was never asked for."""
    call_id = message.get("tool_call_id")
    for step in reversed(steps):
        calls = getattr(step, "tool_calls", None) or ()
        if any(call.id == call_id for call in calls):
            step.observations = f"{step.observations}\n{message.text}" if step.observations else message.text
            return
