"""What the main agent says and thinks, as items of the display with rows."""

from collections.abc import Callable

from openwebui.parts.output_items import Items, message_item, text_content
from openwebui.parts.types import Json


class Voice:
    """One item for each piece of text that nothing interrupts."""

    def __init__(self, items: Items, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._items = items
        self._run_id = run_id
        self._clock = clock
        self._count = 0
        self._text = ""
        self._thought = ""
        self._thought_at = 0.0
        self.last_text = ""

    def say(self, piece: str) -> None:
        self._end_thought()
        if not self._text:
            piece = piece.lstrip("\n")  # what parts two messages parts nothing at the beginning
            if not piece:
                return
            self._text = self.last_text = self._new_id("m")
            self._items.put(message_item(self._text, ""))
        self._items.grow(self._text, piece)

    def think(self, piece: str) -> None:
        self._end_text()
        if not self._thought:
            self._thought, self._thought_at = self._new_id("r"), self._clock()
            thought: Json = {"type": "reasoning", "id": self._thought, "status": "in_progress", "summary": []}
            self._items.put({**thought, "content": text_content("")})
        self._items.grow(self._thought, piece)

    def pause(self) -> None:
        self._end_text()
        self._end_thought()

    def _end_text(self) -> None:
        if self._text:
            self._items.change(self._text, status="completed")
            self._text = ""

    def _end_thought(self) -> None:
        if self._thought:
            seconds = round(self._clock() - self._thought_at)
            self._items.change(self._thought, status="completed", duration=seconds)
            self._thought = ""

    def _new_id(self, kind: str) -> str:
        self._count += 1
        return f"{self._run_id()}.{kind}{self._count}"
