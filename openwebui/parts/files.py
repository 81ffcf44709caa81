"""Files that tools made, listed above the text."""

from openwebui.parts.frames import Frame
from openwebui.parts.story import Story
from openwebui.parts.values import Json


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
            link = {"name": frame.text("name"), "url": frame.text("url"), "size": frame.number("size")}
            self._files.append({"type": "file", **link})

    def end(self) -> Json | None:
        return {"type": "files", "data": {"files": self._files}} if self._files else None
