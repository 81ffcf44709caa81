"""Approval requests of a run: the queue of open requests, and the dialogue with the person at the terminal.

A command feeds every Record to the `ApprovalQueue`. For each open request the queue calls a `Decide` function, which
`decide_all`, `print_command` or `ask_person` has created.
"""

import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, NamedTuple, Self

import msgspec
from rich.text import Text

from limelight.answer_schemas import choices, parse_answer
from limelight.cli.terminal_input import Keyboard, edit_text, editor_command
from limelight.cli.view.approval_prompt import ApprovalPrompt, LineEditor, numbered_choices
from limelight.cli.view.live_view import LiveView
from limelight.cli.view.render import approval_subject, argument_lines
from limelight.cli.view.sanitize import one_line
from limelight.client import AlreadyDecided, Client, ClientError, Expired
from limelight.client.client import DEFAULT_URL
from limelight.events import TERMINAL_TYPES, ApprovalRequested, ApprovalResolved, Decision, Record
from limelight.json_schema import Field, Schema, fields
from limelight.json_values import fields_of

log = logging.getLogger(__name__)
ApproveMode = Literal["ask", "all", "none"]
NO_ANSWERER = "no person was available to answer"
MAX_IDENTICAL = 25
"""How often `--approve all` and `--approve none` decide on the same request of a run, before they stop the run."""
NO_DECIDER = "no person was available to decide"
REASON_HINT = "Reason for the agent. Enter alone: no reason; Esc: back."
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
        """Queue the approval request of a Record, or remove the request that the Record decides.

        With `decide=False`, for Records of the past, no decision is requested.
        """
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
    """Return a `Decide` function that approves (`all`) or rejects (`none`) every request.

    A request that takes no such decision gets another: with `all` it is rejected if it needs values that only a person
    has, and otherwise approved with unchanged arguments. A run that can only be stopped, or that asks for the same
    approval MAX_IDENTICAL times, is stopped.
    """
    seen: Counter[str] = Counter()

    async def decide(approval: OpenApproval) -> None:
        request = approval.request
        subject = f"{request.agent_id} {request.name} {format_arguments(request.args)}"
        seen[subject] += 1
        try:
            if seen[subject] > MAX_IDENTICAL:
                await _stop(client, approval, f"has asked the same {MAX_IDENTICAL} times")
            elif mode == "none" and "reject" in request.decisions:
                await client.reject(*_ids(approval), NO_DECIDER)
            elif mode == "none":
                await _stop(client, approval, "cannot be rejected")
            elif "approve" in request.decisions:
                await client.approve(*_ids(approval))
            elif "reject" in request.decisions:
                _report(approval, "needs an answer of a person and is rejected")
                await client.reject(*_ids(approval), NO_ANSWERER)
            else:
                await client.edit(*_ids(approval), await _complete_arguments(client, approval))
        except (AlreadyDecided, Expired):
            pass  # decided elsewhere or expired; the view shows the outcome
        except ClientError as error:
            sys.stderr.write(f"{error.detail}. {approve_command(client.url, approval)}\n")

    return decide


def _ids(approval: OpenApproval) -> tuple[str, str]:
    return approval.run_id, approval.approval_id


async def _complete_arguments(client: Client, approval: OpenApproval) -> dict[str, Any]:
    """Return the arguments of a request; those that the event truncates are fetched."""
    request = approval.request
    return fields_of((await client.approval(*_ids(approval))).args if request.truncated else request.args)


async def _stop(client: Client, approval: OpenApproval, why: str) -> None:
    """Stop a run for whose request no decision is possible without a person."""
    _report(approval, f"{why}, so the run is stopped")
    await client.cancel(approval.run_id, f"{_name(approval)} {why}")


def _report(approval: OpenApproval, what: str) -> None:
    sys.stderr.write(f"{_name(approval)} {what}.\n")


def _name(approval: OpenApproval) -> str:
    request = approval.request
    return approval_subject(request.name, request.args, request.question).name


def print_command(client: Client) -> Decide:
    """Return a `Decide` function that prints a `limelight approve` command, for use without an interactive terminal."""

    async def decide(approval: OpenApproval) -> None:
        sys.stderr.write(f"{approve_command(client.url, approval)}\n")

    return decide


def approve_command(url: str, approval: OpenApproval) -> str:
    """Return a line with the tool that waits for a decision and the `limelight approve` command that decides."""
    server = "" if url == DEFAULT_URL else f" --url {url}"
    command = f"limelight approve {approval.run_id} {approval.approval_id}{server}"
    return f"{_name(approval)} waits for a decision: {command}"


def ask_person(client: Client, view: LiveView) -> Decide:
    """Return a `Decide` function that asks the person at the terminal, in a prompt below the live view."""

    async def decide(approval: OpenApproval) -> None:
        prompt = ApprovalPrompt(approval.request, view.state.agent_name(approval.request.agent_id))
        with Keyboard() as keyboard, view.prompting(prompt):
            await ApprovalDialogue(client, view, approval.run_id, prompt, keyboard).decide()

    return decide


class Answer(NamedTuple):
    """A value that a person has typed, which may be None; UNSET if it is left out."""

    value: Any


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
        """Carry out what the person typed: a decision or `show`. Returns True if a decision has taken effect."""
        approval = self._run_id, self._prompt.request.approval_id
        request = self._prompt.request
        match parse_choice(word, request.decisions, takes_answer=request.answer_schema is not None):
            case "type":
                if (answer := await self._read_answer(request.answer_schema or {})) is not None:
                    await self._client.respond(*approval, answer.value)
                    return True
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

    async def _read_answer(self, schema: Schema) -> "Answer | None":
        """Read the answer to a question: one value, or one for each field of a form. None if the person goes back."""
        form = fields(schema)
        if not form:
            return await self._read_value(Field("", schema, is_required=True))
        values: dict[str, Any] = {}
        for field in form:
            answer = await self._read_value(field)
            if answer is None:
                return None
            if answer.value is not msgspec.UNSET:
                values[field.name] = answer.value
        return Answer(values)

    async def _read_value(self, field: Field) -> "Answer | None":
        """Read a value until it fits. An empty line leaves out a value that is not required."""
        default = field.schema.get("default")
        text: str | None = "" if default is None else default if isinstance(default, str) else json.dumps(default)
        while (text := await self._read_line(answer_hint(field), text)) is not None:
            if not text and not field.is_required:
                return Answer(msgspec.UNSET)
            try:
                return Answer(parse_typed_answer(text, field.schema))
            except ValueError as error:
                self._prompt.notice = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return None

    async def _show_arguments(self) -> None:
        await self._fetch_arguments()
        self._view.print(Text(f"All arguments of {one_line(self._prompt.request.name, 80)}:", "dim"))
        for lines in argument_lines(self._prompt.request.args):
            self._view.print(Text("\n".join(f"  {line}" for line in lines)))

    async def _edit_arguments(self) -> dict[str, Any] | None:
        """Let the person edit the arguments. Returns None if they are unchanged, invalid, or the edit was abandoned."""
        await self._fetch_arguments()
        command = editor_command()
        args = await (self._edit_in_editor(command) if command else self._edit_in_line())
        if args is not None and args == self._prompt.request.args:
            self._prompt.notice = "Nothing was changed."
            return None
        return args

    async def _edit_in_line(self) -> dict[str, Any] | None:
        text: str | None = format_arguments(self._prompt.request.args)
        while (text := await self._read_line(ARGUMENTS_HINT, text)) is not None:
            try:
                return parse_arguments(text)
            except ValueError as error:
                self._prompt.notice = str(error)
        return None

    async def _edit_in_editor(self, command: list[str]) -> dict[str, Any] | None:
        """Let the person edit the arguments in the editor. An empty file abandons the edit and discards the draft."""
        text = format_arguments(self._prompt.request.args, indent=True) if self._draft is None else self._draft
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
            editing = asyncio.create_task(edit_text(command, text, f"{self._prompt.request.approval_id}.json"))
            try:
                return await asyncio.shield(editing)
            except asyncio.CancelledError:
                await editing  # the editor uses the terminal until the person closes it
                raise

    async def _fetch_arguments(self) -> None:
        """Load the complete arguments into the prompt, if the request has only a preview of them."""
        if self._prompt.request.truncated:
            approval = await self._client.approval(self._run_id, self._prompt.request.approval_id)
            self._prompt.request = msgspec.structs.replace(
                self._prompt.request, args=approval.args, truncated=approval.truncated
            )


def parse_choice(
    word: str, decisions: Sequence[Decision], *, takes_answer: bool = False
) -> Decision | Literal["show", "type"] | None:
    """Return the offered decision, `show` or `type` (an answer) that begins with the typed word; None if none does."""
    word = word.strip().lower()
    offered: tuple[Decision | Literal["show", "type"], ...] = (*decisions, "show", *(("type",) if takes_answer else ()))
    return next((choice for choice in offered if word and choice.startswith(word)), None)


def answer_hint(field: Field) -> str:
    """Return what to type for a value: its name, its description, its choices and the keys."""
    title, description = str(field.schema.get("title") or field.name), str(field.schema.get("description") or "")
    words = [title + ("" if field.is_required or not field.name else " (optional)"), description]
    named = ", ".join(numbered_choices(field.schema)) if field.name else ""
    if fields_of(field.schema.get("items")):
        named = f"{named}; several with commas" if named else "separated by commas"
    intro = ": ".join(filter(None, (*words, named)))
    return f"{intro}. Enter: next; Esc: back." if field.name else "Your answer. Enter: send; Esc: back."


def parse_typed_answer(text: str, schema: Schema) -> Any:
    """Return the value that a typed line stands for; a number names a listed choice. Raises ValueError."""
    items = fields_of(schema.get("items"))
    listed = choices(schema) or choices(items)
    labels = [choice.label for choice in listed]

    def label_of(word: str) -> str:
        number = int(word) if word.strip().isdecimal() and len(word.strip()) < 4 else 0
        return labels[number - 1] if word.strip() not in labels and 1 <= number <= len(labels) else word

    if items:
        return parse_answer(",".join(label_of(word) for word in text.split(",")) if labels else text, schema)
    return parse_answer(label_of(text), schema)


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
