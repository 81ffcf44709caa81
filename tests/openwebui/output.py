"""What Open WebUI makes of a pipe's chunks: the items of a message, by the rules of `utils/response.py` of 0.12.4.

Stricter than the original: where that would guess (an index beyond the end, a delta for another item), this fails.
"""

from collections.abc import Iterable
from typing import Any

from tests.openwebui.function_rules import Chunk, Json

TEXT_OF = {"message": "response.output_text.delta", "reasoning": "response.reasoning_text.delta"}


def fold(chunks: Iterable[Chunk]) -> list[Json]:
    """The items at the end."""
    items: list[Json] = []
    for chunk in chunks:
        if isinstance(chunk, dict) and str(chunk.get("type", "")).startswith("response."):
            apply(items, chunk)
    return items


def apply(items: list[Json], event: Json) -> None:
    kind: str = event["type"]
    if kind == "response.output_item.added":
        _put(items, event["output_index"], event["item"])
    elif kind.endswith(".delta"):
        place: int = event["output_index"]
        _grow(items[place], event)
    else:
        assert kind == "response.completed", kind


def _put(items: list[Json], place: int, item: Json) -> None:
    known = [index for index, other in enumerate(items) if _same(other, item)]
    if known:
        assert known == [place], f"{item['id']} is at {known}, not at {place}"
        assert items[place]["id"] == item["id"]
        items[place] = item
    else:
        assert 0 <= place <= len(items), f"{item['id']} cannot be put at {place} of {len(items)}"
        items.insert(place, item)


def _same(other: Json, item: Json) -> bool:
    calls = item.get("call_id") and other["type"] == item["type"] and other.get("call_id") == item["call_id"]
    return bool(other["id"] == item["id"] or calls)


def _grow(item: Json, event: Json) -> None:
    assert item["id"] == event["item_id"], f"a piece of {event['item_id']} would go to {item['id']}"
    if item["type"] == "function_call":
        assert event["type"] == "response.function_call_arguments.delta"
        item["arguments"] += event["delta"]
    else:
        assert event["type"] == TEXT_OF[item["type"]]
        item["content"][event["content_index"]]["text"] += event["delta"]


def text_of(item: Json) -> str:
    """What an item says: a text, a thought, or the result of a call."""
    parts: list[Any] = item["output"] if item["type"] == "function_call_output" else item["content"]
    return "".join(part["text"] for part in parts)


def unanswered(items: Iterable[Json]) -> list[str]:
    """The calls that Open WebUI would execute itself, to call the pipe again with what came of them."""
    found = list(items)
    answered = {item["call_id"] for item in found if item["type"] == "function_call_output"}
    return [item["name"] for item in found if item["type"] == "function_call" and item["call_id"] not in answered]
