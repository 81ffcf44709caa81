"""Encodes the v2 messages of one run, with ids, timestamps, agent names and metadata, within the size limit."""

import re
from collections import Counter
from typing import Any

from limelight.dialects.base import AgentTree, Increment, agent_label, encode
from limelight.dialects.v2.message_schema import pane_of
from limelight.dialects.v2.previews import preview
from limelight.events import AgentStarted
from limelight.timestamps import iso

MAX_MESSAGE_BYTES = 60 * 1024
PREVIEW_CHARS = 5_000
METADATA_CHARS = 1_000
REPEATED_METADATA = ("tool_args", "items", "answer_content", "code")
"""Metadata keys that only repeat a message's content in structured form; messages that are too large are sent without
them."""
ERROR_CLASS = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Interrupt|Exit))(?=[:(]|$)")

Metadata = dict[str, Any]


class MessageWriter:
    """Collects the encoded v2 messages of a run, and assigns ids to them.

    Ids count complete messages and streams, not increments, so they do not depend on how deltas were joined.
    """

    def __init__(self) -> None:
        self.turn = 1
        self.streams = True
        """Whether texts are sent in increments before they are complete."""
        self._tree = AgentTree()
        self._agent_names: dict[str, str] = {}
        self._agent_labels: dict[str, str] = {}
        """The names of sub-agents for headers, with a title or a number if several have the same name."""
        self._label_counts: Counter[str] = Counter()
        self._count = 0
        self._at = 0
        self._at_before_deltas = 0
        self._messages: list[bytes] = []

    def begin_record(self, at: int, *, is_delta: bool) -> None:
        """Set the timestamp of the v2 messages that the next Record causes.

        A delta may also cause messages that are not increments. These get the time of the last Record that is not a
        delta, because this time does not depend on how deltas were joined.
        """
        self._at = at
        if not is_delta:
            self._at_before_deltas = at

    def take_messages(self) -> list[bytes]:
        """Return the encoded v2 messages that were written since the last call."""
        messages, self._messages = self._messages, []
        return messages

    def add_agent(self, event: AgentStarted) -> None:
        """Store a sub-agent's name and depth, for the metadata of its messages."""
        self._tree.add(event)
        self._agent_names[event.agent_id] = event.name
        label = agent_label(event)
        self._label_counts[label] += 1
        number = self._label_counts[label]
        self._agent_labels[event.agent_id] = label if number == 1 else f"{label} {number}"

    def step_label(self, agent_id: str, number: int | None) -> str:
        """Return the label of a step: its number, and the sub-agent, because the steps of several may be mixed."""
        label = self._agent_labels.get(agent_id, agent_id)
        return f"{label} · Step {number}" if agent_id else f"Step {number}"

    def new_id(self) -> str:
        """Return the id for the next complete v2 message of the run."""
        self._count += 1
        return f"msg_{self.turn}_{self._count}"

    def new_stream_id(self, message_type: str, step: int | None) -> str:
        """Return the id that all messages of the next streamed text share."""
        self._count += 1
        return f"msg-{self.turn}-{step or 0}-{message_type}-{self._count}-stream"

    def write(self, message_type: str, content: str, agent_id: str = "", **metadata: Any) -> None:
        """Write one complete v2 message with a new id."""
        self.write_with_id(message_type, content, self.new_id(), agent_id, metadata)

    def write_with_id(
        self,
        message_type: str,
        content: str,
        message_id: str,
        agent_id: str,
        metadata: Metadata,
        role: str = "assistant",
    ) -> None:
        """Write a v2 message with an id that other messages may share, such as the increments of a text."""
        at = self._at if metadata.get("is_delta") else self._at_before_deltas
        metadata = {**self._agent_metadata(agent_id), **metadata}
        payload = _encode_message(message_type, content, message_id, at, metadata, role)
        self._messages.append(Increment(payload) if metadata.get("streaming") else payload)

    def _agent_metadata(self, agent_id: str) -> Metadata:
        """Return the metadata keys that name the sub-agent of a message; {} for the main agent."""
        if not agent_id:
            return {}
        name = self._agent_names.get(agent_id, agent_id)
        return {"agent_id": agent_id, "agent_name": name, "depth": self._tree.depth(agent_id)}


def _encode_message(message_type: str, content: str, message_id: str, at: int, metadata: Metadata, role: str) -> bytes:
    """Encode a v2 message without `session_id` and `cursor`, which the transport adds."""
    is_code = metadata.get("language") == "python"
    routing = {"component": pane_of(message_type, is_code=is_code), "message_type": message_type, "status": "done"}
    message = {
        "role": role,
        "content": content,
        "metadata": {**routing, **metadata},
        "message_id": message_id,
        "timestamp": iso(at),
        "step_number": metadata.get("step_number"),
    }
    encoded = encode(message)
    return encoded if len(encoded) <= MAX_MESSAGE_BYTES else _encode_truncated(message)


def _encode_truncated(message: dict[str, Any]) -> bytes:
    """Encode a v2 message that is too large for a line of a stream, which may have 64 KiB.

    Metadata that repeats the content is removed first. If that is not enough, texts become previews.
    """
    metadata = message["metadata"]
    metadata["truncated"] = True
    encoded = encode(message)
    for key in REPEATED_METADATA:
        if len(encoded) > MAX_MESSAGE_BYTES and metadata.pop(key, None) is not None:
            encoded = encode(message)
    if len(encoded) > MAX_MESSAGE_BYTES:
        message["content"] = preview(message["content"], PREVIEW_CHARS)
        message["metadata"] = {
            key: preview(value, METADATA_CHARS) if isinstance(value, str) else value for key, value in metadata.items()
        }
        encoded = encode(message)
    return encoded


# Metadata that several types of messages have


def step_number(number: int | None) -> Metadata:
    """Return a step's number as metadata with the key `step_number`; {} outside of a step."""
    return {} if number is None else {"step_number": number}


def error_type(message: str, default: str) -> str:
    """Return the name of the exception class in an error message; `default` if there is none."""
    found = ERROR_CLASS.search(message)
    return found[1] if found else default


def cost(input_tokens: int | None, output_tokens: int | None, duration_ms: int | None) -> Metadata:
    """Return the metadata keys `token_usage` and `timing`, if their values are known."""
    metadata: Metadata = {}
    if input_tokens is not None or output_tokens is not None:
        given, made = input_tokens or 0, output_tokens or 0
        metadata["token_usage"] = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    if duration_ms is not None:
        metadata["timing"] = {"duration": duration_ms / 1000}
    return metadata


def footer_line(label: str, metadata: Metadata) -> str:
    """Return the text of a step's footer: one line of markdown with the step's tokens and duration."""
    parts = [f"**{label}**"]
    if "token_usage" in metadata:
        usage = metadata["token_usage"]
        parts += [f"Input tokens: {usage['input_tokens']:,}", f"Output tokens: {usage['output_tokens']:,}"]
    if "timing" in metadata:
        parts.append(f"Duration: {metadata['timing']['duration']:.2f}s")
    return " | ".join(parts)
