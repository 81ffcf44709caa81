"""A conversation as the log has it, as messages: for agents whose own memory did not survive.

The log begins with the first run. What a client told of the time before is kept with the run that was given it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.messages import Message
from limelight.models import Result, Run
from limelight.runs.queries import RunStory, input_of, read_story, whole_value
from limelight.runs.truncation import result_key
from limelight.stores.base import Store

PAST = result_key("past")


def past_to_keep(past: Sequence[Message]) -> list[Result]:
    """What is stored with a run that begins with a past of the client's; nothing if there is none."""
    return [Result(key=PAST, media_type="application/json", body=msgspec.json.encode(past))] if past else []


async def history_from_log(store: Store, run_ids: Sequence[str]) -> list[Message]:
    """What was asked, done and answered in these runs, and before them; runs past their retention are left out."""
    messages: list[Message] = []
    for run_id in run_ids:
        run = await store.run(run_id) if run_id else None
        asked = await input_of(store, run) if run is not None else None
        if run is None or asked is None:
            continue
        messages += await _before(store, run)
        text = await whole_value(store, run, "input", "", asked.input, asked.truncated)
        messages.append(Message(role="user", content=_text(text)))
        messages += await _done(store, run, await read_story(store, run))
    return messages


async def _before(store: Store, run: Run) -> list[Message]:
    kept = await store.result(run.run_id, PAST)
    return (
        []
        if kept is None
        else [Message(fields) for fields in msgspec.json.decode(kept.body, type=list[dict[str, Any]])]
    )


async def _done(store: Store, run: Run, story: RunStory) -> list[Message]:
    messages: list[Message] = []
    for call in story.calls.values():
        if call.agent_id:
            continue  # what a sub-agent did is in its report
        args = await whole_value(store, run, "args", call.call_id, call.args, call.args_cut)
        result = await whole_value(store, run, "result", call.call_id, call.result, call.result_cut)
        function = {"name": call.name, "arguments": _text(args if args is not None else {})}
        made = [{"id": call.call_id, "type": "function", "function": function}]
        messages.append(Message(role="assistant", content="", tool_calls=made))
        content = _observed(call.output, _text(result))
        messages.append(Message(role="tool", tool_call_id=call.call_id, name=call.name, content=content))
    answer = story.text
    if story.answer is not None:
        cut = story.answer.truncated
        answer = _text(await whole_value(store, run, "content", "", story.answer.content, cut))
    messages.append(Message(role="assistant", content=answer))
    return messages


def _observed(printed: str, result: str) -> str:
    """What a tool printed and what it returned, which for code is mostly nothing."""
    return "\n".join(part for part in (printed.rstrip("\n"), result) if part)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
