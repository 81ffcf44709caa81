"""Plays a script: which turn is due follows from the request alone, so that many clients can play it at once.

Pure: no clock, no memory. The server calls it when there is a script; without one it asks the improviser.
"""

import json
from collections.abc import Iterator, Sequence

from limelight.understudy.conversation import Request, replies_in
from limelight.understudy.reply import AnyPiece, CutPiece, FaultPiece, Reply, Tokens, called, spoken, thought
from limelight.understudy.scripts import Script, ScriptedCall, Step, Turn


def play(scripts: Sequence[Script], request: Request) -> Reply:
    """The reply that is due. Turns are counted from the start; with a `match`, from the message that matched."""
    said = request.asked.lower()
    script = next((script for script in scripts if script.match.lower() in said), None)
    if script is None:
        known = ", ".join(repr(script.match) for script in scripts)
        return Reply(tuple(spoken(f"The understudy has no script for this message; it has some for: {known}.")))
    turn = replies_in(request.since if script.match else request.entries)
    if turn >= len(script.turns):
        ended = f"The script has ended: it has {len(script.turns)} turns, and this would be turn {turn + 1}."
        return Reply(tuple(spoken(ended)))
    return _reply(script.turns[turn], request)


def _reply(turn: Turn, request: Request) -> Reply:
    usage = next((step.usage for step in turn.steps if step.usage is not None), None)
    return Reply(
        pieces=tuple(_pieces(turn, request)),
        usage=None if usage is None else Tokens(usage.input, usage.output),
        finish_reason=next((step.finish_reason for step in turn.steps if step.finish_reason), ""),
    )


def _pieces(turn: Turn, request: Request) -> Iterator[AnyPiece]:
    delay = 0.0
    calls = 0
    for step in turn.steps:
        if step.delay is not None:
            delay = step.delay
        for call in step.tool_calls or ():
            yield from called(calls, call.id or f"call_{request.mark[:16]}_{calls}", call.name, _text(call), delay)
            calls += 1
        yield from _others(step, delay)


def _others(step: Step, delay: float) -> Iterator[AnyPiece]:
    if step.text is not None:
        yield from spoken(step.text, delay)
    if step.reasoning is not None:
        yield from thought(step.reasoning, delay)
    if step.error is not None:
        error = step.error
        yield FaultPiece(status=error.status, message=error.message, type=error.type, code=error.code, delay=delay)
    if step.cut:
        yield CutPiece(delay=delay)


def _text(call: ScriptedCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False) if call.raw is None else call.raw
