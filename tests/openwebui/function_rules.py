"""Open WebUI's rules for functions, copied from 0.12.4 (`utils/plugin.py`, `functions.py`).

It loads the one file from its text and calls it. Tests use the pipe only through this module, so they test the file
that users install. `output_items.py` has the rules for the chunks.
"""

import __future__

import inspect
import json
import re
import sys
import types
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

FILE = Path(__file__).parents[2] / "openwebui" / "deep_agent_pipe.py"
FUNCTION_ID = "deep_agent_pipe"
REPLACED_IMPORTS = ("from utils", "from apps", "from main", "from config")
"""Open WebUI replaces these texts anywhere in a function: they were imports of old versions."""

Json = dict[str, Any]
Chunk = Json | str
EventEmitter = Callable[[Json], Awaitable[None]]
EventCall = Callable[[Json], Awaitable[Any]]


def frontmatter(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    lines = text.splitlines()
    if not lines or lines[0].strip() != '"""':
        return {}
    for line in lines[1:]:
        if '"""' in line:
            break
        if match := re.match(r"^\s*([a-z_]+):\s*(.*)\s*$", line, re.IGNORECASE):
            fields[match[1].strip()] = match[2].strip()
    return fields


def load_function(text: str) -> Any:
    """The module of a function, removed from `sys.modules` after loading, with annotations as strings."""
    name = f"function_{FUNCTION_ID}_{uuid.uuid4().hex}"
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        flags = __future__.annotations.compiler_flag
        exec(compile(text, "<string>", "exec", flags=flags), module.__dict__)
    finally:
        sys.modules.pop(name)
    return module


@cache
def pipe_module() -> Any:
    """The module of the pipe. Open WebUI too loads a function once, for all users and chats."""
    return load_function(FILE.read_text(encoding="utf-8"))


class WebUI:
    """An Open WebUI with the pipe; `valves` are those that an administrator has saved."""

    def __init__(self, **valves: Any) -> None:
        self.valves = valves
        self._pipe = pipe_module().Pipe()

    async def models(self) -> list[Json]:
        """The models of the pipe in `GET /api/models`."""
        pipe = self._configured_pipe()
        assert inspect.iscoroutinefunction(pipe.pipes)
        return [{"id": f"{FUNCTION_ID}.{p['id']}", "name": f"{pipe.name}{p['name']}"} for p in await pipe.pipes()]

    async def call(
        self, body: Json, *, user: Json, metadata: Json, emit: EventEmitter | None = None, ask: EventCall | None = None
    ) -> str | AsyncGenerator[Chunk, None]:
        """Call the pipe. An emitter needs session, chat and message; only parameters that the pipe names are passed."""
        pipe = self._configured_pipe()
        has_chat = all(key in metadata for key in ("session_id", "chat_id", "message_id"))
        given: Json = {
            "__event_emitter__": emit if has_chat else None,
            "__event_call__": ask if has_chat else None,
            "__chat_id__": metadata.get("chat_id"),
            "__session_id__": metadata.get("session_id"),
            "__message_id__": metadata.get("message_id"),
            "__task__": metadata.get("task"),
            "__task_body__": metadata.get("task_body"),
            "__files__": [],
            "__user__": {**user, "valves": pipe.UserValves(**user.get("valves", {}))},
            "__metadata__": metadata,
            "__oauth_token__": None,
            "__request__": object(),
            "__tools__": {},
        }
        named = inspect.signature(pipe.pipe).parameters
        assert inspect.iscoroutinefunction(pipe.pipe)
        result = await pipe.pipe(body=dict(body), **{key: value for key, value in given.items() if key in named})
        assert isinstance(result, str | AsyncGenerator)
        return cast("str | AsyncGenerator[Chunk, None]", result)

    def _configured_pipe(self) -> Any:
        self._pipe.valves = self._pipe.Valves(**self.valves)
        return self._pipe


def through_json(chunk: Chunk) -> Chunk:
    """A chunk as Open WebUI receives it. It would lose a text that begins with "data:", which it takes for an event."""
    assert not (isinstance(chunk, str) and chunk.startswith("data:")), chunk
    return json.loads(json.dumps(chunk).encode())
