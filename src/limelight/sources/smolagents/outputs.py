"""What smolagents' tools return, in the form that everybody knows. Called in the agent's thread: files take time."""

import base64
from pathlib import Path
from typing import Any

from limelight.sources.values import Outcome, outcome, safe_text


def outcome_of(output: Any, name: str) -> Outcome:
    """A result that the log can hold, and the files in it. `name` is what a file is called that has no name."""
    return outcome(_plain(output), name=name)


def sendable(output: Any) -> Any:
    """The output itself; a text that no request could carry, with its broken characters replaced."""
    if isinstance(output, str) and not output.isascii():
        try:
            output.encode()
        except UnicodeEncodeError:
            return output.encode("utf-8", "replace").decode()
    return output


def _plain(output: Any) -> Any:
    """smolagents wraps texts, pictures and sounds in types of its own; its pictures are Pillow's all the same."""
    match type(output).__name__:
        case "AgentText":
            return str.__str__(output)
        case "AgentAudio":
            return _sound(output)
        case _:
            return output


def _sound(output: Any) -> Any:
    try:
        data = Path(output.to_string()).read_bytes()
    except Exception:  # a missing library, or a sound that is somewhere else
        return safe_text(output)
    return {"type": "audio", "data": base64.b64encode(data).decode(), "mime_type": "audio/wav"}
