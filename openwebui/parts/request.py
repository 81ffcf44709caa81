"""Converts a request of Open WebUI to a request for the server: agent, session and conversation."""

import hashlib
import json
import re
import uuid
from collections.abc import Callable
from typing import Any

from openwebui.parts.frames import Json, as_object, as_objects
from openwebui.parts.run_state import CallKey

DEFAULT_MODEL = "default"
"""The model id of the server's default agent."""
MODEL_OF_AGENT_NAMED_DEFAULT = "_default"
"""The model id of an agent that is named `default`. No agent has this name, as names begin with a letter or digit."""
SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
CONTINUE: Json = {"role": "user", "content": "Continue."}

MAX_CONVERSATION_BYTES = 8_000_000
"""Size to which a conversation is reduced, below the server's default limit of 10 MiB. Open WebUI sends the complete
conversation with each turn."""
OLD_RESULT_CHARS = 4_000
TRUNCATION_NOTE: Json = {"role": "system", "content": "The conversation is too long: its beginning was left out."}

PIPE_BLOCK = re.compile(
    r'<details(?: type="(?:tool_calls|reasoning)"[^>]*)?>\n<summary>'
    r"(?:🔍 Execution Steps \(\d+ tools?\)|Tool Executed|Thought for \d+ seconds)</summary>.*?</details>\n*",
    re.DOTALL,
)
"""Matches a block that a display of the pipe has added to a text."""


def build_request(body: Json, user: Json, metadata: Json) -> Json:
    messages = separate_context(as_objects(body.get("messages")), metadata)
    messages = remove_pipe_output(add_continue(messages, metadata))
    request: Json = {"messages": truncate_conversation(messages), "stream": True}
    if agent := agent_name(str(body.get("model", ""))):
        request["agent"] = agent
    if session := session_id(user, metadata):
        request["chat_id"] = session
    # The request id begins with the question's id, so that runs of several models for one question are recognised.
    question_id = metadata.get("user_message_id") or metadata.get("message_id") or ""
    request["request_id"] = f"{question_id}.{uuid.uuid4().hex}"[-200:]
    return request


def model_id(agent: str) -> str:
    """Return the id of an agent's model in Open WebUI."""
    return MODEL_OF_AGENT_NAMED_DEFAULT if agent == DEFAULT_MODEL else agent


def agent_name(model: str) -> str:
    """Return the agent of a model id, to which Open WebUI has added the function's id; "" for the default agent."""
    chosen = model.partition(".")[2]
    return {DEFAULT_MODEL: "", MODEL_OF_AGENT_NAMED_DEFAULT: DEFAULT_MODEL}.get(chosen, chosen)


def session_id(user: Json, metadata: Json) -> str:
    """Return the id of the server's session for this chat and user; "" if there is no chat."""
    user_id, chat_id = str(user.get("id") or "user"), str(metadata.get("chat_id") or "")
    if not chat_id:
        return ""
    if chat_id.startswith("channel:"):  # mentions in a channel are independent and may be concurrent
        chat_id = f"{chat_id}.{metadata.get('message_id') or uuid.uuid4().hex}"
    readable = f"{user_id}.{chat_id}"
    if SESSION_ID.fullmatch(readable) and "." not in user_id:
        return readable
    # A hash, because replacing invalid characters could give two chats the same id.
    return hashlib.sha256(f"{user_id}\0{chat_id}".encode(errors="replace")).hexdigest()


def message_text(content: Any) -> str:
    """Return the text of a message's content, without its images. The content is a text or a list of parts."""
    parts = [part.get("text") for part in as_objects(content)] if isinstance(content, list) else [content]
    return "\n".join(part for part in parts if isinstance(part, str))


def separate_context(messages: list[Json], metadata: Json) -> list[Json]:
    """Move the passages that Open WebUI adds to the question, for files and knowledge, to a system message.

    With the next turn Open WebUI sends the question without them. An agent whose memory contains another question would
    lose that memory."""
    question = message_text(as_object(metadata.get("user_message")).get("content"))
    positions = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    if not question.strip() or not positions:
        return messages
    message, before, after = messages[positions[-1]], messages[: positions[-1]], messages[positions[-1] + 1 :]
    text = message_text(message.get("content"))
    if text.strip() == question.strip() or question.strip() not in text:
        return messages
    context: Json = {"role": "system", "content": text.strip().removesuffix(question.strip()).strip()}
    return [*before, context, {**message, "content": _replace_text(message.get("content"), question)}, *after]


def _replace_text(content: Any, text: str) -> Any:
    """Return a message's content with another text and the same images."""
    if not isinstance(content, list):
        return text
    return [{"type": "text", "text": text}, *(part for part in as_objects(content) if part.get("type") != "text")]


def is_tool_round(messages: list[Json], metadata: Json) -> bool:
    """Whether Open WebUI calls the pipe again only because of a tool result. An answer would cause an endless loop."""
    return not messages or (_last_role(messages) == "tool" and not metadata.get("assistant_message_id"))


def add_continue(messages: list[Json], metadata: Json) -> list[Json]:
    """Add a question to a request of "Continue response", which has none. Without it the agent would start again."""
    is_continued = metadata.get("assistant_message_id") and _last_role(messages) != "user"
    return [*messages, CONTINUE] if is_continued or _last_role(messages) == "assistant" else messages


def _last_role(messages: list[Json]) -> str:
    return str(messages[-1].get("role") or "") if messages else ""


def remove_pipe_output(messages: list[Json]) -> list[Json]:
    """Remove blocks, labels and sub-agent calls that the pipe has added, and all calls that are not from the pipe."""
    cleaned: list[Json] = []
    for message in messages:
        kept = {key: message[key] for key in ("role", "content", "name") if message.get(key) is not None}
        kept.setdefault("content", "")
        if message.get("role") == "assistant":
            if isinstance(kept["content"], str):
                kept["content"] = PIPE_BLOCK.sub("", kept["content"])
            calls = [call for item in as_objects(message.get("tool_calls")) if (call := _original_call(item))]
            if calls:
                kept["tool_calls"] = calls
            elif not kept["content"]:
                continue
        elif message.get("role") == "tool":
            key = CallKey.parse(str(message.get("tool_call_id", "")))
            if key is None or key.depth:
                continue
            kept["tool_call_id"] = key.tool_id
        cleaned.append(kept)
    return cleaned


def _original_call(call: Json) -> Json | None:
    """Return a tool call with the name and id that the main agent gave it; None for calls of sub-agents or others."""
    key = CallKey.parse(str(call.get("id", "")))
    if key is None or key.depth:
        return None
    arguments = str(as_object(call.get("function")).get("arguments") or "{}")
    return {"id": key.tool_id, "type": "function", "function": {"name": key.name, "arguments": arguments}}


def truncate_conversation(messages: list[Json]) -> list[Json]:
    """Reduce a conversation to MAX_CONVERSATION_BYTES: shorten old results, then remove old images, then old turns."""
    excess = sum(map(_size, messages)) - MAX_CONVERSATION_BYTES
    reduced = list(messages)
    question = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=0)
    for reduce in (_shorten_result, _remove_images):
        excess = _reduce_oldest(reduced, question, excess, reduce)
    return reduced if excess <= 0 else _remove_oldest_turns(reduced, question, excess)


def _reduce_oldest(messages: list[Json], end: int, excess: int, reduce: Callable[[Json], Json]) -> int:
    """Reduce messages before `end`, oldest first, until `excess` bytes are saved. Return the remaining excess."""
    for index, message in enumerate(messages[:end]):
        if excess <= 0:
            break
        messages[index] = reduce(message)
        if messages[index] is not message:
            excess -= _size(message) - _size(messages[index])
    return excess


def _shorten_result(message: Json) -> Json:
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str) or len(content) <= OLD_RESULT_CHARS:
        return message
    return {**message, "content": f"{content[:OLD_RESULT_CHARS]}\n\n… (cut: {len(content):,} characters in all)"}


def _remove_images(message: Json) -> Json:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = as_objects(content)
    texts = [part for part in parts if part.get("type") == "text"]
    note: Json = {"type": "text", "text": "(an image that is not sent any more)"}
    return message if len(texts) == len(parts) else {**message, "content": [*texts, note]}


def _remove_oldest_turns(messages: list[Json], question: int, excess: int) -> list[Json]:
    """Remove the oldest turns, but not system messages. Turns are removed completely, because the server refuses a
    tool result without its call."""
    start = 0
    while excess > 0 and start < question:
        excess -= _size(messages[start])
        start += 1
    while start < question and messages[start].get("role") != "user":
        start += 1
    system = [message for message in messages[:start] if message.get("role") == "system"]
    return [*system, TRUNCATION_NOTE, *messages[start:]] if start else messages


def _size(message: Json) -> int:
    return len(json.dumps(message)) + 2
