"""A client that is written from the Deep Agent document alone: the seven documented types, and httpx with its defaults.

It has the shape of the pipe that the document prints: it reads only the documented keys, ignores types that it does not
know, and does not resume.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

OnStatus = Callable[[str], Awaitable[None]]
"""Called with each new line of the status bar."""


class DocumentedClient:
    """One turn. `chat` is the text of the chat bubble, `statuses` are the lines of the status bar in their order."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.chat = ""
        self.statuses: list[str] = []
        self.sources: list[str] = []
        self.run_id = ""

    async def ask(self, text: str = "go", *, on_status: OnStatus | None = None, **body: Any) -> None:
        body = {"messages": [{"role": "user", "content": text}], "stream": True, **body}
        # The time-outs are httpx's own; proxies of the environment are not for a server on this machine.
        async with (
            httpx.AsyncClient(trust_env=False) as client,
            client.stream("POST", f"{self._url}/chat/stream", json=body) as response,
        ):
            self.run_id = response.headers["x-run-id"]
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    before = len(self.statuses)
                    self._take(event["type"], event.get("data", {}))
                    for status in self.statuses[before:]:
                        if on_status is not None:
                            await on_status(status)

    def _take(self, type_: str, data: dict[str, Any]) -> None:
        match type_:
            case "status":
                self.statuses.append(data["description"])
            case "tool_start":
                self.statuses.append(f"🔧 {data['name']}...")
            case "tool_end":
                self.sources.append(data["result"][:500])
            case "token":
                self.chat += data["content"]
            case "agent_start":
                self.statuses.append(f"🤖 Sub-agent: {data['name']}...")
            case "agent_end":
                self.statuses.append("Sub-agent completed")
            case "done":
                self.statuses.append("Complete")
            case _:
                pass
