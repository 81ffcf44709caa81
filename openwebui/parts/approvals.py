"""Approvals: the person in the chat is asked, and the server is told."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from openwebui.parts.dialog import Dialog
from openwebui.parts.frames import Frame
from openwebui.parts.server import Lost, Refused, Server
from openwebui.parts.types import Ask, Json

ASK_AGAIN_SECONDS = 5
ARGUMENT_BYTES = 1_000_000
"""Nobody reads more than this in a dialog."""


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
                frame = await self._whole(frame)
                cut = frame.data.get("truncated")  # nobody is asked to approve what they cannot see
                decision = None if cut else await self._dialog.decision(frame, problem)
                problem = await self._decide(approval_id, decision) if decision else ""
                if decision and not problem:
                    return
                if not decision:
                    if not told:
                        await self._tell_where(frame)
                    told = True
                    await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _whole(self, frame: Frame) -> Frame:
        """With all arguments in place of their beginning, if they can be had."""
        if not frame.data.get("truncated") or frame.number("size") > ARGUMENT_BYTES:
            return frame
        found = await self._server.fetch_object(self._path(frame.text("approval_id")), 2 * ARGUMENT_BYTES)
        if "args" not in found:
            return frame
        return frame._replace(data={**frame.data, "args": found["args"], "truncated": False})

    def _path(self, approval_id: str) -> str:
        return f"/runs/{self._server.run_id}/approvals/{quote(approval_id, safe='')}"

    async def _tell_where(self, frame: Frame) -> None:
        command = f"limelight approve {self._server.run_id}{self._server.as_user}"
        where = f"waiting for approval: answer here, or run `{command}`"
        if frame.data.get("truncated"):
            where = f"waiting for approval, but its arguments cannot be shown here: run `{command}`"
        about = {key: frame.text(key) for key in ("approval_id", "tool_id", "name")}
        await self._news(Frame("_unanswered", {**about, "where": where}))

    async def _decide(self, approval_id: str, decision: Json) -> str:
        """Send it; what the server has against it, or ""."""
        try:
            await self._server.call("POST", self._path(approval_id), decision)
        except Refused as refused:
            settled = refused.code in ("already_decided", "expired") or refused.status == 404
            return "" if settled else str(refused)
        except Lost as lost:
            return str(lost)
        return ""
