"""The output items of a chat message, and the chunks that update them in Open WebUI.

Items have the format of OpenAI's Responses API. Open WebUI replaces an item that is sent again.
"""

import json
from typing import Any

from openwebui.parts.frames import Frame, Json

Chunk = Json | str
"""A value that a pipe may yield: an event of the Responses API, or text."""

DELTA_TYPES = {
    "message": "response.output_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "function_call": "response.function_call_arguments.delta",
}


class OutputItems:
    """The output items of a message, in order. A changed item is sent again completely, appended text as a delta."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._items: dict[str, Json] = {}
        self._changed: set[str] = set()
        self._deltas: dict[str, str] = {}

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._items

    def __getitem__(self, item_id: str) -> Json:
        return self._items[item_id]

    def put(self, item: Json, *, after: str = "") -> None:
        """Add an item at the end or after another item. An existing item with the same id is replaced in place."""
        item_id: str = item["id"]
        if item_id not in self._items:
            self._order.insert(self._order.index(after) + 1 if after else len(self._order), item_id)
        elif self._items[item_id] == item:
            return
        self._items[item_id] = item
        self._changed.add(item_id)
        self._deltas.pop(item_id, None)

    def update(self, item_id: str, **fields: Any) -> None:
        self.put({**self._items[item_id], **fields})

    def append(self, item_id: str, delta: str) -> None:
        """Append to the text of an item: of a message or reasoning, or the arguments of a call."""
        item = self._items[item_id]
        if item["type"] == "function_call":
            self._items[item_id] = {**item, "arguments": item["arguments"] + delta}
        else:
            self._items[item_id] = {**item, "content": text_content(item_text(item) + delta)}
        if item_id not in self._changed:
            self._deltas[item_id] = self._deltas.get(item_id, "") + delta

    def flush(self) -> list[Chunk]:
        """Return the changes since the last call, ordered by item, so that each index is valid when applied."""
        chunks: list[Chunk] = []
        for index, item_id in enumerate(self._order):
            if item_id in self._changed:
                item = self._items[item_id]
                chunks.append({"type": "response.output_item.added", "output_index": index, "item": item})
            elif item_id in self._deltas:
                delta = {"item_id": item_id, "output_index": index, "delta": self._deltas[item_id]}
                chunks.append({"type": DELTA_TYPES[self._items[item_id]["type"]], "content_index": 0, **delta})
        self._changed.clear()
        self._deltas.clear()
        return chunks

    def add_title(self, item_id: str, answer: Frame) -> None:
        """Insert the title of a structured answer before its content, which may follow other text in the item."""
        title = answer.text("title")
        if title and item_id in self:
            text, content = item_text(self[item_id]), answer.data.get("content")
            if not isinstance(content, str):
                content = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
            before = text.removesuffix(content) if text.endswith(content) else ""
            self.update(item_id, content=text_content(f"{before}### {title}\n\n{text.removeprefix(before)}"))


def text_content(text: str) -> list[Json]:
    return [{"type": "output_text", "text": text}]


def item_text(item: Json) -> str:
    return "".join(part["text"] for part in item["content"])


def message_item(item_id: str, text: str, status: str = "in_progress") -> Json:
    content = text_content(text)
    return {"type": "message", "id": item_id, "status": status, "role": "assistant", "content": content}
