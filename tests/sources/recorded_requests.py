"""Records the requests of agents to the understudy."""

import json
from typing import Any

import pytest

from limelight.understudy import server

Requests = list[dict[str, Any]]


def record_requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Record the bodies of all requests to an understudy from now on."""
    requests: Requests = []
    read = server.read_request

    def spy(body: bytes) -> Any:
        requests.append(json.loads(body))
        return read(body)

    monkeypatch.setattr(server, "read_request", spy)
    return requests


def conversation_in(request: dict[str, Any]) -> list[tuple[str, str]]:
    """The roles and texts of a request's messages, without instructions; calls are the names of their tools."""
    return [(m["role"], _content(m)) for m in request["messages"] if m["role"] not in ("system", "developer")]


def _content(message: dict[str, Any]) -> str:
    content: Any = message.get("content")
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
    calls = ", ".join(call["function"]["name"] for call in message.get("tool_calls") or ())
    return f"[{calls}]" if calls else text
