"""What tools return, as the log can keep it: JSON where it can be, text otherwise, and files as files.

Pure. Sources call `outcome` with whatever object the framework hands them; it never raises, whatever that is, and takes
no time: a picture becomes a file when somebody reads it.
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
from limelight.messages import Message, files_of
from limelight.sources.base import FileMade

MAX_SOURCES = 100
MARKS = (" bytes]", " pixels]")
"""How a file is named in a result ends."""
Data = bytes | Callable[[], bytes]


class File(NamedTuple):
    """A value that is a file."""

    data: Data
    media_type: str
    name: str
    size: str


def _of_bytes(data: bytes, media_type: str, name: str = "") -> File:
    return File(data, media_type, name, f"{len(data):,} bytes")


class Outcome(NamedTuple):
    """A result that the log can hold, and the files that were in it."""

    result: JsonValue
    files: list[FileMade]


def outcome(value: object, *, name: str = "result", call_id: str = "", agent_id: str = "") -> Outcome:
    """Take a tool's result apart. A file among it is named in the result, and handed over beside it."""
    files: list[FileMade] = []

    def keep(data: Data, media_type: str, file_name: str, size: str) -> str:
        suffix = mimetypes.guess_extension(media_type) or ".bin"
        number = f"-{len(files) + 1}" if files else ""
        file_name = file_name or f"{name[:100]}{number}{suffix}"
        files.append(
            FileMade(name=file_name, data=data, media_type=media_type, call_id=call_id, agent_id=agent_id),
        )
        return f"[{file_name}, {size}]"

    def taken(part: object) -> object:
        file = _file(part)
        return part if file is None else keep(*file)

    parts = cast("list[object]", value) if isinstance(value, list) else None
    made = taken(cast("object", value)) if parts is None else _joined([taken(part) for part in parts])
    return Outcome(json_value(made), files)


def json_value(value: object) -> JsonValue:
    """JSON if it can be, else its text. None is ""."""
    if value is None:
        return ""
    if isinstance(value, str | int | float | bool):
        return value
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
    except Exception:  # also what a strange object's own methods raise
        return safe_text(value)


def fields_of(value: object) -> dict[str, Any]:
    """The value if it is an object, and an empty one if it is not: for shapes that others decide."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """The value if it is a list, and an empty one if it is not."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def safe_text(value: object) -> str:
    """`str` of anything, also of an object whose own `__str__` fails."""
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def args_value(value: object) -> dict[str, Any] | str:
    """Arguments of a call: an object, or the text that they are if they are none."""
    if value is None or value == "":
        return {}
    made = json_value(value)
    if isinstance(made, dict):
        return made
    return made if isinstance(made, str) else msgspec.json.encode(made).decode()


def final_answer(value: object, message_id: str | None = None) -> FinalAnswer:
    """The answer of a run. One with title, content and sources is told apart into these."""
    made = json_value(value)
    fields = made if isinstance(made, dict) else _object_in(made)
    if not fields or "content" not in fields or not fields.keys() & {"title", "sources"}:
        return FinalAnswer(content=made, message_id=message_id)
    sources = fields.get("sources")
    listed = cast("list[Any]", sources) if isinstance(sources, list) else [sources] if sources else []
    return FinalAnswer(
        content=fields["content"],
        message_id=message_id,
        title=str(fields.get("title") or ""),
        sources=tuple(source if isinstance(source, str) else _source(source) for source in listed[:MAX_SOURCES]),
    )


def _object_in(value: JsonValue) -> dict[str, Any]:
    """The object that a text consists of, if it does."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return {}
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}


def _source(value: Any) -> str:
    """A source that is an object: its address, or else its title."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    named = fields.get("url") or fields.get("title")
    return str(named) if named else msgspec.json.encode(value).decode()


def _plain(value: Any) -> Any:
    """For what JSON has no form for: pydantic's models as objects, anything else as text."""
    dump = getattr(value, "model_dump", None) or getattr(value, "to_dict", None)
    if callable(dump) and not isinstance(value, type):
        try:
            return dump()
        except Exception:
            return safe_text(value)
    return safe_text(value)


def _joined(parts: list[object]) -> object:
    """Content that came as a list of text blocks is one text; any other list stays a list."""
    texts = [_text(part) for part in parts]
    if parts and all(text is not None for text in texts) and any(not isinstance(part, str) for part in parts):
        return "\n".join(text for text in texts if text is not None)
    marked = [part for part in parts if isinstance(part, str) and part.startswith("[") and part.endswith(MARKS)]
    if marked and all(text is not None for text in texts):
        return "\n".join(text for text in texts if text is not None)
    return parts


def _text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        block = cast("dict[str, Any]", part)
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            return block["text"]
    return None


def _file(value: object) -> File | None:
    """The value if it is a file: bytes, a picture, or a block of a message."""
    if isinstance(value, bytes | bytearray):
        return _of_bytes(bytes(value), _media_type(bytes(value)))
    if isinstance(value, dict):
        return _block(cast("dict[str, Any]", value))
    if any(base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in type(value).__mro__):
        return _picture(value)
    return None


def _media_type(data: bytes) -> str:
    """What the first bytes say, for the kinds that a browser shows."""
    kinds = {
        b"\x89PNG\r\n": "image/png",
        b"\xff\xd8\xff": "image/jpeg",
        b"GIF8": "image/gif",
        b"%PDF-": "application/pdf",
    }
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in kinds.items() if data.startswith(start)), "application/octet-stream")


def _picture(value: Any) -> File | None:
    try:
        width, height = value.size
    except Exception:
        return None
    return File(partial(_png, value), "image/png", "", f"{width:,} x {height:,} pixels")


def _png(picture: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        picture.save(buffer, format="PNG")
    except OSError:  # colours that the format does not have
        buffer = io.BytesIO()
        picture.convert("RGB").save(buffer, format="PNG")
    return buffer.getvalue()


def _block(block: dict[str, Any]) -> File | None:
    """The blocks in which models and tools pass files: OpenAI's, Anthropic's and LangChain's forms."""
    if block.get("type") not in ("image", "image_url", "file", "audio", "video"):
        return None
    source = block.get("source")
    given = cast("dict[str, Any]", source) if isinstance(source, dict) else block
    data = given.get("base64") or given.get("data")
    if isinstance(data, str):
        media_type = given.get("mime_type") or given.get("media_type") or "application/octet-stream"
        try:
            name = str(block.get("name") or block.get("filename") or "")
            return _of_bytes(base64.b64decode(data), str(media_type), name)
        except (binascii.Error, ValueError):
            return None
    url = block.get("url")
    part = {"type": "image_url", "image_url": {"url": url}} if isinstance(url, str) else block
    found = files_of(Message(role="tool", content=[part]))
    file = found[0] if found else None
    return None if file is None or file.data is None else _of_bytes(file.data, file.media_type)
