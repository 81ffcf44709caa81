"""Formats items of a run as lines of text, for the plain view, the live view and `limelight approve`. Pure."""

import re
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size

from limelight.cli.view.run_state import Approval, RunState, ToolCall
from limelight.cli.view.sanitize import one_line, sanitize
from limelight.dialects.base import text_of
from limelight.events import NO_RESULT_SEEN, Plan, RunCancelled, RunFailed, RunFinished, RunStarted
from limelight.sources.input_schemas import input_text

Args = dict[str, Any] | str
"""Arguments of a tool call: an object, or a text if they are not valid JSON or truncated to a preview."""

STATE_MARKS = {
    "running": "▸",
    "waiting": "?",
    "done": "✓",
    "failed": "✗",
    "stopped": "■",
    "rejected": "⊘",
    "unseen": "○",
}
TODO_MARKS = {"pending": "·", "in_progress": "▸", "completed": "✓"}

QUESTION_KEYS = ("question", "prompt", "message", "text", "title", "description", "value")
"""Keys under which the value of a LangGraph `interrupt(…)` may have its question, the likeliest first."""
INTERRUPT = "interrupt"
"""The `name` of an approval request that is not about a tool, but from `interrupt(…)` in a LangGraph graph."""

QUESTION_WIDTH = 100
SUMMARY_WIDTH = 60
MIN_ARGUMENT_CELLS = 12
"""Minimum width of the argument in a call's line. If less is left, the error moves to a second line."""
SUBJECT_WIDTH = 80
CHANGE_WIDTH = 60
LINES_PER_ARGUMENT = 5
"""Maximum number of lines shown of one argument, so that the arguments after it are visible too."""
APPROVAL_WIDTH, APPROVAL_LINES = 160, 20
"""Maximum width and number of the argument lines of an approval. `limelight approve --list` shows all."""
QUESTION_LINES = 6
"""Maximum number of lines shown of the question of an approval request."""
MAX_CODE_LINES = 30
LINE_WIDTH = 200
SOURCE_WIDTH = 2000
"""Maximum length of a source, larger than that of any usual URL, because a cut URL cannot be opened."""

_LINE_BREAK = re.compile(r"[\n\t]")
_HEADING = re.compile(r"#{1,6}\s+")
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")


def input_line(event: RunStarted) -> str:
    """Return the user's input as one line: the question, and the values of an input object that are not in it."""
    values = event.input_values or {}
    rest = {} if all(name in event.input for name in values) else values
    return "  ".join(one_line(text, QUESTION_WIDTH) for text in (event.input, input_text(rest)) if text)


def format_duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def argument_lines(args: Args) -> list[list[str]]:
    """Return the lines of each argument of a call: `name = value`, or a value of several lines below `name =`."""
    if isinstance(args, str):
        return [sanitize(args).splitlines() or [""]]
    return [_argument(name, text_of(value)) for name, value in args.items()]


def _argument(name: str, value: str) -> list[str]:
    name = _LINE_BREAK.sub(" ", sanitize(name))
    first, *rest = sanitize(value).expandtabs(4).split("\n")
    if not rest:
        return [f"{name} = {first}"]
    return [f"{name} =", f"  {first}", *(f"  {line}" for line in rest)]


def shorten_arguments(args: Args, width: int, max_lines: int) -> tuple[list[str], bool]:
    """Format arguments in at most `max_lines` lines of `width` characters. Returns the lines and whether one is cut."""
    found: list[str] = []
    cut = False
    for lines in argument_lines(args):
        kept = [_cut(line, width) for line in lines[:LINES_PER_ARGUMENT]]
        cut = cut or len(lines) > LINES_PER_ARGUMENT or kept != lines
        if len(lines) > LINES_PER_ARGUMENT:
            kept[-1] = _cut(f"  … {len(lines) - LINES_PER_ARGUMENT + 1} more lines", width)
        found += kept
    return found[:max_lines], cut or len(found) > max_lines


def change_lines(before: Args, after: Args | None) -> list[str]:
    """Return a line for each argument that an edit has changed; [] if `before` or `after` is not an object."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    changed = [_change(name, before, after) for name in after if name not in before or before[name] != after[name]]
    return [*changed, *(f"{one_line(name, CHANGE_WIDTH)} is left out" for name in before if name not in after)]


def _change(name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    line = f"{one_line(name, CHANGE_WIDTH)} = {one_line(text_of(after[name]), CHANGE_WIDTH)}"
    was = f"was {one_line(text_of(before[name]), CHANGE_WIDTH) or 'empty'}" if name in before else "new"
    return f"{line}  ({was})"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def call_line(call: ToolCall, owner: str = "", *, with_argument: bool = True) -> str:
    """Format a call as one line of any length: `✓ read_file bees.md  3 ms`."""
    argument = one_line(call.summary, SUMMARY_WIDTH) if with_argument else ""
    return _join(_call_head(call, owner), argument, [_call_outcome(call), format_duration(call.duration_ms)])


def call_rows(call: ToolCall, owner: str, width: int) -> list[str]:
    """Format a call as one or two rows of `width` cells.

    The argument is cut to fit. If too little of it would be left, the error moves to a second row.
    """
    argument, outcome = one_line(call.summary, SUMMARY_WIDTH), _call_outcome(call)
    duration = format_duration(call.duration_ms)
    head = _cut_cells(_call_head(call, owner), max(MIN_ARGUMENT_CELLS, width - cell_len(duration) - 2))
    space = _argument_cells(head, [outcome, duration], width)
    if not outcome or space >= min(cell_len(argument), MIN_ARGUMENT_CELLS):
        return [_join(head, _cut_cells(argument, space), [outcome, duration])]
    space = _argument_cells(head, [duration], width)
    return [_join(head, _cut_cells(argument, space), [duration]), outcome]


def _call_head(call: ToolCall, owner: str) -> str:
    return f"{STATE_MARKS[call.state]} {sanitize(owner)}{one_line(call.name, 60)}"


def _call_outcome(call: ToolCall) -> str:
    match call.state:
        case "stopped" | "rejected":
            return call.state
        case "unseen":
            return NO_RESULT_SEEN.lower()
        case _:
            return one_line(call.error, 200)


def _join(head: str, argument: str, more: list[str]) -> str:
    line = " ".join(part for part in (head, argument) if part)
    return "  ".join([line, *(part for part in more if part)])


def _argument_cells(head: str, more: list[str], width: int) -> int:
    return width - cell_len(_join(head, "", more)) - 1


def _cut_cells(text: str, cells: int) -> str:
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + "…" if cells > 1 else ""


def code_lines(call: ToolCall) -> list[str]:
    """Return the lines of the code that a call runs, prefixed with `>`; [] if `call_line` already shows all of it."""
    code = call.args.get(call.code_key) if isinstance(call.args, dict) else None
    if not isinstance(code, str) or (len(code.strip()) <= SUMMARY_WIDTH and "\n" not in code.strip()):
        return []
    lines = [_cut(line, LINE_WIDTH) for line in sanitize(code).strip("\n").splitlines()]
    more = len(lines) - MAX_CODE_LINES
    shown = lines if more <= 0 else [*lines[:MAX_CODE_LINES], f"… {more} more lines"]
    return [f"  > {line}".rstrip() for line in shown]


def output_lines(call: ToolCall) -> list[str]:
    """Return the lines of a call's output, prefixed with `|`."""
    lines = sanitize(call.output).strip("\n").splitlines() if call.output.strip() else []
    return [f"  | {line}".rstrip() for line in (["…", *lines] if call.output_cut else lines)]


class Subject(NamedTuple):
    """What an approval request is about: `title` is the name of a tool, or the question of a LangGraph graph.

    `args` are the arguments that the title does not show, `question` is the text of a tool's question.
    """

    title: str
    args: Args
    is_question: bool = False
    question: str = ""

    @property
    def name(self) -> str:
        """The title for use in a sentence: a question is in quotation marks."""
        return f'"{self.title}"' if self.is_question else self.title


def approval_subject(name: str, args: Args, question: str = "") -> Subject:
    """Return what an approval request is about. A question that is cut in the title is also in `args`.

    `question` is the text of the request; requests in older logs have it only in their arguments.
    """
    if name == INTERRUPT and isinstance(args, dict):
        texts = {key: args[key].strip() for key in args if isinstance(args[key], str) and args[key].strip()}
        key = next((key for key in texts if texts[key] == question), None)
        key = key or next((key for key in QUESTION_KEYS if key in texts), None)
        if key is not None:
            title, text = one_line(args[key], SUBJECT_WIDTH), sanitize(args[key]).strip()
            rest = {other: value for other, value in args.items() if other != key}
            return Subject(title, rest if title == text else args, is_question=True)
    return Subject(one_line(name, SUBJECT_WIDTH), args, question=question)


def question_lines(question: str, width: int, max_lines: int) -> list[str]:
    """Return the first lines of a question, without empty lines, each cut to `width` characters."""
    lines = [line.rstrip() for line in sanitize(question).splitlines() if line.strip()]
    return [_cut(line, width) for line in (lines if len(lines) <= max_lines else [*lines[: max_lines - 1], "…"])]


def approval_lines(approval: Approval, *, with_name: bool = True) -> list[str]:
    """Format an approval request or its decision, as `✗ send_mail rejected by ann`, with arguments or changes below it.

    `with_name=False` omits name and arguments, for use below the line of the call, which shows them.
    """
    subject = approval_subject(approval.name, approval.args, approval.question)
    with_name = with_name or subject.is_question
    head = _approval_head(approval, subject, f"{subject.name} " if with_name else "")
    if approval.decision == "edit":
        changes = approval_changes(approval.name, approval.args, approval.edited_args, answered=approval.answered)
        return [head, *(f"    {line}" for line in changes)]
    if approval.decision is not None:
        return [head]
    asked = [f"    {line}" for line in question_lines(subject.question, APPROVAL_WIDTH, QUESTION_LINES)]
    if not with_name:
        return [head, *asked]
    lines, cut = shorten_arguments(subject.args, APPROVAL_WIDTH, APPROVAL_LINES)
    return [head, *asked, *(f"    {line}" for line in lines), *(["    …"] if cut else [])]


def approval_changes(name: str, args: Args, edited: Args | None, *, answered: bool = False) -> list[str]:
    """Return the lines for the arguments that a decision has changed; `value = …` for the answer to a question."""
    if answered and isinstance(edited, dict):
        return [f"answer = {one_line(text_of(edited.get('value')), APPROVAL_WIDTH)}"]
    if approval_subject(name, args).is_question and isinstance(edited, dict) and edited.keys() == {"value"}:
        return [f"value = {one_line(text_of(edited['value']), APPROVAL_WIDTH)}"]
    return change_lines(args, edited)


def _approval_head(approval: Approval, subject: Subject, name: str) -> str:
    by = "" if approval.by == "system" else f" by {one_line(approval.by, 60) or 'an unknown user'}"
    match approval.decision:
        case None:
            needs = "waits for an answer" if subject.is_question else "needs an approval"
            return f"? {name}{needs} ({approval.approval_id})"
        case "approve":
            return f"✓ {name}approved{by}"
        case "edit":
            return f"✓ {name}{'answered' if subject.is_question or approval.answered else 'approved with changes'}{by}"
        case "reject":
            expired = (approval.by, approval.reason) == ("system", "expired")
            reason = "no decision in time" if expired else one_line(approval.reason, 200)
            return f"✗ {name}rejected{by}" + (f": {reason}" if reason else "")


def plan_lines(plan: Plan) -> list[str]:
    """Format a plan: its todos, or else its text without Markdown markup."""
    todos = [f"  {TODO_MARKS[item.status]} {one_line(item.content, LINE_WIDTH)}" for item in plan.items]
    lines = todos or _without_markdown([line.rstrip() for line in sanitize(plan.text).splitlines() if line.strip()])
    return ["plan:", *lines] if lines else []


def _without_markdown(lines: list[str]) -> list[str]:
    """Remove the markup of headings and bold text. If there are headings, other lines are indented below them."""
    is_heading = [bool(_HEADING.match(line)) for line in lines]
    indent = "    " if any(is_heading) else "  "
    return [
        ("  " if heading else indent) + _BOLD.sub(r"\2", _HEADING.sub("", line, count=1) if heading else line)
        for line, heading in zip(lines, is_heading, strict=True)
    ]


def message_lines(name: str, text: str) -> list[str]:
    """Format a message of a sub-agent: its name and the first line, other lines indented, without empty lines."""
    first, *rest = [line.rstrip() for line in sanitize(text).splitlines() if line.strip()] or [""]
    return [f"{sanitize(name)}: {first}", *(f"  {line}" for line in rest)] if first else []


def answer_title(state: RunState) -> str:
    return one_line(state.title, 200)


def late_title_lines(state: RunState) -> list[str]:
    """Return the title line to print after an answer that was streamed before its title was known; [] without title."""
    return [f"Title: {answer_title(state)}"] if state.title else []


def source_lines(state: RunState) -> list[str]:
    """Format the sources of the answer as a list of titles and URLs; [] if there are none."""
    sources = (" — ".join(filter(None, (source.title, source.url))) for source in state.sources)
    return ["Sources:", *(f"- {one_line(source, SOURCE_WIDTH)}" for source in sources)] if state.sources else []


def end_line(state: RunState) -> str:
    """Return a line that says how the run ended and how long it took."""
    duration = format_duration(state.ended_at - state.started_at)
    match state.terminal:
        case RunFinished(code=""):
            return f"Finished in {duration}."
        case RunFinished(code=code):
            return f"Finished in {duration} ({code})."
        case RunFailed(message=message, code=code):
            return f"Failed after {duration}: {message} ({code})"
        case RunCancelled(reason=reason):
            return f"Stopped after {duration}: {reason}" if reason else f"Stopped after {duration}."
        case None:
            return ""
