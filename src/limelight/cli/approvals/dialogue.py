"""The conversation about one approval with the person at the terminal. The desk calls it, one question at a time.

It may be broken off at any time, because somebody else has decided: then the question is gone without a trace. Only an
editor that is open is waited for.
"""

import asyncio
from typing import Any, NamedTuple

from rich.text import Text

from limelight.cli.approvals.answers import as_json, choice, json_object
from limelight.cli.approvals.editor import chosen_editor, edited
from limelight.cli.approvals.keyboard import Keyboard
from limelight.cli.approvals.queue import Waiting
from limelight.cli.view.arguments import argument_lines
from limelight.cli.view.line_editor import Line
from limelight.cli.view.live import LiveView
from limelight.cli.view.prompt import Question
from limelight.cli.view.sanitize import one_line
from limelight.client import AlreadyDecided, Client, ClientError, Expired
from limelight.events import ApprovalRequested, Decision

WHY = "Why not? The agent is told. Enter alone: no reason; Esc: back."
ARGUMENTS = "All arguments as JSON. Enter: send; Esc: back."


class Answer(NamedTuple):
    """What the person says."""

    decision: Decision
    args: dict[str, Any] | None = None
    reason: str = ""


class Asking:
    """Asks below the live view."""

    def __init__(self, client: Client, view: LiveView) -> None:
        self._client = client
        self._view = view

    async def __call__(self, waiting: Waiting) -> None:
        """Ask until there is an answer that counts."""
        question = Question(waiting.asked, self._who(waiting.asked))
        with Keyboard() as keyboard, self._view.asking(question):
            await _Talk(self._client, self._view, waiting, question, keyboard).decide()

    def _who(self, asked: ApprovalRequested) -> str:
        helper, started = self._view.story.helper(asked.agent_id), self._view.story.started
        return helper.name if helper is not None else started.agent if started is not None else "the agent"


class _Talk:
    """One question and what is said about it."""

    def __init__(
        self, client: Client, view: LiveView, waiting: Waiting, question: Question, keyboard: Keyboard
    ) -> None:
        self._client = client
        self._view = view
        self._waiting = waiting
        self._question = question
        self._keyboard = keyboard
        self._draft: str | None = None
        """What the person left in the editor, if it was not valid."""

    async def decide(self) -> None:
        while True:
            try:
                said = await self._answer()
                await self._client.decide(
                    self._waiting.run_id, self._question.approval_id, said.decision, args=said.args, reason=said.reason
                )
                return
            except (AlreadyDecided, Expired):
                return  # the view says who it was
            except ClientError as error:
                self._question.notice = error.detail

    async def _answer(self) -> Answer:
        while True:
            word = await self._typed() or ""
            said: Answer | None = None
            match choice(word, self._question.decisions):
                case "approve":
                    said = Answer("approve")
                case "reject":
                    reason = await self._typed(WHY)
                    said = None if reason is None else Answer("reject", reason=reason)
                case "edit":
                    args = await self._edited()
                    said = None if args is None else Answer("edit", args)
                case "show":
                    await self._show_all()
                case None:
                    self._question.notice = "Type the first letter of what you decide, then Enter." if word else ""
            if said is not None:
                return said

    async def _typed(self, hint: str = "", text: str = "") -> str | None:
        """A line from the keyboard; None if the person wants to go back."""
        question = self._question
        question.hint, question.line = hint, Line(text)
        while True:
            self._view.refresh()
            done = question.line.feed(await self._keyboard.keys())
            if done is not None:
                question.hint, question.notice = "", ""
                said, question.line = question.line.text.strip(), Line()
                return said if done == "enter" else None

    async def _show_all(self) -> None:
        await self._fetch()
        self._view.print(Text(f"All arguments of {one_line(self._question.name, 80)}:", "dim"))
        for lines in argument_lines(self._question.args):
            self._view.print(Text("\n".join(f"  {line}" for line in lines)))

    async def _edited(self) -> dict[str, Any] | None:
        """New arguments; None if there are none after all."""
        await self._fetch()
        command = chosen_editor()
        args = await (self._from_editor(command) if command else self._from_line())
        if args is not None and args == self._question.args:
            self._question.notice = "Nothing was changed."
            return None
        return args

    async def _from_line(self) -> dict[str, Any] | None:
        text: str | None = as_json(self._question.args)
        while (text := await self._typed(ARGUMENTS, text)) is not None:
            try:
                return json_object(text)
            except ValueError as error:
                self._question.notice = str(error)
        return None

    async def _from_editor(self, command: list[str]) -> dict[str, Any] | None:
        text = as_json(self._question.args, lines=True) if self._draft is None else self._draft
        try:
            self._draft = await self._in_editor(command, text)
            return json_object(self._draft) if self._draft.strip() else None
        except (OSError, ValueError) as error:
            self._question.notice = f"{error}"
            return None

    async def _in_editor(self, command: list[str], text: str) -> str:
        with self._keyboard.lent(), self._view.away():
            editing = asyncio.create_task(edited(command, text, f"{self._question.approval_id}.json"))
            try:
                return await asyncio.shield(editing)
            except asyncio.CancelledError:
                await editing  # nobody takes the terminal away from an editor
                raise

    async def _fetch(self) -> None:
        """The whole arguments, if only their beginning has come."""
        if not self._question.whole:
            approval = await self._client.approval(self._waiting.run_id, self._question.approval_id)
            self._question.args, self._question.whole = approval.args, True
