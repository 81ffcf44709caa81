"""A question to a person in lines, open or decided: what it is about, who decided, what was changed. Pure."""

from typing import Any

from limelight.cli.view.arguments import change_lines, shortened
from limelight.cli.view.sanitize import one_line
from limelight.cli.view.state import Asked
from limelight.cli.view.subject import Subject, subject_of
from limelight.dialects.base import text_of

WIDTH, MOST = 160, 20
"""How much of the arguments is shown; `limelight approve --list` shows all."""


def asked_lines(asked: Asked, *, named: bool = True) -> list[str]:
    """The first line says what is to be decided, or was: `✗ send_mail rejected by ann: too long`. The row of a call may
    give its name and arguments already."""
    subject = subject_of(asked.name, asked.args)
    head = _head(asked, subject, f"{subject.name} " if named or subject.own_words else "")
    if asked.decision == "edit":
        return [head, *(f"    {line}" for line in changes(asked.name, asked.args, asked.edited))]
    if asked.decision is not None or not (named or subject.own_words):
        return [head]
    lines, left_out = shortened(subject.args, WIDTH, MOST)
    return [head, *(f"    {line}" for line in lines), *(["    …"] if left_out else [])]


def changes(name: str, args: dict[str, Any] | str, edited: dict[str, Any] | str | None) -> list[str]:
    """What was changed in the arguments. An answer to a question in own words takes their place."""
    subject = subject_of(name, args)
    if subject.own_words and isinstance(edited, dict) and edited.keys() == {"value"}:
        return [f"value = {one_line(text_of(edited['value']), WIDTH)}"]
    return change_lines(args, edited)


def _head(asked: Asked, subject: Subject, name: str) -> str:
    who = "" if asked.by == "system" else f" by {one_line(asked.by, 60) or 'somebody'}"
    match asked.decision:
        case None:
            needs = "waits for an answer" if subject.own_words else "needs an approval"
            return f"? {name}{needs} ({asked.approval_id})"
        case "approve":
            return f"✓ {name}approved{who}"
        case "edit":
            return f"✓ {name}{'answered' if subject.own_words else 'approved with changes'}{who}"
        case "reject":
            expired = (asked.by, asked.reason) == ("system", "expired")
            reason = "nobody decided in time" if expired else one_line(asked.reason, 200)
            return f"✗ {name}rejected{who}" + (f": {reason}" if reason else "")
