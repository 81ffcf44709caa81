"""All that hears the frames of one run: what is drawn, told, listed and asked. It sends nothing itself."""

import contextlib
import logging
from collections.abc import Generator

from openwebui.parts.approvals import Asker
from openwebui.parts.citations import Citations
from openwebui.parts.displays import TEXT, display_of
from openwebui.parts.files import Files
from openwebui.parts.frames import Frame
from openwebui.parts.full_values import Fetcher
from openwebui.parts.run_end import Ending
from openwebui.parts.run_state import Story
from openwebui.parts.server import Server
from openwebui.parts.status import StatusLine
from openwebui.parts.todos import Todos
from openwebui.parts.types import Chunk, Json
from openwebui.parts.valves import Choices

LOG = logging.getLogger("deep_agent_pipe")


class Scene:
    """What one part makes of a frame, or fails to make of it, does not keep the others from it."""

    def __init__(self, server: Server, choices: Choices, public_url: str, asker: Asker) -> None:
        story = Story()
        self.ending = Ending(story, usage=choices.display != TEXT)
        self._fetcher = Fetcher(server, public_url)
        self._display = display_of(choices.display, story, lambda: server.run_id)
        self._files = Files(story, images_in_rows=choices.display == "native")
        self._status = StatusLine(choices)
        self._todos = Todos()
        self._hearers = (story, self._display, self.ending, self._files, asker)
        self._tellers = (self._status, self._todos, Citations(story, lambda: server.run_id, choices))

    async def hear(self, frame: Frame) -> list[Json]:
        """One frame; the events that it gives rise to."""
        events: list[Json] = []
        with _skipping(frame.type):
            frame = await self._fetcher.complete(frame)
        for hearer in self._hearers:
            with _skipping(frame.type):
                hearer.feed(frame)
        for teller in self._tellers:
            with _skipping(frame.type):
                events += teller.feed(frame)
        return events

    def drawn(self) -> list[Chunk]:
        """What has changed in the message since the last time."""
        return self._display.flush()

    def close(self) -> list[Chunk]:
        """The last chunks. Whatever fails here, the rest of them still come."""
        chunks: list[Chunk] = []
        with _skipping("close"):
            self._display.close()
        with _skipping("flush"):
            chunks += self._display.flush()
        return [*chunks, *self.ending.chunks()]

    def farewell(self) -> list[Json]:
        """The last events."""
        events = [self._files.end(), self._todos.end(), self._status.end(self.ending.line)]
        return [event for event in events if event is not None]


@contextlib.contextmanager
def _skipping(what: str) -> Generator[None]:
    try:
        yield
    except Exception:  # raised, it would take all that was shown with it
        LOG.warning("The Deep Agent Pipe could not show something (%s) and goes on without it", what, exc_info=True)
