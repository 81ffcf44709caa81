"""Converts values that tools and agents return into JSON, text and files for the log. Pure.

`tool_result` accepts any object of a framework. It never raises, and it is fast: an image is encoded only when its file
is read.
"""

import base64
import binascii
import io
import mimetypes
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec

from limelight.events import FinalAnswer, JsonValue
from limelight.json_values import json_value
from limelight.messages import Message, files_of
from limelight.sources.base import FileMade

PLACEHOLDER_ENDS = (" bytes]", " pixels]")
"""The endings of the placeholders that replace files in a result."""


class InnerFile(NamedTuple):
    """A file that was found in a value."""

    data: bytes | Callable[[], bytes]
    media_type: str
    name: str
    size: str
    """The size as text, in bytes or pixels."""


class ToolResult(NamedTuple):
    """The result of a tool as JSON, and the files that were in it."""

    value: JsonValue
    files: list[FileMade]


def tool_result(value: object, *, name: str = "result", call_id: str = "", agent_id: str = "") -> ToolResult:
    """Convert the return value of a tool to JSON and files.

    If the value is a file, or a list with files, a placeholder replaces each file. `name` is used for files without a
    name.
    """
    files: list[FileMade] = []

    def extract(part: object) -> object:
        file = _file_in(part)
        if file is None:
            return part
        suffix = mimetypes.guess_extension(file.media_type) or ".bin"
        number = f"-{len(files) + 1}" if files else ""
        file_name = file.name or f"{name[:100]}{number}{suffix}"
        made = FileMade(name=file_name, data=file.data, media_type=file.media_type, call_id=call_id, agent_id=agent_id)
        files.append(made)
        return f"[{file_name}, {file.size}]"

    parts = items_of(value)
    converted = _joined([extract(part) for part in parts]) if parts else extract(value)
    return ToolResult(json_value(converted), files)


def fields_of(value: object) -> dict[str, Any]:
    """Return the value if it is a dict, else an empty dict. For values of unknown type."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty list. For values of unknown type."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def json_text(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(json_value(value)).decode()


def args_value(value: object) -> dict[str, Any] | str:
    """Convert the arguments of a call to a JSON object, or to text if they are not an object."""
    if value is None or value == "":
        return {}
    args = json_value(value)
    return args if isinstance(args, dict | str) else json_text(args)


def final_answer(value: object, message_id: str | None = None) -> FinalAnswer:
    """Create the FinalAnswer event of a run from any value."""
    return FinalAnswer(content=json_value(value), message_id=message_id)


def _joined(parts: list[object]) -> object:
    """Join a list of text blocks and placeholders into one text. Return any other list unchanged."""
    texts = [_text(part) for part in parts]
    has_blocks = any(not isinstance(part, str) or _is_placeholder(part) for part in parts)
    if has_blocks and all(text is not None for text in texts):
        return "\n".join(text for text in texts if text is not None)
    return parts


def _is_placeholder(part: object) -> bool:
    return isinstance(part, str) and part.startswith("[") and part.endswith(PLACEHOLDER_ENDS)


def _text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    block = fields_of(part)
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _file_in(value: object) -> InnerFile | None:
    """Return the file that a value represents: bytes, a Pillow image, or a content block; None for any other value."""
    if isinstance(value, bytes | bytearray):
        return _bytes_file(bytes(value), _media_type(bytes(value)))
    if isinstance(value, dict):
        return _block_file(fields_of(cast("object", value)))
    if any(base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in type(value).__mro__):
        return _image_file(value)
    return None


def _bytes_file(data: bytes, media_type: str, name: str = "") -> InnerFile:
    return InnerFile(data, media_type, name, f"{len(data):,} bytes")


def _media_type(data: bytes) -> str:
    """Return the media type of data, recognized by its first bytes. Only types that browsers display are recognized."""
    kinds = {
        b"\x89PNG\r\n": "image/png",
        b"\xff\xd8\xff": "image/jpeg",
        b"GIF8": "image/gif",
        b"%PDF-": "application/pdf",
    }
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in kinds.items() if data.startswith(start)), "application/octet-stream")


def _image_file(image: Any) -> InnerFile | None:
    try:
        width, height = image.size
    except Exception:
        return None
    return InnerFile(partial(_png, image), "image/png", "", f"{width:,} x {height:,} pixels")


def _png(image: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        image.save(buffer, format="PNG")
    except OSError:  # PNG does not support this colour mode
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, format="PNG")
    return buffer.getvalue()


def _block_file(block: dict[str, Any]) -> InnerFile | None:
    """Return the file in a content block of OpenAI, Anthropic or LangChain; None if the block contains no data."""
    if block.get("type") not in ("image", "image_url", "file", "audio", "video"):
        return None
    given = fields_of(block.get("source")) or block
    data = given.get("base64") or given.get("data")
    if isinstance(data, str):
        media_type = given.get("mime_type") or given.get("media_type") or "application/octet-stream"
        try:
            name = str(block.get("name") or block.get("filename") or "")
            return _bytes_file(base64.b64decode(data), str(media_type), name)
        except (binascii.Error, ValueError):
            return None
    url = block.get("url")
    part = {"type": "image_url", "image_url": {"url": url}} if isinstance(url, str) else block
    found = files_of(Message(role="tool", content=[part]))
    file = found[0] if found else None
    return None if file is None or file.data is None else _bytes_file(file.data, file.media_type)
