"""The card above the input of the chat that asks for a decision, and the editor for arguments."""

import asyncio
import contextlib
import json
import sys
from typing import Any

from openwebui.parts.frames import Frame
from openwebui.parts.types import Ask, Json, as_object

CARD_CHARS = 1500
"""The card does not scroll: with more the buttons would leave the screen."""
DECISIONS = {
    "approve": "Let it run with these arguments.",
    "edit": "Change the arguments first.",
    "reject": "Do not run it. What you write under Other is told to the agent as the reason.",
}
SHOW = {"label": "Show all", "description": "See the whole arguments first."}


class Dialog:
    """Asks by way of Open WebUI, in whichever tab the chat is open."""

    def __init__(self, ask: Ask | None, metadata: Json) -> None:
        self._ask = ask
        self._metadata = metadata

    async def decision(self, frame: Frame, problem: str) -> Json | None:
        """The body of the decision, or None if nobody answers."""
        offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
        args = frame.data.get("args")
        while True:
            answer = await self._answer(card(frame.text("name"), args, offered, problem))
            place = answer.get("option_index") if answer.get("type") == "option" else None
            if not answer:
                return None
            if not isinstance(place, int) or not 0 <= place <= len(offered):
                return {"decision": "reject", "reason": str(answer.get("text") or answer.get("label") or "")[:500]}
            if place == len(offered):
                await self._show(pretty(args))
            elif offered[place] != "edit":
                return {"decision": offered[place]}
            elif (edited := await self._edited(pretty(args))) != {}:
                return edited

    async def _answer(self, question: Json) -> Json:
        """What was chosen or written; nothing if nobody answers."""
        data: Json = {"questions": [question], "allow_other": True, "timeout_ms": 240_000}
        reply = as_object(await self._call({"type": "request:user_input", "data": data}))
        return as_object(as_object(reply.get("answers")).get("decision")) if reply.get("status") == "answered" else {}

    async def _show(self, args: str) -> None:
        data = {"title": "The whole arguments", "message": "What you change here does not count.", "value": args}
        await self._call({"type": "input", "data": {**data, "placeholder": ""}})

    async def _edited(self, args: str) -> Json | None:
        """The decision; nothing in it if the person has only looked; None if nobody answers."""
        message = "The new arguments, as JSON."
        while True:
            data = {"title": "Edit the arguments", "message": message, "placeholder": "{}", "value": args}
            text = await self._call({"type": "input", "data": data})
            if not isinstance(text, str):
                return {} if text is False else None
            try:
                found = json.loads(text)
            except ValueError as error:
                message, args = f"This is not valid JSON: {error}.", text
                continue
            if isinstance(found, dict):
                return {"decision": "edit", "args": found}
            message, args = 'Arguments are a JSON object like {"name": "value"}.', text

    async def _call(self, event: Json) -> Any:
        if self._ask is None:
            return None
        await self._find_the_tab()
        try:
            return await self._ask(event)
        except Exception:  # the dialog is gone with its tab; the question stays open on the server
            return None

    async def _find_the_tab(self) -> None:
        """After a reload the chat has another socket. Open WebUI looks for it only if the old one dies in the call."""
        sockets = sys.modules.get("open_webui.socket.main")
        find = getattr(sockets, "get_user_chat_session_id", None)
        pool = getattr(sockets, "SESSION_POOL", None)
        if find is None or pool is None or pool.get(self._metadata.get("session_id")) is not None:
            return
        with contextlib.suppress(Exception):
            found = await asyncio.to_thread(find, self._metadata.get("user_id"), self._metadata.get("chat_id"))
            if found is not None:
                self._metadata["session_id"] = found


def card(name: str, args: Any, offered: list[str], problem: str) -> Json:
    """The question. Arguments that have no room are not hidden: it says how much is missing, and how to see it."""
    shown = json.dumps(args, ensure_ascii=False)
    options: list[Json] = [{"label": each.capitalize(), "description": DECISIONS[each]} for each in offered]
    if len(shown) > CARD_CHARS:
        see = "choose Edit to see all" if "edit" in offered else "choose Show all to see them"
        shown = f"{shown[:CARD_CHARS]} … ({len(shown) - CARD_CHARS:,} more characters: {see})"
        options += [] if "edit" in offered else [SHOW]
    question = f"May {name or 'the tool'} run with {shown}?"
    asked: Json = {"id": "decision", "header": "Approval", "question": f"{problem}\n{question}".strip()}
    return {**asked, "options": options, "allow_other": True}


def pretty(args: Any) -> str:
    return json.dumps(args, ensure_ascii=False, indent=2)
