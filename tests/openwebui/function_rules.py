"""Open WebUI's rules for functions, copied from 0.12.4 (`utils/plugin.py`, `functions.py`).

It loads the one file from its text and calls it. Tests reach the pipe only through here, so what they test is the file
that people install. What Open WebUI then does with the chunks is in `output.py`.
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
REPLACED = ("from utils", "from apps", "from main", "from config")
"""Open WebUI replaces these words anywhere in the text, as they were imports of its own long ago."""

Json = dict[str, Any]
Chunk = Json | str
Emit = Callable[[Json], Awaitable[None]]
Ask = Callable[[Json], Awaitable[Any]]


def frontmatter(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    lines = text.splitlines()
    if not lines or lines[0].strip() != '"""':
        return {}
    for line in lines[1:]:
        if '"""' in line:
            break
        if match := re.match(r"^\s*([a-z_]+):\s*(.*)\s*$", line, re.IGNORECASE):
            found[match[1].strip()] = match[2].strip()
    return found


def load(text: str) -> Any:
    """The module of a function. It is gone from `sys.modules` as soon as it is loaded, with annotations as texts."""
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
    """Open WebUI loads a function once, for all users and chats."""
    return load(FILE.read_text(encoding="utf-8"))


class WebUI:
    """One Open WebUI with the pipe in it; `stored` are the valves that an administrator has saved."""

    def __init__(self, **stored: Any) -> None:
        self.stored = stored
        self._pipe = pipe_module().Pipe()

    async def models(self) -> list[Json]:
        """What `GET /api/models` makes of the pipe."""
        pipe = self._ready()
        assert inspect.iscoroutinefunction(pipe.pipes)
        return [{"id": f"{FUNCTION_ID}.{p['id']}", "name": f"{pipe.name}{p['name']}"} for p in await pipe.pipes()]

    async def call(
        self, body: Json, *, user: Json, metadata: Json, emit: Emit | None = None, ask: Ask | None = None
    ) -> str | AsyncGenerator[Chunk, None]:
        """One call. Only who has a session, a chat and a message has an emitter; only named parameters are given."""
        pipe = self._ready()
        watched = all(key in metadata for key in ("session_id", "chat_id", "message_id"))
        given: Json = {
            "__event_emitter__": emit if watched else None,
            "__event_call__": ask if watched else None,
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

    def _ready(self) -> Any:
        self._pipe.valves = self._pipe.Valves(**self.stored)
        return self._pipe


def delivered(chunk: Chunk) -> Chunk:
    """A chunk as it arrives: through JSON. A text that begins like an event would be taken for one, and be lost."""
    assert not (isinstance(chunk, str) and chunk.startswith("data:")), chunk
    return json.loads(json.dumps(chunk).encode())
