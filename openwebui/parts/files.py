"""Files that tools made, listed above the text."""

from openwebui.parts.frames import Frame
from openwebui.parts.run_state import Story
from openwebui.parts.types import Json


class Files:
    """Gathers them until the end: Open WebUI replaces the list with each event and keeps the sum of all of them."""

    def __init__(self, story: Story, *, images_in_rows: bool) -> None:
        self._story = story
        self._images_in_rows = images_in_rows
        self._files: list[Json] = []

    def feed(self, frame: Frame) -> None:
        if frame.type == "_image" and not (self._images_in_rows and self._story.call(frame)):
            self._files.append({"type": "image", "name": frame.text("name"), "url": frame.text("url")})
        elif frame.type == "_file":
            self._files.append(_text_file(frame) if frame.data.get("content") is not None else _link(frame))

    def end(self) -> Json | None:
        return {"type": "files", "data": {"files": self._files}} if self._files else None


def _text_file(frame: Frame) -> Json:
    """A file whose text a click shows."""
    about = {"name": frame.text("name"), "content_type": frame.text("media_type"), "size": frame.number("size")}
    shown = {"filename": frame.text("name"), "data": {"content": frame.text("content")}, "meta": about}
    return {"type": "file", "name": frame.text("name"), "size": frame.number("size"), "file": shown}


def _link(frame: Frame) -> Json:
    """A file that a click opens. Open WebUI adds a path of its own to those of the type `file`."""
    return {"type": "doc", "name": frame.text("name"), "size": frame.number("size"), "url": frame.text("url")}
