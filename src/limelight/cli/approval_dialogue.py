"""Approval requests of a run: the queue of open requests, and the dialogue with the person at the terminal.

A command feeds every Record to the `ApprovalQueue`. For each open request the queue calls a `Decide` function, which
`decide_all`, `print_command` or `ask_person` has created.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, NamedTuple, Self

import msgspec
from rich.text import Text

from limelight.cli.terminal_input import Keyboard, edit_text, editor_command
from limelight.cli.view.approval_prompt import ApprovalPrompt, LineEditor
from limelight.cli.view.live import LiveView
from limelight.cli.view.render import approval_subject, argument_lines
from limelight.cli.view.sanitize import one_line
from limelight.client import AlreadyDecided, Client, ClientError, Expired
from limelight.client.client import DEFAULT_URL
from limelight.events import TERMINAL_TYPES, ApprovalRequested, ApprovalResolved, Decision, Record

log = logging.getLogger(__name__)
ApproveMode = Literal["ask", "all", "none"]
NO_DECIDER = "nobody was there to decide"
REASON_HINT = "Why not? The agent gets the reason. Enter alone: no reason; Esc: back."
ARGUMENTS_HINT = "All arguments as JSON. Enter: send; Esc: back."


class OpenApproval(NamedTuple):
    """An approval request without a decision."""

    run_id: str
    request: ApprovalRequested

    @property
    def approval_id(self) -> str:
        return self.request.approval_id


Decide = Callable[[OpenApproval], Coroutine[Any, Any, None]]


class ApprovalQueue:
    """The queue of a session's open approval requests. Calls `decide` for one request at a time. Use as `async with`.

    When a request is decided elsewhere, the queue cancels the call of `decide` for it.
    """

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self._open: dict[str, OpenApproval] = {}
        self._current = ""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def feed(self, record: Record, *, decide: bool = True) -> None:
        """Add or remove the request of a Record. `decide=False` starts no call of `decide`, for Records of the past."""
        match record.event:
            case ApprovalRequested() as request:
                self._open[request.approval_id] = OpenApproval(record.run_id, request)
            case ApprovalResolved(approval_id=approval_id):
                self._remove(approval_id)
            case event if isinstance(event, TERMINAL_TYPES):
                for approval_id in [*self._open, self._current]:
                    self._remove(approval_id)
            case _:
                pass
        if decide:
            self._start_next()

    def _remove(self, approval_id: str) -> None:
        self._open.pop(approval_id, None)
        if self._task is not None and approval_id == self._current:
            self._task.cancel()

    def _start_next(self) -> None:
        if self._task is None and self._open:
            self._current, approval = next(iter(self._open.items()))
            del self._open[self._current]
            self._task = asyncio.create_task(self._decide(approval))
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task, self._current = None, ""
        if not task.cancelled() and task.exception() is not None:
            log.error("the approval request could not be handled", exc_info=task.exception())
        self._start_next()


def decide_all(client: Client, mode: Literal["all", "none"]) -> Decide:
    """Return a `Decide` function that approves (`all`) or rejects (`none`) every request."""

    async def decide(approval: OpenApproval) -> None:
        try:
            if mode == "all":
                await client.approve(approval.run_id, approval.approval_id)
            else:
                await client.reject(approval.run_id, approval.approval_id, NO_DECIDER)
        except (AlreadyDecided, Expired):
            pass  # decided elsewhere or expired; the view shows the outcome
        except ClientError as error:
            sys.stderr.write(f"{error.detail}. {approve_command(client.url, approval)}\n")

    return decide


def print_command(client: Client) -> Decide:
    """Return a `Decide` function that prints a `limelight approve` command, for use without an interactive terminal."""

    async def decide(approval: OpenApproval) -> None:
        sys.stderr.write(f"{approve_command(client.url, approval)}\n")

    return decide


def approve_command(url: str, approval: OpenApproval) -> str:
    """Return a line that says what waits for a decision and has the `limelight approve` command for it."""
    server = "" if url == DEFAULT_URL else f" --url {url}"
    command = f"limelight approve {approval.run_id} {approval.approval_id}{server}"
    return f"{approval_subject(approval.request.name, approval.request.args).name} waits for a decision: {command}"


def ask_person(client: Client, view: LiveView) -> Decide:
    """Return a `Decide` function that asks the person at the terminal, in a prompt below the live view."""

    async def decide(approval: OpenApproval) -> None:
        prompt = ApprovalPrompt(approval.request, view.state.agent_name(approval.request.agent_id))
        with Keyboard() as keyboard, view.prompting(prompt):
            await ApprovalDialogue(client, view, approval.run_id, prompt, keyboard).decide()

    return decide


class ApprovalDialogue:
    """The dialogue with the person about one approval request, until a decision has taken effect.

    The queue cancels the dialogue when the request is decided elsewhere. An open editor delays the cancellation until
    the person closes it.
    """

    def __init__(self, client: Client, view: LiveView, run_id: str, prompt: ApprovalPrompt, keyboard: Keyboard) -> None:
        self._client = client
        self._view = view
        self._run_id = run_id
        self._prompt = prompt
        self._keyboard = keyboard
        self._draft: str | None = None
        """The text last saved in the editor, with which the editor opens again; None if there is no such text."""

    async def decide(self) -> None:
        while True:
            try:
                if await self._handle_choice(await self._read_line() or ""):
                    return
            except (AlreadyDecided, Expired):
                return  # decided elsewhere or expired; the view shows the outcome
            except ClientError as error:
                self._prompt.notice = error.detail

    async def _handle_choice(self, word: str) -> bool:
        """Execute the choice that the person typed. Returns True if a decision has taken effect."""
        approval = self._run_id, self._prompt.approval_id
        match parse_choice(word, self._prompt.decisions):
            case "approve":
                await self._client.approve(*approval)
                return True
            case "reject":
                if (reason := await self._read_line(REASON_HINT)) is not None:
                    await self._client.reject(*approval, reason)
                    return True
            case "edit":
                if (args := await self._edit_arguments()) is not None:
                    await self._client.edit(*approval, args)
                    return True
            case "show":
                await self._show_arguments()
            case None:
                self._prompt.notice = "Type the first letter of what you decide, then Enter." if word else ""
        return False

    async def _read_line(self, hint: str = "", text: str = "") -> str | None:
        """Read a line from the keyboard. Returns None if the person pressed Escape."""
        prompt = self._prompt
        prompt.hint, prompt.line = hint, LineEditor(text)
        while True:
            self._view.refresh()
            key = prompt.line.feed(await self._keyboard.read())
            if key is not None:
                line = prompt.line.text.strip()
                prompt.hint, prompt.notice, prompt.line = "", "", LineEditor()
                return line if key == "enter" else None

    async def _show_arguments(self) -> None:
        await self._fetch_arguments()
        self._view.print(Text(f"All arguments of {one_line(self._prompt.name, 80)}:", "dim"))
        for lines in argument_lines(self._prompt.args):
            self._view.print(Text("\n".join(f"  {line}" for line in lines)))

    async def _edit_arguments(self) -> dict[str, Any] | None:
        """Let the person edit the arguments. Returns None if they are unchanged, invalid, or the edit was abandoned."""
        await self._fetch_arguments()
        command = editor_command()
        args = await (self._edit_in_editor(command) if command else self._edit_in_line())
        if args is not None and args == self._prompt.args:
            self._prompt.notice = "Nothing was changed."
            return None
        return args

    async def _edit_in_line(self) -> dict[str, Any] | None:
        text: str | None = format_arguments(self._prompt.args)
        while (text := await self._read_line(ARGUMENTS_HINT, text)) is not None:
            try:
                return parse_arguments(text)
            except ValueError as error:
                self._prompt.notice = str(error)
        return None

    async def _edit_in_editor(self, command: list[str]) -> dict[str, Any] | None:
        """Let the person edit the arguments in the editor. An empty file abandons the edit and discards the draft."""
        text = format_arguments(self._prompt.args, indent=True) if self._draft is None else self._draft
        try:
            self._draft = await self._open_editor(command, text)
            if self._draft.strip():
                return parse_arguments(self._draft)
            self._draft, self._prompt.notice = None, "The file was empty, so nothing was changed."
            return None
        except (OSError, ValueError) as error:
            self._prompt.notice = str(error)
            return None

    async def _open_editor(self, command: list[str], text: str) -> str:
        with self._keyboard.released(), self._view.suspended():
            editing = asyncio.create_task(edit_text(command, text, f"{self._prompt.approval_id}.json"))
            try:
                return await asyncio.shield(editing)
            except asyncio.CancelledError:
                await editing  # the editor uses the terminal until the person closes it
                raise

    async def _fetch_arguments(self) -> None:
        """Load the complete arguments into the prompt, if the request has only a preview of them."""
        if self._prompt.truncated:
            approval = await self._client.approval(self._run_id, self._prompt.approval_id)
            self._prompt.args, self._prompt.truncated = approval.args, approval.truncated


def parse_choice(word: str, decisions: Sequence[Decision]) -> Decision | Literal["show"] | None:
    """Return the offered decision, or `show`, that begins with the typed word; None if there is none."""
    word = word.strip().lower()
    choices: tuple[Decision | Literal["show"], ...] = (*decisions, "show")
    return next((choice for choice in choices if word and choice.startswith(word)), None)


def parse_arguments(text: str) -> dict[str, Any]:
    """Decode edited arguments from JSON. Raises ValueError with a one-line message for the person."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"That is not a JSON object: {_syntax_error(text) or error}") from None


def _syntax_error(text: str) -> str:
    """Describe the JSON syntax error in a text, with line and column; "" if the text is valid JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg} in line {error.lineno}, column {error.colno}"
    return ""


def format_arguments(args: dict[str, Any] | str, *, indent: bool = False) -> str:
    """Format arguments as JSON for editing. A text, which is not a JSON object, is returned unchanged."""
    if isinstance(args, str):
        return args
    text = msgspec.json.encode(args)
    return msgspec.json.format(text, indent=2).decode() + "\n" if indent else text.decode()
