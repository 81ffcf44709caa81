"""One chat of one user with the pipe: messages, and the output that the user sees."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from tests.openwebui.function_rules import FUNCTION_ID, Chunk, EventCall, Json, WebUI, through_json
from tests.openwebui.output_items import fold_chunks, item_text

USER: Json = {"id": "u-1", "name": "Änn & Co", "email": "ann@example.org", "role": "user"}


class Output:
    """The output of one call of the pipe: the chunks that it has yielded and the events that it has emitted."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.events: list[Json] = []

    async def emit(self, event: Json) -> None:
        received = through_json(event)
        assert isinstance(received, dict)
        self.events.append(received)

    async def read(self, stream: AsyncGenerator[Chunk, None]) -> None:
        async with aclosing(stream):
            async for chunk in stream:
                self.chunks.append(through_json(chunk))

    @property
    def items(self) -> list[Json]:
        return fold_chunks(through_json(chunk) for chunk in self.chunks)

    def items_of_type(self, item_type: str) -> list[Json]:
        return [item for item in self.items if item["type"] == item_type]

    @property
    def rows(self) -> dict[str, str]:
        """The label and the output of each call."""
        results = {item["call_id"]: item_text(item) for item in self.items_of_type("function_call_output")}
        return {item["name"]: results[item["call_id"]] for item in self.items_of_type("function_call")}

    @property
    def text(self) -> str:
        """The text of the message."""
        plain = [chunk for chunk in self.chunks if isinstance(chunk, str)]
        return "".join([*plain, *(item_text(item) for item in self.items_of_type("message"))])

    @property
    def statuses(self) -> list[str]:
        return [event["data"]["description"] for event in self.events if event["type"] == "status"]

    @property
    def final_status(self) -> tuple[str, bool]:
        """The last status, and whether it is marked as done."""
        data = [event for event in self.events if event["type"] == "status"][-1]["data"]
        return data["description"], data["done"]

    @property
    def sources(self) -> dict[str, str]:
        sources = [event["data"] for event in self.events if event["type"] == "source"]
        return {source["source"]["name"]: source["document"][0] for source in sources}

    @property
    def errors(self) -> list[str]:
        return [chunk["error"]["message"] for chunk in self.chunks if isinstance(chunk, dict) and "error" in chunk]


class Chat:
    """Calls the pipe for each message. `ask` answers dialogs; the valves are the administrator's."""

    def __init__(
        self, url: str, *, user: Json | None = None, ask: EventCall | None = None, model: str = "default", **valves: Any
    ) -> None:
        self.webui = WebUI(DEEP_AGENT_URL=url, **valves)
        self.metadata: Json = {"session_id": "socket-1", "chat_id": "chat-1", "message_id": "m-2"}
        self.metadata["user_message_id"] = "m-1"
        self.model = f"{FUNCTION_ID}.{model}"
        self._user = user or USER
        self._ask = ask

    async def send(self, text: str, history: Sequence[Json] = ()) -> Output:
        """Send a message and return the complete output."""
        output = Output()
        await self.stream_into(text, output, history)
        return output

    def start(self, text: str) -> tuple[Output, "asyncio.Task[None]"]:
        """Send a message, and return the growing output and its task. The Stop button cancels such a task."""
        output = Output()
        return output, asyncio.create_task(self.stream_into(text, output))

    async def stream_into(self, text: str, output: Output, history: Sequence[Json] = ()) -> None:
        reply = await self.call([*history, {"role": "user", "content": text}], output)
        assert isinstance(reply, AsyncGenerator)
        await output.read(reply)

    async def call(
        self, messages: list[Json], output: Output, *, stream: bool = True, metadata: Json | None = None
    ) -> str | AsyncGenerator[Chunk, None]:
        body = {"model": self.model, "messages": messages, "stream": stream}
        metadata = self.metadata if metadata is None else metadata
        return await self.webui.call(body, user=self._user, metadata=metadata, emit=output.emit, ask=self._ask)
