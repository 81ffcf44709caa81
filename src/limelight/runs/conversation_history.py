"""Reads the conversation of a session from the log as messages, for agents whose own memory is lost.

The log contains no messages from before the first run. If a client sends such messages, they are stored with the run.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.messages import Message
from limelight.models import Result, Run
from limelight.runs.queries import RunSummary, complete_value, input_of, read_summary
from limelight.runs.truncation import result_key
from limelight.stores.base import Store

PAST = result_key("past")


def past_as_results(past: Sequence[Message]) -> list[Result]:
    """Return the earlier messages that a client has sent, as a Result to store with the run; [] if there are none."""
    return [Result(key=PAST, media_type="application/json", body=msgspec.json.encode(past))] if past else []


async def history_from_log(store: Store, run_ids: Sequence[str]) -> list[Message]:
    """Return the conversation in these runs as messages, including the earlier messages stored with each run.

    Runs that retention has deleted are left out.
    """
    messages: list[Message] = []
    for run_id in run_ids:
        run = await store.run(run_id) if run_id else None
        started = await input_of(store, run) if run is not None else None
        if run is None or started is None:
            continue
        messages += await _earlier_messages(store, run)
        text = await complete_value(store, run, "input", "", started.input, started.truncated)
        messages.append(Message(role="user", content=_text(text)))
        messages += await _messages_of_run(store, run, await read_summary(store, run))
    return messages


async def _earlier_messages(store: Store, run: Run) -> list[Message]:
    kept = await store.result(run.run_id, PAST)
    return (
        []
        if kept is None
        else [Message(fields) for fields in msgspec.json.decode(kept.body, type=list[dict[str, Any]])]
    )


async def _messages_of_run(store: Store, run: Run, summary: RunSummary) -> list[Message]:
    messages: list[Message] = []
    for call in summary.calls.values():
        if call.agent_id:
            continue  # a call of a sub-agent; its work is in the result of the call that started it
        args = await complete_value(store, run, "args", call.call_id, call.args, call.args_cut)
        result = await complete_value(store, run, "result", call.call_id, call.result, call.result_cut)
        function = {"name": call.name, "arguments": _text(args if args is not None else {})}
        made = [{"id": call.call_id, "type": "function", "function": function}]
        messages.append(Message(role="assistant", content="", tool_calls=made))
        content = _tool_content(call.output, _text(result))
        messages.append(Message(role="tool", tool_call_id=call.call_id, name=call.name, content=content))
    answer = summary.text
    if summary.answer is not None:
        cut = summary.answer.truncated
        answer = _text(await complete_value(store, run, "content", "", summary.answer.content, cut))
    messages.append(Message(role="assistant", content=answer))
    return messages


def _tool_content(printed: str, result: str) -> str:
    """Return the content of a tool message: what the tool printed, then its result; either may be empty."""
    return "\n".join(part for part in (printed.rstrip("\n"), result) if part)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
