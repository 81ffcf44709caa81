"""Approvals: the person in the chat is asked, and the server is told."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from openwebui.parts.frames import Frame
from openwebui.parts.server import Lost, Refused, Server
from openwebui.parts.texts import short
from openwebui.parts.values import Ask, Json, as_object

QUESTION_CHARS = 400
ASK_AGAIN_SECONDS = 5
DECISIONS = {
    "approve": "Let it run with these arguments.",
    "edit": "Change the arguments first.",
    "reject": "Do not run it. What you write under Other is told to the agent as the reason.",
}


class Asker:
    """Asks one question at a time. What was decided comes back as a frame like any other, from here or elsewhere."""

    def __init__(
        self, server: Server, ask: Ask | None, news: Callable[[Frame], Awaitable[None]], metadata: Json
    ) -> None:
        self._server = server
        self._dialog = Dialog(ask, metadata)
        self._news = news
        self._turn = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def feed(self, frame: Frame) -> None:
        if frame.type != "approval":
            return
        approval_id = frame.text("approval_id")
        if frame.data.get("state") != "requested":
            if task := self._tasks.pop(approval_id, None):
                task.cancel()  # which takes the dialog away too
        elif approval_id not in self._tasks:
            self._tasks[approval_id] = asyncio.create_task(self._settle(approval_id, frame))

    async def close(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _settle(self, approval_id: str, frame: Frame) -> None:
        """Ask until there is an answer that the server takes. It knows when the time is over, and says so."""
        problem, told = "", False
        async with self._turn:
            while True:
                decision = await self._dialog.decision(frame, problem)
                problem = await self._decide(approval_id, decision) if decision else ""
                if decision and not problem:
                    return
                if not decision:
                    if not told:
                        await self._tell_where(frame)
                    told = True
                    await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _tell_where(self, frame: Frame) -> None:
        command = f"limelight approve {self._server.run_id}{self._server.as_user}"
        where = f"waiting for approval: answer here, or run `{command}`"
        about = {"tool_id": frame.text("tool_id"), "name": frame.text("name"), "where": where}
        await self._news(Frame("_unanswered", about))

    async def _decide(self, approval_id: str, decision: Json) -> str:
        """Send it; what the server has against it, or ""."""
        path = f"/runs/{self._server.run_id}/approvals/{quote(approval_id, safe='')}"
        try:
            await self._server.call("POST", path, decision)
        except Refused as refused:
            settled = refused.code in ("already_decided", "expired") or refused.status == 404
            return "" if settled else str(refused)
        except Lost as lost:
            return str(lost)
        return ""


class Dialog:
    """The card above the input of the chat, and the editor for arguments."""

    def __init__(self, ask: Ask | None, metadata: Json) -> None:
        self._ask = ask
        self._metadata = metadata

    async def decision(self, frame: Frame, problem: str) -> Json | None:
        """The body of the decision, or None if nobody answers."""
        offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
        args = json.dumps(frame.data.get("args"), ensure_ascii=False, indent=2)
        question = f"May {frame.text('name') or 'the tool'} run with {short(args, QUESTION_CHARS)}?"
        asked: Json = {"id": "decision", "header": "Approval", "question": f"{problem}\n{question}".strip()}
        asked["options"] = [{"label": name.capitalize(), "description": DECISIONS[name]} for name in offered]
        data: Json = {"questions": [{**asked, "allow_other": True}], "allow_other": True, "timeout_ms": 240_000}
        reply = as_object(await self._call({"type": "request:user_input", "data": data}))
        answer = as_object(as_object(reply.get("answers")).get("decision"))
        if reply.get("status") != "answered" or not answer:
            return None
        place = answer.get("option_index")
        if answer.get("type") == "option" and isinstance(place, int) and 0 <= place < len(offered):
            return await self._edited(args) if offered[place] == "edit" else {"decision": offered[place]}
        return {"decision": "reject", "reason": str(answer.get("text") or answer.get("label") or "")[:500]}

    async def _edited(self, args: str) -> Json | None:
        message = "The new arguments, as JSON."
        while True:
            data = {"title": "Edit the arguments", "message": message, "placeholder": "{}", "value": args}
            text = await self._call({"type": "input", "data": data})
            if not isinstance(text, str):
                return None
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
