"""Presents one run: passes each frame to the display, the status line, citations and approvals.

It returns chunks and events, and sends nothing itself.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Generator
from typing import Protocol

from openwebui.parts.approvals import Approvals
from openwebui.parts.citations import Citations
from openwebui.parts.collapse_display import CollapseDisplay
from openwebui.parts.details_display import DetailsDisplay
from openwebui.parts.downloads import Downloader, FileList
from openwebui.parts.frames import Frame, Json
from openwebui.parts.native_display import NativeDisplay
from openwebui.parts.output_items import Chunk
from openwebui.parts.run_state import RunState
from openwebui.parts.server_client import LimelightClient
from openwebui.parts.status_line import StatusLine, TaskList
from openwebui.parts.text_format import shorten
from openwebui.parts.valves import DisplayOptions

LOG = logging.getLogger("deep_agent_pipe")

TEXT_DISPLAY = "text"
"""The display for clients of Open WebUI's API, which get only text. No valve can select it."""
STOPPED = "Stopped"
STOPPED_HERE = "Stopped here; the server was not reached, so the agent may continue"


class Display(Protocol):
    """Interface of the displays, which turn frames into chunks for Open WebUI without network, event loop or clock."""

    def feed(self, frame: Frame) -> None: ...

    def flush(self) -> list[Chunk]:
        """Return the chunks for the frames since the last call."""
        ...

    def close(self) -> None:
        """Finish all open items at the end of a run: Open WebUI would execute a call that has no output."""
        ...


def create_display(name: str, state: RunState, run_id: Callable[[], str]) -> Display:
    match name:
        case "collapse" | "plain":
            return CollapseDisplay(state, run_id, time.monotonic, show_steps=name == "collapse")
        case "details":
            return DetailsDisplay(state, time.monotonic)
        case "native":
            return NativeDisplay(state, run_id, time.monotonic)
        case _:
            return DetailsDisplay(state, time.monotonic, blocks=False)


class RunOutcome:
    """How a run ended, from its frames: success, error or Stop. `status` is the final text of the status line."""

    def __init__(self, state: RunState, *, show_usage: bool) -> None:
        self._state = state
        self._show_usage = show_usage
        self._error = ""
        self.status = "Complete"

    def feed(self, frame: Frame) -> None:
        if frame.type == "error":
            message = frame.text("message") or "the run failed"
            self._error = f"Interrupted: {message}" if frame.data.get("code") == "interrupted" else message
            self.status = f"Failed: {shorten(self._error, 200)}"
        elif frame.type == "cancelled":
            self.status = STOPPED

    def chunks(self) -> list[Chunk]:
        """Return chunks with the token usage and the error. After an exception Open WebUI would discard the message."""
        chunks: list[Chunk] = []
        total = self._state.input_tokens + self._state.output_tokens
        if total and self._show_usage:
            usage = {"input_tokens": self._state.input_tokens, "output_tokens": self._state.output_tokens}
            chunks.append({"type": "response.completed", "response": {"usage": {**usage, "total_tokens": total}}})
        if self._error:
            chunks.append({"error": {"message": self._error}})
        return chunks


class RunPresenter:
    """Passes the frames of a run to the display and all other views. An error in one does not affect the others."""

    def __init__(self, client: LimelightClient, options: DisplayOptions, public_url: str, approvals: Approvals) -> None:
        state = RunState()
        self.outcome = RunOutcome(state, show_usage=options.display != TEXT_DISPLAY)
        self._downloader = Downloader(client, public_url)
        self._display = create_display(options.display, state, lambda: client.run_id)
        self._files = FileList(state, images_in_rows=options.display == "native")
        self._status = StatusLine(options)
        self._tasks = TaskList()
        self._consumers = (state, self._display, self.outcome, self._files, approvals)
        self._event_sources = (self._status, self._tasks, Citations(state, lambda: client.run_id, options))

    async def feed(self, frame: Frame) -> list[Json]:
        """Pass one frame to all views, and return the events for Open WebUI that result from it."""
        events: list[Json] = []
        with _logged_errors(frame.type):
            frame = await self._downloader.complete(frame)
        for consumer in self._consumers:
            with _logged_errors(frame.type):
                consumer.feed(frame)
        for source in self._event_sources:
            with _logged_errors(frame.type):
                events += source.feed(frame)
        return events

    def flush(self) -> list[Chunk]:
        """Return the chunks with the changes of the message since the last call."""
        return self._display.flush()

    def close(self) -> list[Chunk]:
        """Finish the display and return the last chunks."""
        chunks: list[Chunk] = []
        with _logged_errors("close"):
            self._display.close()
        with _logged_errors("flush"):
            chunks += self._display.flush()
        return [*chunks, *self.outcome.chunks()]

    def final_events(self) -> list[Json]:
        events = [self._files.final_event(), self._tasks.final_event(), self._status.final_event(self.outcome.status)]
        return [event for event in events if event is not None]


@contextlib.contextmanager
def _logged_errors(step: str) -> Generator[None]:
    try:
        yield
    except Exception:  # an exception of a pipe makes Open WebUI discard the message
        LOG.warning("Deep Agent Pipe: failed to show %s; skipped", step, exc_info=True)
