"""A conversation as the log has it, as messages: for agents whose own memory did not survive."""

from collections.abc import Sequence

import msgspec

from limelight.messages import Message
from limelight.runs.reading import RunStory, input_of, read_story, whole_value
from limelight.stores.base import Run, Store


async def history_from_log(store: Store, run_ids: Sequence[str]) -> list[Message]:
    """What was asked, done and answered in these runs; those that are past their retention are left out."""
    messages: list[Message] = []
    for run_id in run_ids:
        run = await store.run(run_id) if run_id else None
        asked = await input_of(store, run) if run is not None else None
        if run is None or asked is None:
            continue
        text = await whole_value(store, run, "input", "", asked.input, asked.truncated)
        messages.append(Message(role="user", content=_text(text)))
        messages += await _done(store, run, await read_story(store, run))
    return messages


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
        messages.append(Message(role="tool", tool_call_id=call.call_id, name=call.name, content=_text(result)))
    answer = story.text
    if story.answer is not None:
        cut = story.answer.truncated
        answer = _text(await whole_value(store, run, "content", "", story.answer.content, cut))
    messages.append(Message(role="assistant", content=answer))
    return messages


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
