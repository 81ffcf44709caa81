"""What smolagents' tools return, in the form that everybody knows, and what goes from there to a model.

Called in the agent's thread: files take time.
"""

import base64
import copy
from pathlib import Path
from typing import Any

import msgspec

from limelight.sources.base import FileMade
from limelight.sources.values import Outcome, fields_of, items_of, outcome, safe_text


def outcome_of(output: Any, name: str) -> Outcome:
    """A result that the log can hold, and the files in it. `name` is what a file is called that has no name.

    Files are made here and now: an agent may go on drawing in a picture.
    """
    result, files = outcome(_plain(output), name=name)
    return Outcome(result, [made for file in files if (made := _made(file)) is not None])


def _made(file: FileMade) -> FileMade | None:
    if isinstance(file.data, bytes):
        return file
    try:
        return msgspec.structs.replace(file, data=file.data())
    except Exception:  # a picture that is broken
        return None


def sendable(output: Any) -> Any:
    """The output itself; a text that no request could carry, with its broken characters replaced."""
    if isinstance(output, str) and not output.isascii():
        try:
            output.encode()
        except UnicodeEncodeError:
            return output.encode("utf-8", "replace").decode()
    return output


def all_sendable(messages: Any) -> Any:
    """The messages for a model. What code prints or a tool raises is among them too, and stays in the agent's memory:
    one broken character there would make every request from then on fail."""
    return [_sendable_message(message) for message in items_of(messages)] or messages


def _sendable_message(message: Any) -> Any:
    fields = fields_of(message)
    content: Any = fields.get("content") if fields else getattr(message, "content", None)
    parts = items_of(content)
    said = [_sendable_part(part) for part in parts] if parts else sendable(content)
    if said == content:
        return message
    if fields:
        return {**fields, "content": said}
    mended = copy.copy(message)
    mended.content = said
    return mended


def _sendable_part(part: Any) -> Any:
    text = fields_of(part).get("text")
    return part if (said := sendable(text)) == text else {**part, "text": said}


def _plain(output: Any) -> Any:
    """smolagents wraps texts, pictures and sounds in types of its own."""
    match type(output).__name__:
        case "AgentText":
            return str.__str__(output)
        case "AgentImage":
            return _picture(output)
        case "AgentAudio":
            return _sound(output)
        case _:
            return output


def _picture(output: Any) -> Any:
    try:
        return output.to_raw()
    except Exception:  # a picture that is somewhere else
        return safe_text(output)


def _sound(output: Any) -> Any:
    try:
        data = Path(output.to_string()).read_bytes()
    except Exception:  # a missing library, or a sound that is somewhere else
        return safe_text(output)
    return {"type": "audio", "data": base64.b64encode(data).decode(), "mime_type": "audio/wav"}
