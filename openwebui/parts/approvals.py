"""Asks the user in the chat for decisions and answers, and sends them to the server."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from openwebui.parts.answers import AnswerField, answer_fields, initial_text, listed_choices, typed_value
from openwebui.parts.frames import Frame, Json, as_object
from openwebui.parts.server_client import ConnectionLost, LimelightClient, RequestRefused

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
GRAPH_QUESTION = "interrupt"
"""The name of a request that is a question of a LangGraph graph, not about a tool."""
EDIT_OR_ANSWER = "Edit or answer"
MAX_OPTIONS = 3
"""How many options a card of Open WebUI can have, besides Other."""
SHOW_OPTION = {"label": "Show all", "description": "See the complete arguments first."}


class Approvals:
    """Asks the user to decide the approval requests of a run, one at a time.

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
        """Show in the chat how to decide the approval in another way, for example with the command line."""
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
    """The dialogs for an approval: a card above the message field that asks for a decision, and an argument editor."""

    def __init__(self, event_call: EventCall | None, metadata: Json) -> None:
        self._event_call = event_call
        self._metadata = metadata

    async def ask(self, frame: Frame, problem: str) -> Json | None:
        """Ask for a decision or an answer. Return its JSON body, None if the user does not answer.

        `problem` says why the server refused the previous decision.
        """
        if isinstance(frame.data.get("answer_schema"), dict):
            return await self._ask_question(frame, problem)
        offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
        args = frame.data.get("args")
        while True:
            card = approval_card(frame.text("name"), args, offered, problem, frame.text("question"))
            answer = await self._show_card(card)
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

    async def _ask_question(self, frame: Frame, problem: str) -> Json | None:
        """Ask a question that has a form: by its choices on a card, or by dialogs for its fields."""
        args, fields = frame.data.get("args"), answer_fields(frame.data["answer_schema"])
        while True:
            options = question_options(frame, fields)
            reply = await self._show_card(question_card(frame, fields, options, problem))
            index = reply.get("option_index") if reply.get("type") == "option" else None
            decision: Json | None
            if not reply:
                return None
            if not isinstance(index, int) or not 0 <= index < len(options):
                text = str(reply.get("text") or reply.get("label") or "")
                decision, problem = other_decision(text, fields, is_answer=text_is_answer(frame, fields))
            elif "answer" in options[index]:
                decision = {"decision": "respond", "answer": options[index]["answer"]}
            elif options[index]["name"] == "answer":
                decision, problem = await self._fill_in(fields, frame.text("question")), ""
            elif options[index]["name"] == "edit":
                takes_text = options[index]["label"] == EDIT_OR_ANSWER
                decision, problem = await self._edit_args(format_args(args), takes_text=takes_text), ""
            else:
                decision = {"decision": options[index]["name"]}
            if decision != {}:
                return decision

    async def _fill_in(self, fields: list[AnswerField], question: str) -> Json | None:
        """Ask for each field. Return the decision, {} if the user closes a dialog, None if the user does not answer."""
        values: Json = {}
        for field in fields:
            message, text = "", initial_text(field.schema)
            while True:
                reply = await self._call({"type": "input", "data": input_dialog(field, question, message, text)})
                if not isinstance(reply, str):
                    return {} if reply is False else None
                if not reply and not field.is_required:
                    break
                try:
                    values[field.name] = typed_value(reply, field.schema)
                    break
                except ValueError as error:
                    message, text = str(error), reply
        return {"decision": "respond", "answer": values.get("", values)}

    async def _show_card(self, card: Json) -> Json:
        """Show the card. Return the chosen option or the text under Other; an empty object without an answer."""
        data: Json = {"questions": [card], "allow_other": True, "timeout_ms": 240_000}
        reply = as_object(await self._call({"type": "request:user_input", "data": data}))
        return as_object(as_object(reply.get("answers")).get("decision")) if reply.get("status") == "answered" else {}

    async def _show_args(self, args: str) -> None:
        data = {"title": "Complete arguments", "message": "Changes here have no effect.", "value": args}
        await self._call({"type": "input", "data": {**data, "placeholder": ""}})

    async def _edit_args(self, args: str, *, takes_text: bool = False) -> Json | None:
        """Show the editor. Return the decision with the edited arguments or, if it takes a text, with the answer.

        Return an empty object if the user closes the editor, and None if the user does not answer.
        """
        message = "The new arguments, as JSON."
        if takes_text:
            message += " Any other text is your answer in place of the action."
        while True:
            data = {"title": "Edit the arguments", "message": message, "placeholder": "{}", "value": args}
            text = await self._call({"type": "input", "data": data})
            if not isinstance(text, str):
                return {} if text is False else None
            if takes_text and text.strip() and not text.lstrip().startswith("{"):
                return {"decision": "respond", "answer": text}
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
        """Update the socket id of the user's browser tab, which changes when the user reloads the page.

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


def approval_card(name: str, args: Any, offered: list[str], problem: str, asked: str = "") -> Json:
    """Return the card for an approval. For long arguments it shows the beginning, and offers an option to show all.

    `asked` is the agent's own question.
    """
    shown = json.dumps(args, ensure_ascii=False)
    options: list[Json] = [{"label": each.capitalize(), "description": DECISIONS[each]} for each in offered]
    if len(shown) > CARD_CHARS:
        hint = "choose Edit to see all" if "edit" in offered else "choose Show all to see them"
        shown = f"{shown[:CARD_CHARS]} … ({len(shown) - CARD_CHARS:,} more characters: {hint})"
        options += [] if "edit" in offered else [SHOW_OPTION]
    question = "\n".join(filter(None, (asked[:CARD_CHARS], f"May {name or 'the tool'} run with {shown}?")))
    card: Json = {"id": "decision", "header": "Approval", "question": f"{problem}\n{question}".strip()}
    return {**card, "options": options, "allow_other": True}


def question_options(frame: Frame, fields: list[AnswerField]) -> list[Json]:
    """Return the options of a question's card: its choices, or what the user can do. A card takes two or three."""
    choices = fields[0].choices if len(fields) == 1 and not fields[0].name else []
    if 2 <= len(choices) <= MAX_OPTIONS:
        return [
            {"name": "answer", "label": c["label"], "text": c["description"], "answer": c["value"]} for c in choices
        ]
    offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
    if frame.text("name") == GRAPH_QUESTION and len(offered) == MAX_OPTIONS:
        offered.remove("edit")
    options = [{"name": name, "label": name.capitalize(), "text": _about(frame, name)} for name in offered]
    if len(options) == MAX_OPTIONS and not is_question(frame):
        options[1] |= {"label": EDIT_OR_ANSWER, "text": "Change the arguments first, or answer in its place."}
    elif len(options) < MAX_OPTIONS:
        answer = {"name": "answer", "label": "Answer", "text": "Type or choose the answer."}
        options.insert(0 if is_question(frame) else 1, answer)
    return options


def is_question(frame: Frame) -> bool:
    """Whether an answer is what the agent waits for. An action can also be answered, but is first to be approved."""
    return frame.text("name") == GRAPH_QUESTION or "approve" not in (frame.data.get("decisions") or DECISIONS)


def text_is_answer(frame: Frame, fields: list[AnswerField]) -> bool:
    """Whether a text under Other is the answer. For an action and for a form it is the reason of a rejection."""
    return is_question(frame) and len(fields) == 1 and not fields[0].name


def _about(frame: Frame, decision: str) -> str:
    if frame.text("name") != GRAPH_QUESTION:
        return DECISIONS[decision]
    return {"approve": "Continue without an answer: yes.", "reject": "Continue without an answer: no."}.get(
        decision, DECISIONS[decision]
    )


def question_card(frame: Frame, fields: list[AnswerField], options: list[Json], problem: str) -> Json:
    """Return the card for a question."""
    name, args, asked = frame.text("name"), frame.data.get("args"), frame.text("question")
    shown = json.dumps(args, ensure_ascii=False)
    if name != GRAPH_QUESTION:
        asked = "\n".join(filter(None, (asked, f"{name}: {shown}")))
    elif not asked:
        asked = shown
    cut = asked if len(asked) <= CARD_CHARS else f"{asked[:CARD_CHARS]} …"
    hint = "Text under Other is your answer." if text_is_answer(frame, fields) else ""
    if fields[0].name:
        hint = f"It asks for {', '.join(field.title for field in fields)}."
    card: Json = {"id": "decision", "header": "Question", "question": "\n".join(filter(None, (problem, cut, hint)))}
    shown_options = [{"label": option["label"], "description": option["text"]} for option in options]
    return {**card, "options": shown_options, "allow_other": True}


def other_decision(text: str, fields: list[AnswerField], *, is_answer: bool) -> tuple[Json, str]:
    """Return the decision for a text under Other, and a message if the text does not fit; the decision is then {}."""
    if not is_answer:
        return {"decision": "reject", "reason": text[:500]}, ""
    try:
        return {"decision": "respond", "answer": typed_value(text, fields[0].schema)}, ""
    except ValueError as error:
        return {}, str(error)


def input_dialog(field: AnswerField, question: str, message: str, value: str) -> Json:
    """Return the dialog for one field: a list of its choices, or a text field."""
    about = str(field.schema.get("description") or "")
    several = [str(choice["label"]) for choice in listed_choices(as_object(field.schema.get("items")))]
    listed = f"Several of: {', '.join(several)}." if several else ""
    optional = "" if field.is_required else "Leave it empty if there is none."
    lines = (message, about or ("" if field.name else question), listed, optional)
    dialog: Json = {"title": field.title, "message": "\n".join(filter(None, lines)), "placeholder": "", "value": value}
    if not field.choices:
        return dialog
    options = [{"label": choice["label"], "value": str(choice["label"])} for choice in field.choices]
    return {**dialog, "input": {"type": "select", "options": options}}


def format_args(args: Any) -> str:
    return json.dumps(args, ensure_ascii=False, indent=2)
