"""Somebody in front of Open WebUI who answers its dialogs, or does not."""

import asyncio
from typing import Any

from tests.openwebui.function_rules import Json

OPTIONS = ("approve", "edit", "reject")
GONE: Json = {"error": "Client session disconnected."}


def choosing(name: str, options: tuple[str, ...] = OPTIONS) -> Json:
    """A click on an option of the card."""
    label = {"type": "option", "option_index": options.index(name), "label": name.capitalize(), "description": ""}
    return {"status": "answered", "answers": {"decision": label}}


def writing(text: str) -> Json:
    """What is written under Other."""
    return {"status": "answered", "answers": {"decision": {"type": "other", "text": text}}}


class Person:
    """Gives one reply after the other; when there is none left, the dialog stays open until it is taken away."""

    def __init__(self, *replies: Any) -> None:
        self.asked: list[Json] = []
        self.taken_away: list[Json] = []
        self.most_at_once = 0
        self._replies = list(replies)
        self._open = 0

    async def answer(self, event: Json) -> Any:
        self.asked.append(event)
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            await asyncio.sleep(0)
            if self._replies:
                return self._replies.pop(0)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.taken_away.append(event)
            raise
        finally:
            self._open -= 1

    @property
    def questions(self) -> list[Json]:
        """What the cards said."""
        return [event["data"]["questions"][0] for event in self.asked if event["type"] == "request:user_input"]

    @property
    def inputs(self) -> list[Json]:
        return [event["data"] for event in self.asked if event["type"] == "input"]
