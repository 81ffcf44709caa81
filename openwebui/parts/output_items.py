"""The output items of one message, as Open WebUI keeps them, and what it must be told when they change."""

import json
from typing import Any

from openwebui.parts.frames import Frame
from openwebui.parts.types import Chunk, Json

DELTAS = {
    "message": "response.output_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "function_call": "response.function_call_arguments.delta",
}


class Items:
    """The list so far. Changed items are sent again whole, growing texts piece by piece."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._items: dict[str, Json] = {}
        self._changed: set[str] = set()
        self._pieces: dict[str, str] = {}

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._items

    def __getitem__(self, item_id: str) -> Json:
        return self._items[item_id]

    def put(self, item: Json, *, after: str = "") -> None:
        """Add an item, at the end or behind another one; or replace the one of the same id, where it is."""
        item_id: str = item["id"]
        if item_id not in self._items:
            self._order.insert(self._order.index(after) + 1 if after else len(self._order), item_id)
        elif self._items[item_id] == item:
            return
        self._items[item_id] = item
        self._changed.add(item_id)
        self._pieces.pop(item_id, None)

    def change(self, item_id: str, **values: Any) -> None:
        self.put({**self._items[item_id], **values})

    def grow(self, item_id: str, piece: str) -> None:
        """Append to the text of a message or a thought, or to the arguments of a call."""
        item = self._items[item_id]
        if item["type"] == "function_call":
            self._items[item_id] = {**item, "arguments": item["arguments"] + piece}
        else:
            self._items[item_id] = {**item, "content": text_content(text_in(item) + piece)}
        if item_id not in self._changed:
            self._pieces[item_id] = self._pieces.get(item_id, "") + piece

    def flush(self) -> list[Chunk]:
        """What has changed since the last time, in the order of the list, so that places are right one by one."""
        chunks: list[Chunk] = []
        for place, item_id in enumerate(self._order):
            if item_id in self._changed:
                item = self._items[item_id]
                chunks.append({"type": "response.output_item.added", "output_index": place, "item": item})
            elif item_id in self._pieces:
                delta = {"item_id": item_id, "output_index": place, "delta": self._pieces[item_id]}
                chunks.append({"type": DELTAS[self._items[item_id]["type"]], "content_index": 0, **delta})
        self._changed.clear()
        self._pieces.clear()
        return chunks


def text_content(text: str) -> list[Json]:
    return [{"type": "output_text", "text": text}]


def text_in(item: Json) -> str:
    return "".join(part["text"] for part in item["content"])


def message_item(item_id: str, text: str, status: str = "in_progress") -> Json:
    content = text_content(text)
    return {"type": "message", "id": item_id, "status": status, "role": "assistant", "content": content}


def titled(items: Items, item_id: str, answer: Frame) -> None:
    """A headline for an answer that is there already, behind what was said before it."""
    title = answer.text("title")
    if title and item_id in items:
        text, content = text_in(items[item_id]), answer.data.get("content")
        said = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        before = text.removesuffix(said) if text.endswith(said) else ""
        items.change(item_id, content=text_content(f"{before}### {title}\n\n{text.removeprefix(before)}"))
