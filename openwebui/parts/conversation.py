"""The conversation as the agent should hear it: without what the pipe itself put into it."""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from openwebui.parts.types import Json, as_object, as_objects


class CallKey(NamedTuple):
    """What a row's id remembers of its call, so that the next turn tells the agent of its own tools by their names."""

    run_id: str
    depth: int
    name: str
    tool_id: str

    def __str__(self) -> str:
        parts = (self.run_id, str(self.depth), self.name, self.tool_id)
        return ".".join(quote(part, safe="", errors="replace").replace(".", "%2E") for part in parts)

    @classmethod
    def parse(cls, text: str) -> "CallKey | None":
        parts = [unquote(part) for part in text.split(".")]
        return cls(parts[0], int(parts[1]), parts[2], parts[3]) if len(parts) == 4 and parts[1].isdecimal() else None


OWN_BLOCK = re.compile(
    r'<details(?: type="(?:tool_calls|reasoning)"[^>]*)?>\n<summary>'
    r"(?:🔍 Execution Steps \(\d+ tools?\)|Tool Executed|Thought for \d+ seconds)</summary>.*?</details>\n*",
    re.DOTALL,
)


def cleaned(messages: list[Json]) -> list[Json]:
    """The conversation without what the pipe itself put into it: blocks, labels, and the calls of sub-agents."""
    found: list[Json] = []
    for message in messages:
        kept = {key: message[key] for key in ("role", "content", "name") if message.get(key) is not None}
        kept.setdefault("content", "")
        if message.get("role") == "assistant":
            if isinstance(kept["content"], str):
                kept["content"] = OWN_BLOCK.sub("", kept["content"])
            calls = [call for given in as_objects(message.get("tool_calls")) if (call := own_call(given))]
            if calls:
                kept["tool_calls"] = calls
            elif not kept["content"]:
                continue
        elif message.get("role") == "tool":
            key = CallKey.parse(str(message.get("tool_call_id", "")))
            if key is None or key.depth:
                continue
            kept["tool_call_id"] = key.tool_id
        found.append(kept)
    return found


def own_call(call: Json) -> Json | None:
    key = CallKey.parse(str(call.get("id", "")))
    if key is None or key.depth:
        return None
    arguments = str(as_object(call.get("function")).get("arguments") or "{}")
    return {"id": key.tool_id, "type": "function", "function": {"name": key.name, "arguments": arguments}}
