"""A simulated user of Open WebUI who answers dialogs."""

import asyncio
from typing import Any

from tests.openwebui.function_rules import Json

OPTIONS = ("approve", "edit", "reject")
DISCONNECTED: Json = {"error": "Client session disconnected."}


def option_answer(name: str, options: tuple[str, ...] = OPTIONS) -> Json:
    """The answer for a click on an option of the card."""
    answer = {"type": "option", "option_index": options.index(name), "label": name.capitalize(), "description": ""}
    return {"status": "answered", "answers": {"decision": answer}}


def text_answer(text: str) -> Json:
    """The answer for a text under Other."""
    return {"status": "answered", "answers": {"decision": {"type": "other", "text": text}}}


class DialogUser:
    """Gives one reply after the other. When none is left, the dialog stays open until it is cancelled."""

    def __init__(self, *replies: Any) -> None:
        self.events: list[Json] = []
        self.closed: list[Json] = []
        self.max_open = 0
        self._replies = list(replies)
        self._open = 0

    async def answer(self, event: Json) -> Any:
        self.events.append(event)
        self._open += 1
        self.max_open = max(self.max_open, self._open)
        try:
            await asyncio.sleep(0)
            if self._replies:
                return self._replies.pop(0)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.closed.append(event)
            raise
        finally:
            self._open -= 1

    @property
    def questions(self) -> list[Json]:
        """The cards that were shown."""
        return [event["data"]["questions"][0] for event in self.events if event["type"] == "request:user_input"]

    @property
    def inputs(self) -> list[Json]:
        return [event["data"] for event in self.events if event["type"] == "input"]
