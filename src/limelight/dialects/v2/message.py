"""One message as a value: what all of them have, and the forms in which texts, counts and arguments are shown."""

import re
from typing import Any

from limelight.dialects.base import encode, text_of
from limelight.dialects.v2.graphemes import whole_until
from limelight.dialects.v2.routing import pane_of
from limelight.timestamps import iso

THOUGHT_CHARS = 60
SUMMARY_ARGS = 3
SUMMARY_CHARS = 40
RAW_SUMMARY_CHARS = 100
MAX_MESSAGE = 60 * 1024
PREVIEW_CHARS = 5_000
LONG_METADATA = 1_000
REPEATED = ("tool_args", "items", "answer_content", "code")
"""Metadata that says again, for machines, what the content says."""
CLASS_NAME = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Interrupt|Exit))(?=[:(]|$)")

Metadata = dict[str, Any]


def message(
    message_type: str, content: str, message_id: str, at: int, metadata: Metadata, *, role: str = "assistant"
) -> bytes:
    """A DSAgentRunMessage, but for `session_id` and `cursor`, which its transport knows."""
    is_code = metadata.get("language") == "python"
    routing = {"component": pane_of(message_type, is_code=is_code), "message_type": message_type, "status": "done"}
    value = {
        "role": role,
        "content": content,
        "metadata": {**routing, **metadata},
        "message_id": message_id,
        "timestamp": iso(at),
        "step_number": metadata.get("step_number"),
    }
    encoded = encode(value)
    return encoded if len(encoded) <= MAX_MESSAGE else _fitted(value)


def _fitted(value: dict[str, Any]) -> bytes:
    """Without what stands in it twice, and then with the beginning only: no line of a stream may reach 64 KiB."""
    metadata = value["metadata"]
    metadata["truncated"] = True
    encoded = encode(value)
    for key in REPEATED:
        if len(encoded) > MAX_MESSAGE and metadata.pop(key, None) is not None:
            encoded = encode(value)
    if len(encoded) > MAX_MESSAGE:
        value["content"] = beginning(value["content"], PREVIEW_CHARS)
        value["metadata"] = {key: _short(about) for key, about in metadata.items()}
        encoded = encode(value)
    return encoded


def _short(value: Any) -> Any:
    return beginning(value, LONG_METADATA) if isinstance(value, str) else value


def error_type(message: str, otherwise: str) -> str:
    """The class of an error, as its message names it."""
    named = CLASS_NAME.search(message)
    return named[1] if named else otherwise


def numbered(step: int | None) -> Metadata:
    """The step's number, if there is a step."""
    return {} if step is None else {"step_number": step}


def beginning(text: str, limit: int = THOUGHT_CHARS) -> str:
    """The first characters, with dots only if there are more, and never half of what is seen as one."""
    return text if len(text) <= limit else text[: whole_until(text, limit)] + "..."


def args_summary(args: dict[str, Any] | str) -> str:
    """The first arguments, shortly: a badge has little room."""
    if isinstance(args, str):
        return beginning(args, RAW_SUMMARY_CHARS)
    first = list(args.items())[:SUMMARY_ARGS]
    shown = ", ".join(f"{key}={beginning(text_of(value), SUMMARY_CHARS)}" for key, value in first)
    return f"{shown} … ({len(args)} args)" if len(args) > SUMMARY_ARGS else shown


def cost(input_tokens: int | None, output_tokens: int | None, duration_ms: int | None) -> Metadata:
    """`token_usage` and `timing`, each only if it is known."""
    found: Metadata = {}
    if input_tokens is not None or output_tokens is not None:
        read, written = input_tokens or 0, output_tokens or 0
        found["token_usage"] = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    if duration_ms is not None:
        found["timing"] = {"duration": duration_ms / 1000}
    return found


def footer_line(label: str, known: Metadata) -> str:
    """One plain line of markdown."""
    parts = [f"**{label}**"]
    if "token_usage" in known:
        usage = known["token_usage"]
        parts += [f"Input tokens: {usage['input_tokens']:,}", f"Output tokens: {usage['output_tokens']:,}"]
    if "timing" in known:
        parts.append(f"Duration: {known['timing']['duration']:.2f}s")
    return " | ".join(parts)
