"""Loads the offline model's scripts (prepared replies) from YAML, and plays them. Errors name file, step and key.

A script is a list of turns, a turn a list of steps; a file is one script, or several with a `match` each. The turn to
play follows from the request alone, so many clients can play one script at the same time.
"""

import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import yaml

from limelight.errors import SetupError
from limelight.understudy.chat_requests import ChatRequest, count_replies
from limelight.understudy.replies import (
    AnyPiece,
    DisconnectPiece,
    ErrorPiece,
    Reply,
    TokenUsage,
    call_pieces,
    reasoning_pieces,
    text_pieces,
    text_reply,
)


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call in a script. `raw` is sent in place of `arguments` and need not be valid JSON."""

    name: str
    arguments: dict[str, Any] = {}
    raw: str | None = None
    id: str = ""

    def __post_init__(self) -> None:
        if self.raw is not None and self.arguments:
            raise ValueError("a call has `arguments` or `raw`, not both")

    @property
    def arguments_text(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False) if self.raw is None else self.raw


class ScriptedError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    status: Annotated[int, msgspec.Meta(ge=400, le=599)]
    message: str = "scripted error"
    type: str = "understudy_error"
    code: str | None = None


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of a scripted reply, with exactly one of these keys. `delay` is the pause before each later piece."""

    text: str | None = None
    reasoning: str | None = None
    tool_calls: Annotated[tuple[ScriptedCall, ...], msgspec.Meta(min_length=1)] | None = None
    usage: TokenUsage | None = None
    delay: Annotated[float, msgspec.Meta(ge=0, le=60)] | None = None
    error: ScriptedError | None = None
    cut: bool | None = None
    finish_reason: str | None = None


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scripted reply of the model: a list of steps."""

    steps: tuple[Step, ...]


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list of scripted replies, played in order.

    With a `match`, it is played only for user messages that contain that text.
    """

    turns: tuple[Turn, ...]
    match: str = ""


def load_scripts(path: Path) -> tuple[Script, ...]:
    """Load the scripts of a YAML file. Raises SetupError if it cannot be read or is invalid."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the script {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return parse_scripts(text, str(path))


def parse_scripts(text: str, name: str = "script") -> tuple[Script, ...]:
    """Parse the scripts of a YAML text. Raises SetupError, whose message begins with `name`."""
    try:
        data: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise SetupError(f"{name} is not valid YAML: {reason}") from error
    if not isinstance(data, list) or not data:
        raise SetupError(f"{name}: a script is a list of turns, each with `steps`, or of scripts, each with `turns`")
    items = cast("list[Any]", data)
    if any(isinstance(item, dict) and ("turns" in item or "match" in item) for item in items):
        return tuple(_script(item, f"{name}: script {at}") for at, item in enumerate(items, 1))
    return (Script(_turns(items, name + ":")),)


def _script(item: Any, where: str) -> Script:
    keys = _mapping(item, where, Script)
    match: Any = keys.get("match", "")
    if not isinstance(match, str):
        raise SetupError(f"{where}, `match`: a text that the user's message must contain")
    turns: Any = keys.get("turns")
    if not isinstance(turns, list) or not turns:
        raise SetupError(f"{where} needs `turns`, a list")
    return Script(_turns(cast("list[Any]", turns), where + ","), match)


def _turns(items: list[Any], where: str) -> tuple[Turn, ...]:
    return tuple(_turn(item, f"{where} turn {at}") for at, item in enumerate(items, 1))


def _turn(item: Any, where: str) -> Turn:
    steps: Any = _mapping(item, where, Turn).get("steps")
    if not isinstance(steps, list) or not steps:
        raise SetupError(f"{where} needs `steps`, a list")
    return Turn(tuple(_step(step, f"{where}, step {at}") for at, step in enumerate(cast("list[Any]", steps), 1)))


def _step(item: Any, where: str) -> Step:
    keys = _mapping(item, where, Step)
    if len(keys) != 1:
        raise SetupError(f"{where} has one key, not {len(keys)}: one of {', '.join(Step.__struct_fields__)}")
    (key,) = keys
    try:
        step = msgspec.convert(keys, Step)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$")
        raise SetupError(f"{where}, `{at.strip('`.') or key}`: {reason}") from error
    if getattr(step, key) is None:
        raise SetupError(f"{where}, `{key}` is empty")
    return step


def _mapping(item: Any, where: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a YAML item as a dictionary. Raises SetupError if it has a key that the struct does not define."""
    known = kind.__struct_fields__
    if not isinstance(item, dict):
        raise SetupError(
            f"{where} is an object with {' or '.join(f'`{name}`' for name in known[:3])}, not {item!r:.40}"
        )
    keys = {str(key): value for key, value in cast("dict[Any, Any]", item).items()}
    for key in keys:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"it knows {', '.join(known)}"
            raise SetupError(f"{where} has no key `{key}`: {hint}")
    return keys


def play(scripts: Sequence[Script], request: ChatRequest) -> Reply:
    """Return the scripted reply to a request.

    The number of replies in the request is the index of the turn; a script with a `match` counts them from the
    message that matched.
    """
    user_text = request.user_text.lower()
    script = next((script for script in scripts if script.match.lower() in user_text), None)
    if script is None:
        known = ", ".join(repr(script.match) for script in scripts)
        return text_reply(f"The understudy has no script for this message; it has some for: {known}.")
    index = count_replies(request.current_turn if script.match else request.entries)
    if index >= len(script.turns):
        return text_reply(
            f"The script has ended: it has {len(script.turns)} turns, and this would be turn {index + 1}."
        )
    steps = script.turns[index].steps
    return Reply(
        pieces=tuple(_pieces(steps, request)),
        usage=next((step.usage for step in steps if step.usage is not None), None),
        scripted_finish_reason=next((step.finish_reason for step in steps if step.finish_reason), ""),
    )


def _pieces(steps: Sequence[Step], request: ChatRequest) -> Iterator[AnyPiece]:
    delay = 0.0
    calls = 0
    for step in steps:
        if step.delay is not None:
            delay = step.delay
        for call in step.tool_calls or ():
            call_id = call.id or f"call_{request.digest[:16]}_{calls}"
            yield from call_pieces(calls, call_id, call.name, call.arguments_text, delay)
            calls += 1
        if step.text is not None:
            yield from text_pieces(step.text, delay)
        if step.reasoning is not None:
            yield from reasoning_pieces(step.reasoning, delay)
        if step.error is not None:
            error = step.error
            yield ErrorPiece(status=error.status, message=error.message, type=error.type, code=error.code, delay=delay)
        if step.cut:
            yield DisconnectPiece(delay=delay)
