"""What a display is: frames in, chunks for Open WebUI out. Pure: no network, no loop, and a clock only if given."""

from typing import Protocol

from openwebui.parts.frames import Frame
from openwebui.parts.types import Chunk


class Display(Protocol):
    """Turns frames into chunks for Open WebUI. `feed` takes one in; `flush` gives what has changed since."""

    def feed(self, frame: Frame) -> None: ...

    def flush(self) -> list[Chunk]: ...

    def close(self) -> None:
        """Leave nothing open: an unanswered call would be executed by Open WebUI itself."""
        ...
