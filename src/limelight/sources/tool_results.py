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

from limelight.events import FinalAnswer, JsonValue
from limelight.json_values import fields_of, items_of, json_text, json_value
from limelight.messages import Message, files_of
from limelight.sources.base import FileMade, is_instance

PLACEHOLDER_ENDS = (" bytes]", " pixels]")
"""How the texts end that stand for files in a result."""
MAX_SEARCHED = 10_000
"""How many values of a result are searched for files."""
MAX_SEARCH_DEPTH = 50
"""How deep the dicts and lists of a result are searched for files."""
MAX_INNER_FILES = 100
"""How many files inside a result's dicts and lists are extracted; further files stay base64 text."""
MAX_BYTES_AS_TEXT = 1024
"""Bytes of an unknown type inside a dict, such as a hash, stay base64 text up to this size."""
OCTETS = "application/octet-stream"


class InnerFile(NamedTuple):
    """A file that was found in a tool's result."""

    data: bytes | Callable[[], bytes]
    media_type: str
    name: str
    size: str
    """The size as text, in bytes or in pixels."""


class ToolResult(NamedTuple):
    """A tool's result as JSON, and the files that were in it."""

    value: JsonValue
    files: list[FileMade]


def tool_result(value: object, *, name: str = "result", call_id: str = "", agent_id: str = "") -> ToolResult:
    """Convert the return value of a tool to JSON and files.

    A placeholder replaces each file: the value itself, or files at any place in its dicts and lists. `name` is used for
    files without a name.
    """
    found = _Extraction(name=name, call_id=call_id, agent_id=agent_id)
    parts = items_of(value)
    converted = _joined([found.extract(part) for part in parts]) if parts else found.extract(value)
    return ToolResult(json_value(converted), found.files)


class _Extraction:
    """Extracts the files from the result of one tool call."""

    def __init__(self, *, name: str, call_id: str, agent_id: str) -> None:
        self._name = name[:100]
        self._call_id = call_id
        self._agent_id = agent_id
        self._searched = 0
        self.files: list[FileMade] = []

    def extract(self, part: object) -> object:
        """Return a value with files replaced by placeholder texts, in the value itself or in its dicts and lists."""
        file = _file_in(part)
        return self._search(part) if file is None else self._placeholder(file)

    def _search(self, value: object, depth: int = 0) -> object:
        """Return a copy of a dict or list in which placeholders replace files; the value itself if it has no files."""
        if depth > MAX_SEARCH_DEPTH:
            return value
        try:
            return self._search_items(value, depth)
        except Exception:  # the methods of a subclass may raise anything
            return value

    def _search_items(self, value: object, depth: int) -> object:
        items: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            items = list(cast("dict[Any, Any]", value).items())
        elif isinstance(value, list | tuple):
            items = list(enumerate(cast("list[Any]", value)))
        changed = {key: new for key, item in items if (new := self._extract_inner(item, depth)) is not item}
        if not changed:
            return cast("object", value)
        copied = [(key, changed.get(key, item)) for key, item in items]
        return dict(copied) if isinstance(value, dict) else [item for _, item in copied]

    def _extract_inner(self, item: object, depth: int) -> object:
        if isinstance(item, str | int | float | None) or self._searched >= MAX_SEARCHED:
            return item
        self._searched += 1
        file = _inner_file_in(item) if len(self.files) < MAX_INNER_FILES else None
        return self._search(item, depth + 1) if file is None else self._placeholder(file)

    def _placeholder(self, file: InnerFile) -> str:
        """Add a file to the extracted ones, and return the text that replaces it in the result."""
        suffix = mimetypes.guess_extension(file.media_type) or ".bin"
        number = f"-{len(self.files) + 1}" if self.files else ""
        name = file.name or f"{self._name}{number}{suffix}"
        made = FileMade(
            name=name, data=file.data, media_type=file.media_type, call_id=self._call_id, agent_id=self._agent_id
        )
        self.files.append(made)
        return f"[{name}, {file.size}]"


def args_value(value: object) -> dict[str, Any] | str:
    """Convert the arguments of a call to a JSON object, or to text if they are not an object."""
    if value is None or value == "":
        return {}
    args = json_value(value)
    return args if isinstance(args, dict | str) else json_text(args)


def final_answer(value: object, message_id: str | None = None) -> FinalAnswer:
    """Create a run's FinalAnswer event from a value of any type."""
    return FinalAnswer(content=json_value(value), message_id=message_id)


def _joined(parts: list[object]) -> object:
    """Join a list of only text blocks and placeholders into one text. Return any other list unchanged."""
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
    """Return the file that a value is: bytes, a Pillow image, or a content block; None for any other value."""
    if isinstance(value, bytes | bytearray):
        return _bytes_file(bytes(value), _media_type(bytes(value)))
    if isinstance(value, dict):
        return _block_file(fields_of(cast("object", value)))
    return _image_file(value) if is_instance(value, "PIL.Image", "Image") else None


def _inner_file_in(value: object) -> InnerFile | None:
    """Return the file that a value inside a dict or list is; None for any other value.

    A dict is a file only if it names a media type, because data of tools may resemble a content block.
    """
    file = _file_in(value)
    if file is None or file.media_type != OCTETS:
        return file
    return file if isinstance(value, bytes | bytearray) and len(value) > MAX_BYTES_AS_TEXT else None


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
    return next((kind for start, kind in kinds.items() if data.startswith(start)), OCTETS)


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
        media_type = given.get("mime_type") or given.get("media_type") or OCTETS
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
