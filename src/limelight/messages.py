"""Chat messages in OpenAI's format: dicts with `role` and `content`, as clients send them and agents get them.

`content` is a string or a list of parts (`text`, `image_url`, `file`, …). Unknown parts are passed on unchanged.
"""

import base64
import binascii
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from limelight.json_values import fields_of, items_of

Role = Literal["system", "user", "assistant", "tool"]
IMAGE_NAME = "image"
"""File name for an `image_url` part of a message, which has no name of its own."""


class Message(dict[str, Any]):
    """A chat message: a dict, with properties for its role and its text."""

    @property
    def role(self) -> Role:
        return self["role"]

    @property
    def text(self) -> str:
        """The text of the message: its content if that is a string, else its joined text parts."""
        content: Any = self.get("content")
        if isinstance(content, str):
            return content
        texts = [fields_of(part).get("text", part) for part in items_of(content)]
        return "\n".join(text for text in texts if isinstance(text, str))


class InlineFile(msgspec.Struct, frozen=True):
    """A file or image in a message: its bytes, or its URL if the message does not contain the bytes."""

    name: str
    media_type: str
    data: bytes | None
    url: str = ""


def files_of(message: Message) -> list[InlineFile]:
    """Return the images and files in the parts of a message."""
    found = [_file(fields_of(part)) for part in items_of(message.get("content"))]
    return [file for file in found if file is not None]


def part_of(file: InlineFile) -> dict[str, Any]:
    """Return the message part that contains a file; the inverse of `files_of`."""
    url = file.url
    if file.data is not None:
        url = f"data:{file.media_type};base64,{base64.b64encode(file.data).decode()}"
    if file.name == IMAGE_NAME and file.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": file.name, "file_data": url}}


def _file(part: dict[str, Any]) -> InlineFile | None:
    inner: Any = part.get(str(part.get("type")))
    fields = fields_of(inner) or {"url": inner}
    match part.get("type"):
        case "image_url":
            url, name, media_type = fields.get("url"), IMAGE_NAME, "image/*"
        case "file":
            url, media_type = fields.get("file_data"), "application/octet-stream"
            name = str(fields.get("filename") or fields.get("name") or "file")
        case _:
            return None
    return _from_url(url, name, media_type) if isinstance(url, str) else None


def _from_url(url: str, name: str, media_type: str) -> InlineFile:
    if not url.startswith("data:"):
        return InlineFile(name, media_type, None, url)
    head, _, body = url.removeprefix("data:").partition(",")
    media_type = head.removesuffix(";base64").split(";")[0] or "text/plain"
    try:
        data = base64.b64decode(body, validate=False) if head.endswith(";base64") else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        return InlineFile(name, media_type, None)
    return InlineFile(name, media_type, data)
