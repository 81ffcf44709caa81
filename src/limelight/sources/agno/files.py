"""Converts Agno's images, videos, audio and files to artifacts, and a user's files to Agno's classes.

Agno's media are read by attribute, so that the translator does not import Agno; only `media_arguments` does. This
module reads no files: the engine reads a medium on disk when it stores the medium.
"""

import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limelight.events import SourceCited
from limelight.json_values import items_of
from limelight.messages import InlineFile, Message, files_of
from limelight.sources.base import FileMade, Item

DEFAULT_TYPES = {"Image": "image/png", "Video": "video/mp4", "Audio": "audio/mpeg"}
"""Default media type (MIME type) for each of Agno's media classes."""


class Media:
    """Converts Agno's media to files.

    It returns each medium once, although Agno repeats all media with every tool.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def feed(self, event: Any, agent_id: str, call_id: str = "") -> list[Item]:
        """Return the new media of an event: as files, or as cited sources if only the URL is known."""
        items: list[Item] = []
        for name in ("images", "videos", "audio", "files", "image", "response_audio"):
            value = getattr(event, name, None)
            if value is None:
                continue
            for medium in items_of(value) or [value]:
                items += self._add(medium, agent_id, call_id)
        return items

    def _add(self, medium: Any, agent_id: str, call_id: str) -> list[Item]:
        key = str(getattr(medium, "id", None) or id(medium))
        if medium is None or key in self._seen:
            return []
        data = _bytes_of(medium)
        url = getattr(medium, "url", None)
        if data is None and not url:
            return []  # a reference to the user's own storage
        self._seen.add(key)
        if data is None:
            return [SourceCited(agent_id=agent_id, title=_name_of(medium), url=str(url))]
        made = FileMade(
            name=_name_of(medium), data=data, media_type=_type_of(medium), call_id=call_id, agent_id=agent_id
        )
        return [made]


def media_arguments(message: Message) -> dict[str, Any]:
    """Return the images and files of a user's message as keyword arguments for Agno."""
    from agno.media import File, Image

    arguments: dict[str, Any] = {}
    for file in files_of(message):
        if file.media_type.startswith("image/"):
            arguments.setdefault("images", []).append(_image(Image, file))
        elif file.data is not None or file.url:
            arguments.setdefault("files", []).append(_document(File, file))
    return arguments


def _image(make: Any, file: InlineFile) -> Any:
    if file.data is None:
        return make(url=file.url)
    return make(content=file.data, mime_type=file.media_type, format=file.media_type.removeprefix("image/"))


def _document(make: Any, file: InlineFile) -> Any:
    content = {"url": file.url} if file.data is None else {"content": file.data}
    known = file.media_type if file.media_type in make.valid_mime_types() else None
    return make(**content, mime_type=known, filename=file.name, name=file.name)


def _bytes_of(medium: Any) -> bytes | Callable[[], bytes] | None:
    content = getattr(medium, "content", None)
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode("utf-8", "replace")
    path = getattr(medium, "filepath", None)
    return Path(path).read_bytes if path else None


def _type_of(medium: Any) -> str:
    given = getattr(medium, "mime_type", None)
    guessed = mimetypes.guess_type(_given_name(medium))[0]
    return str(given or guessed or DEFAULT_TYPES.get(type(medium).__name__, "application/octet-stream"))


def _given_name(medium: Any) -> str:
    path = getattr(medium, "filepath", None)
    name = getattr(medium, "filename", None) or getattr(medium, "name", None) or (Path(path).name if path else "")
    return str(name or "")


def _name_of(medium: Any) -> str:
    kind = type(medium).__name__.lower()
    return _given_name(medium) or f"{kind}{mimetypes.guess_extension(_type_of(medium)) or ''}"
