"""Messages in the format of OpenAI: dicts with `role` and `content`, as clients send them and agents get them.

`content` is a string or a list of parts (`text`, `image_url`, `file`, …). Unknown parts are passed on unchanged.
"""

import base64
import binascii
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class Message(dict[str, Any]):
    """A message: a dict, with properties for its role and its text."""

    @property
    def role(self) -> Role:
        return self["role"]

    @property
    def text(self) -> str:
        """The text of the message: the content if it is a string, else its text parts joined."""
        content: Any = self.get("content")
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            return ""
        parts = msgspec.convert(content, list[Any])
        texts: list[Any] = [part["text"] if isinstance(part, dict) and "text" in part else part for part in parts]
        return "\n".join(text for text in texts if isinstance(text, str))


class InlineFile(msgspec.Struct, frozen=True):
    """A file or image in a message: its bytes, or its URL if the message does not contain the bytes."""

    name: str
    media_type: str
    data: bytes | None
    url: str = ""


def files_of(message: Message) -> list[InlineFile]:
    """Return the images and files among the parts of a message."""
    content: Any = message.get("content")
    if not isinstance(content, list):
        return []
    parts = msgspec.convert(content, list[Any])
    found = [_file(msgspec.convert(part, dict[str, Any])) for part in parts if isinstance(part, dict)]
    return [file for file in found if file is not None]


def _file(part: dict[str, Any]) -> InlineFile | None:
    inner: Any = part.get(str(part.get("type")))
    fields = msgspec.convert(inner, dict[str, Any]) if isinstance(inner, dict) else {"url": inner}
    match part.get("type"):
        case "image_url":
            url, name, media_type = fields.get("url"), "image", "image/*"
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
