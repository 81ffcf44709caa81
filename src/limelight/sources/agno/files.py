"""Images, videos, audio and files between Agno and us: what tools and models make, and what the user sends along.

What comes out is duck-typed, so that the translator needs no Agno, and no file is read here: a medium that lies on the
disk is read by whoever stores it. Only `sent_along` imports Agno.
"""

import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limelight.events import SourceCited
from limelight.messages import InlineFile, Message, files_of
from limelight.sources.base import FileMade, Item
from limelight.sources.values import items_of

DEFAULT_TYPES = {"Image": "image/png", "Video": "video/mp4", "Audio": "audio/mpeg"}
"""By the class of the medium, where it does not say itself."""


class Media:
    """Hands over each medium once: Agno repeats all that a run has made so far with every tool."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def of(self, event: Any, agent_id: str, call_id: str = "") -> list[Item]:
        """The new ones among an event's media."""
        items: list[Item] = []
        for name in ("images", "videos", "audio", "files", "image", "response_audio"):
            value = getattr(event, name, None)
            if value is None:  # with nearly every token
                continue
            for medium in items_of(value) or [value]:
                items += self._made(medium, agent_id, call_id)
        return items

    def _made(self, medium: Any, agent_id: str, call_id: str) -> list[Item]:
        key = str(getattr(medium, "id", None) or id(medium))
        if medium is None or key in self._seen:
            return []
        data = _bytes_of(medium)
        url = getattr(medium, "url", None)
        if data is None and not url:
            return []  # nothing but a reference to a store of the user's own
        self._seen.add(key)
        if data is None:
            return [SourceCited(agent_id=agent_id, title=_name_of(medium), url=str(url))]
        made = FileMade(
            name=_name_of(medium), data=data, media_type=_type_of(medium), call_id=call_id, agent_id=agent_id
        )
        return [made]


def sent_along(message: Message) -> dict[str, Any]:
    """The images and files of a user's message, as arguments for Agno."""
    from agno.media import File, Image

    given: dict[str, Any] = {}
    for file in files_of(message):
        if file.media_type.startswith("image/"):
            given.setdefault("images", []).append(_image(Image, file))
        elif file.data is not None or file.url:
            given.setdefault("files", []).append(_document(File, file))
    return given


def _image(make: Any, file: InlineFile) -> Any:
    if file.data is None:
        return make(url=file.url)
    return make(content=file.data, mime_type=file.media_type, format=file.media_type.removeprefix("image/"))


def _document(make: Any, file: InlineFile) -> Any:
    where = {"url": file.url} if file.data is None else {"content": file.data}
    known = file.media_type if file.media_type in make.valid_mime_types() else None
    return make(**where, mime_type=known, filename=file.name, name=file.name)


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
