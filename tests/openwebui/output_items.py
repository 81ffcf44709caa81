"""Applies a pipe's chunks to the items of a message, by the rules of `utils/response.py` of Open WebUI 0.12.4.

Stricter than the original: it fails where the original guesses (an index beyond the end, a delta for another item).
"""

from collections.abc import Iterable
from typing import Any

from tests.openwebui.function_rules import Chunk, Json

DELTA_TYPES = {"message": "response.output_text.delta", "reasoning": "response.reasoning_text.delta"}


def fold_chunks(chunks: Iterable[Chunk]) -> list[Json]:
    """The items after all chunks."""
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
        index: int = event["output_index"]
        _append_delta(items[index], event)
    else:
        assert kind == "response.completed", kind


def _put(items: list[Json], index: int, item: Json) -> None:
    known = [place for place, other in enumerate(items) if _is_same(other, item)]
    if known:
        assert known == [index], f"{item['id']} is at {known}, not at {index}"
        assert items[index]["id"] == item["id"]
        items[index] = item
    else:
        assert 0 <= index <= len(items), f"{item['id']} cannot be put at {index} of {len(items)}"
        items.insert(index, item)


def _is_same(other: Json, item: Json) -> bool:
    calls = item.get("call_id") and other["type"] == item["type"] and other.get("call_id") == item["call_id"]
    return bool(other["id"] == item["id"] or calls)


def _append_delta(item: Json, event: Json) -> None:
    assert item["id"] == event["item_id"], f"a delta for {event['item_id']} would be applied to {item['id']}"
    if item["type"] == "function_call":
        assert event["type"] == "response.function_call_arguments.delta"
        item["arguments"] += event["delta"]
    else:
        assert event["type"] == DELTA_TYPES[item["type"]]
        item["content"][event["content_index"]]["text"] += event["delta"]


def item_text(item: Json) -> str:
    """The text of a message, of reasoning, or of the output of a call."""
    parts: list[Any] = item["output"] if item["type"] == "function_call_output" else item["content"]
    return "".join(part["text"] for part in parts)


def calls_without_output(items: Iterable[Json]) -> list[str]:
    """The names of calls without an output. Open WebUI would execute them and call the pipe again with the results."""
    found = list(items)
    with_output = {item["call_id"] for item in found if item["type"] == "function_call_output"}
    return [item["name"] for item in found if item["type"] == "function_call" and item["call_id"] not in with_output]
