"""What an agent really sends to its model."""

import json
from typing import Any

import pytest

from limelight.understudy import server

Requests = list[dict[str, Any]]


def recorded(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """The bodies of all requests that reach an understudy from here on, as they come."""
    requests: Requests = []
    read = server.read_request

    def spy(body: bytes) -> Any:
        requests.append(json.loads(body))
        return read(body)

    monkeypatch.setattr(server, "read_request", spy)
    return requests


def said(request: dict[str, Any]) -> list[tuple[str, str]]:
    """The conversation in a request: who said what, without instructions; calls are named after their tools."""
    return [(m["role"], _content(m)) for m in request["messages"] if m["role"] not in ("system", "developer")]


def _content(message: dict[str, Any]) -> str:
    content: Any = message.get("content")
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
    calls = ", ".join(call["function"]["name"] for call in message.get("tool_calls") or ())
    return f"[{calls}]" if calls else text
