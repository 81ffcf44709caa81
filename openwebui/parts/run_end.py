"""How it ended: the last chunks and the last line."""

from openwebui.parts.frames import Frame
from openwebui.parts.run_state import Story
from openwebui.parts.text import short
from openwebui.parts.types import Chunk


class Ending:
    """Success, unless a frame says otherwise. `usage=False` is for those who could not read what it cost."""

    def __init__(self, story: Story, *, usage: bool) -> None:
        self._story = story
        self._usage = usage
        self._failure = ""
        self.line = "Complete"

    def feed(self, frame: Frame) -> None:
        if frame.type == "error":
            said = frame.text("message") or "the run failed"
            self._failure = f"Interrupted: {said}" if frame.data.get("code") == "interrupted" else said
            self.line = f"Failed: {short(self._failure, 200)}"
        elif frame.type == "cancelled":
            self.line = "Stopped"

    def chunks(self) -> list[Chunk]:
        """What the run cost, and the error. It comes as a chunk: an exception would take all that was shown with it."""
        found: list[Chunk] = []
        total = self._story.input_tokens + self._story.output_tokens
        if total and self._usage:
            usage = {"input_tokens": self._story.input_tokens, "output_tokens": self._story.output_tokens}
            found.append({"type": "response.completed", "response": {"usage": {**usage, "total_tokens": total}}})
        if self._failure:
            found.append({"error": {"message": self._failure}})
        return found
