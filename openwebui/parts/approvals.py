"""Approvals: asks the user for a decision in the chat, and sends it to the server."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from openwebui.parts.client import ConnectionLost, LimelightClient, RequestRefused
from openwebui.parts.frames import Frame, Json, as_object

EventCall = Callable[[Json], Awaitable[Any]]
"""Open WebUI's `__event_call__`: shows a dialog in the chat and returns the user's input."""

REPEAT_SECONDS = 5
MAX_ARGUMENT_BYTES = 1_000_000
"""Size limit of arguments that a dialog can show for review. Larger ones are decided outside of the chat."""
CARD_CHARS = 1500
"""Limit of the text on the card, which does not scroll: more text would push its buttons off the screen."""
DECISIONS = {
    "approve": "Let it run with these arguments.",
    "edit": "Change the arguments first.",
    "reject": "Do not run it. The agent gets the text under Other as the reason.",
}
SHOW_OPTION = {"label": "Show all", "description": "See the complete arguments first."}


class Approvals:
    """Asks the user for decisions on the approvals of a run, one at a time.

    The server reports every decision, made in this chat or elsewhere, as a frame, which closes the dialog."""

    def __init__(
        self,
        client: LimelightClient,
        event_call: EventCall | None,
        send_frame: Callable[[Frame], Awaitable[None]],
        metadata: Json,
    ) -> None:
        self._client = client
        self._dialog = ApprovalDialog(event_call, metadata)
        self._send_frame = send_frame
        self._lock = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def feed(self, frame: Frame) -> None:
        if frame.type != "approval":
            return
        approval_id = frame.text("approval_id")
        if frame.data.get("state") != "requested":
            if task := self._tasks.pop(approval_id, None):
                task.cancel()  # closes the dialog too
        elif approval_id not in self._tasks:
            self._tasks[approval_id] = asyncio.create_task(self._request_decision(approval_id, frame))

    async def close(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _request_decision(self, approval_id: str, frame: Frame) -> None:
        """Ask the user until the server accepts a decision. A decision elsewhere or an expiry cancels this task."""
        problem, has_instructed = "", False
        async with self._lock:
            while True:
                frame = await self._complete_args(frame)
                is_truncated = frame.data.get("truncated")  # a user must see arguments before approving them
                decision = None if is_truncated else await self._dialog.ask(frame, problem)
                problem = await self._send_decision(approval_id, decision) if decision else ""
                if decision and not problem:
                    return
                if not decision:
                    if not has_instructed:
                        await self._send_instruction(frame)
                    has_instructed = True
                    await asyncio.sleep(REPEAT_SECONDS)

    async def _complete_args(self, frame: Frame) -> Frame:
        """Return the frame with complete arguments instead of a preview, if they are not too long."""
        if not frame.data.get("truncated") or frame.number("size") > MAX_ARGUMENT_BYTES:
            return frame
        approval = await self._client.download_object(self._path(frame.text("approval_id")), 2 * MAX_ARGUMENT_BYTES)
        if "args" not in approval:
            return frame
        return frame._replace(
            data={**frame.data, "args": approval["args"], "truncated": bool(approval.get("truncated"))}
        )

    def _path(self, approval_id: str) -> str:
        return f"/runs/{self._client.run_id}/approvals/{quote(approval_id, safe='')}"

    async def _send_instruction(self, frame: Frame) -> None:
        """Add a frame that tells the user how to decide outside of this chat."""
        command = f"limelight approve {self._client.run_id}{self._client.command_user}"
        instruction = f"waiting for approval: answer here, or run `{command}`"
        if frame.data.get("truncated"):
            instruction = f"waiting for approval, but its arguments cannot be shown here: run `{command}`"
        approval = {key: frame.text(key) for key in ("approval_id", "tool_id", "name")}
        await self._send_frame(Frame("_unanswered", {**approval, "instruction": instruction}))

    async def _send_decision(self, approval_id: str, decision: Json) -> str:
        """Send a decision to the server. Return the reason if the server refuses it, "" if the approval is decided."""
        try:
            await self._client.request_json("POST", self._path(approval_id), decision)
        except RequestRefused as refused:
            is_decided = refused.code in ("already_decided", "expired") or refused.status == 404
            return "" if is_decided else str(refused)
        except ConnectionLost as error:
            return str(error)
        return ""


class ApprovalDialog:
    """The dialogs of an approval: the card above the input that asks for a decision, and the editor for arguments."""

    def __init__(self, event_call: EventCall | None, metadata: Json) -> None:
        self._event_call = event_call
        self._metadata = metadata

    async def ask(self, frame: Frame, problem: str) -> Json | None:
        """Ask for a decision. Return its JSON body, None if the user does not answer.

        `problem` says why the server refused the previous decision.
        """
        offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
        args = frame.data.get("args")
        while True:
            answer = await self._show_card(approval_card(frame.text("name"), args, offered, problem))
            option = answer.get("option_index") if answer.get("type") == "option" else None
            if not answer:
                return None
            if not isinstance(option, int) or not 0 <= option <= len(offered):
                return {"decision": "reject", "reason": str(answer.get("text") or answer.get("label") or "")[:500]}
            if option == len(offered):
                await self._show_args(format_args(args))
            elif offered[option] != "edit":
                return {"decision": offered[option]}
            elif (decision := await self._edit_args(format_args(args))) != {}:
                return decision

    async def _show_card(self, card: Json) -> Json:
        """Show the card. Return the chosen option or the text under Other; an empty object without an answer."""
        data: Json = {"questions": [card], "allow_other": True, "timeout_ms": 240_000}
        reply = as_object(await self._call({"type": "request:user_input", "data": data}))
        return as_object(as_object(reply.get("answers")).get("decision")) if reply.get("status") == "answered" else {}

    async def _show_args(self, args: str) -> None:
        data = {"title": "Complete arguments", "message": "Changes here have no effect.", "value": args}
        await self._call({"type": "input", "data": {**data, "placeholder": ""}})

    async def _edit_args(self, args: str) -> Json | None:
        """Show the editor. Return the decision with the edited arguments.

        Return an empty object if the user closes the editor, and None if the user does not answer.
        """
        message = "The new arguments, as JSON."
        while True:
            data = {"title": "Edit the arguments", "message": message, "placeholder": "{}", "value": args}
            text = await self._call({"type": "input", "data": data})
            if not isinstance(text, str):
                return {} if text is False else None
            try:
                edited = json.loads(text)
            except ValueError as error:
                message, args = f"This is not valid JSON: {error}.", text
                continue
            if isinstance(edited, dict):
                return {"decision": "edit", "args": edited}
            message, args = 'Arguments are a JSON object like {"name": "value"}.', text

    async def _call(self, event: Json) -> Any:
        if self._event_call is None:
            return None
        await self._find_tab()
        try:
            return await self._event_call(event)
        except Exception:  # the tab was closed; the approval stays open on the server
            return None

    async def _find_tab(self) -> None:
        """Update the socket id of the user's browser tab, which changes with a reload.

        Open WebUI itself looks for the new socket only if the old one disconnects during a call."""
        sockets = sys.modules.get("open_webui.socket.main")
        find_socket = getattr(sockets, "get_user_chat_session_id", None)
        pool = getattr(sockets, "SESSION_POOL", None)
        if find_socket is None or pool is None or pool.get(self._metadata.get("session_id")) is not None:
            return
        with contextlib.suppress(Exception):
            user_id, chat_id = self._metadata.get("user_id"), self._metadata.get("chat_id")
            socket_id = await asyncio.to_thread(find_socket, user_id, chat_id)
            if socket_id is not None:
                self._metadata["session_id"] = socket_id


def approval_card(name: str, args: Any, offered: list[str], problem: str) -> Json:
    """Return the card for an approval. For long arguments it shows the beginning, and offers an option to show all."""
    shown = json.dumps(args, ensure_ascii=False)
    options: list[Json] = [{"label": each.capitalize(), "description": DECISIONS[each]} for each in offered]
    if len(shown) > CARD_CHARS:
        hint = "choose Edit to see all" if "edit" in offered else "choose Show all to see them"
        shown = f"{shown[:CARD_CHARS]} … ({len(shown) - CARD_CHARS:,} more characters: {hint})"
        options += [] if "edit" in offered else [SHOW_OPTION]
    question = f"May {name or 'the tool'} run with {shown}?"
    card: Json = {"id": "decision", "header": "Approval", "question": f"{problem}\n{question}".strip()}
    return {**card, "options": options, "allow_other": True}


def format_args(args: Any) -> str:
    return json.dumps(args, ensure_ascii=False, indent=2)
