"""One chat of one person with the pipe: what they say, and what they get to see."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from tests.openwebui.function_rules import FUNCTION_ID, Ask, Chunk, Json, WebUI, delivered
from tests.openwebui.output import fold, text_of

USER: Json = {"id": "u-1", "name": "Änn & Co", "email": "ann@example.org", "role": "user"}


class Seen:
    """What one call of the pipe gave so far: chunks that it yielded, events that it emitted."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.events: list[Json] = []

    async def emit(self, event: Json) -> None:
        found = delivered(event)
        assert isinstance(found, dict)
        self.events.append(found)

    async def take(self, stream: AsyncGenerator[Chunk, None]) -> None:
        async with aclosing(stream):
            async for chunk in stream:
                self.chunks.append(delivered(chunk))

    @property
    def items(self) -> list[Json]:
        return fold(delivered(chunk) for chunk in self.chunks)

    def of_type(self, kind: str) -> list[Json]:
        return [item for item in self.items if item["type"] == kind]

    @property
    def rows(self) -> dict[str, str]:
        """What the row of each call says, and what came of it."""
        results = {item["call_id"]: text_of(item) for item in self.of_type("function_call_output")}
        return {item["name"]: results[item["call_id"]] for item in self.of_type("function_call")}

    @property
    def text(self) -> str:
        """What stands in the bubble."""
        plain = [chunk for chunk in self.chunks if isinstance(chunk, str)]
        return "".join([*plain, *(text_of(item) for item in self.of_type("message"))])

    @property
    def statuses(self) -> list[str]:
        return [event["data"]["description"] for event in self.events if event["type"] == "status"]

    @property
    def end(self) -> tuple[str, bool]:
        """The last line, and whether it came to rest."""
        data = [event for event in self.events if event["type"] == "status"][-1]["data"]
        return data["description"], data["done"]

    @property
    def sources(self) -> dict[str, str]:
        found = [event["data"] for event in self.events if event["type"] == "source"]
        return {source["source"]["name"]: source["document"][0] for source in found}

    @property
    def errors(self) -> list[str]:
        return [chunk["error"]["message"] for chunk in self.chunks if isinstance(chunk, dict) and "error" in chunk]


class Chat:
    """Every message of it is a call of the pipe. `ask` answers dialogs; valves are the administrator's."""

    def __init__(
        self, url: str, *, user: Json | None = None, ask: Ask | None = None, model: str = "default", **valves: Any
    ) -> None:
        self.webui = WebUI(DEEP_AGENT_URL=url, **valves)
        self.metadata: Json = {"session_id": "socket-1", "chat_id": "chat-1", "message_id": "m-2"}
        self.metadata["user_message_id"] = "m-1"
        self.model = f"{FUNCTION_ID}.{model}"
        self._user = user or USER
        self._ask = ask

    async def say(self, text: str, history: Sequence[Json] = ()) -> Seen:
        """Ask, and look at it until the end."""
        seen = Seen()
        await self.follow(text, seen, history)
        return seen

    def start(self, text: str) -> tuple[Seen, "asyncio.Task[None]"]:
        """Ask, and do something else meanwhile. Cancelling the task is what the Stop button does."""
        seen = Seen()
        return seen, asyncio.create_task(self.follow(text, seen))

    async def follow(self, text: str, seen: Seen, history: Sequence[Json] = ()) -> None:
        reply = await self.call([*history, {"role": "user", "content": text}], seen)
        assert isinstance(reply, AsyncGenerator)
        await seen.take(reply)

    async def call(
        self, messages: list[Json], seen: Seen, *, stream: bool = True, metadata: Json | None = None
    ) -> str | AsyncGenerator[Chunk, None]:
        body = {"model": self.model, "messages": messages, "stream": stream}
        metadata = self.metadata if metadata is None else metadata
        return await self.webui.call(body, user=self._user, metadata=metadata, emit=seen.emit, ask=self._ask)
