"""Reads the conversation of a session from the log as messages.

`history_from_log` is for agents whose own memory is lost, and has all messages, with the tool calls. `chat_from_log` is
for agents without a memory, and has what a chat client would send: the questions and the answers of the newest turns.
The log contains no messages from before the first run. If a client sends such messages, they are stored with the run.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from limelight.events import RunStarted
from limelight.messages import InlineFile, Message, part_of
from limelight.models import Result, Run
from limelight.runs.queries import RunSummary, complete_value, input_of, read_answer, read_summary
from limelight.runs.truncation import result_key
from limelight.stores.base import Store

PAST = result_key("past")
CHAT_TURNS = 100
"""Maximum number of turns that `chat_from_log` returns: the newest of a session."""
CHAT_CHARACTERS = 1_000_000
"""Maximum number of characters in the turns that `chat_from_log` returns. The newest turn is exempt."""
CHAT_FILE_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes of the files that `chat_from_log` returns. The oldest files beyond it are left out."""


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


async def chat_from_log(store: Store, run_ids: Sequence[str]) -> list[Message]:
    """Return the questions and answers in these runs as messages, as a client that sends its history would.

    Tool calls are left out. A turn that was stopped or has failed has the text that the agent wrote last; if there is
    none, it has no answer. Earlier messages that a client has sent are returned unchanged. Runs that retention has
    deleted are left out, and the oldest turns beyond the limits.
    """
    turns: list[list[Message]] = []
    limits = _ChatLimits()
    for run_id in reversed([run_id for run_id in run_ids if run_id]):
        for turn in [await _chat_turn(store, run_id, limits), *await _earlier_turns(store, run_id)]:
            if not limits.admits(turn):
                return _joined(turns)
            turns.append(turn)
    return _joined(turns)


class _ChatLimits:
    """What remains of the limits of `chat_from_log`: turns, characters and bytes of files."""

    def __init__(self) -> None:
        self._turns = CHAT_TURNS
        self._characters = CHAT_CHARACTERS
        self._file_bytes = CHAT_FILE_BYTES

    def admits(self, turn: Sequence[Message]) -> bool:
        """Subtract a turn from the limits, and return whether it fits. The first turn always fits."""
        is_first = self._turns == CHAT_TURNS
        self._turns -= bool(turn)
        self._characters -= sum(len(message.text) for message in turn)
        return is_first or (self._turns >= 0 and self._characters >= 0)

    def admits_file(self, size: int) -> bool:
        self._file_bytes -= size
        return self._file_bytes >= 0


async def _chat_turn(store: Store, run_id: str, limits: _ChatLimits) -> list[Message]:
    """Return the question and the answer of a run; nothing if the run was deleted."""
    run = await store.run(run_id)
    started = await input_of(store, run) if run is not None else None
    if run is None or started is None:
        return []
    text = _text(await complete_value(store, run, "input", "", started.input, started.truncated))
    files = await _file_parts(store, started, limits)
    question = Message(role="user", content=[{"type": "text", "text": text}, *files] if files else text)
    answer = await _answer_text(store, run)
    return [question, Message(role="assistant", content=answer)] if answer else [question]


async def _answer_text(store: Store, run: Run) -> str:
    """Return the answer of a run or, if it has none, the last text of the agent."""
    if run.state == "finished":
        text, answer = "", await read_answer(store, run)
    else:
        summary = await read_summary(store, run)
        text, answer = summary.text, summary.answer
    if answer is None:
        return text
    return _text(await complete_value(store, run, "content", "", answer.content, answer.truncated))


async def _file_parts(store: Store, started: RunStarted, limits: _ChatLimits) -> list[dict[str, Any]]:
    """Return the files of a question as parts of a message, as far as they fit and are stored."""
    parts: list[dict[str, Any]] = []
    for file in started.attachments:
        artifact = await store.artifact(file.artifact_id) if file.artifact_id else None
        data = artifact.body if artifact is not None and limits.admits_file(len(artifact.body)) else None
        if data is not None or file.url:
            parts.append(part_of(InlineFile(file.name, file.media_type, data, file.url)))
    return parts


async def _earlier_turns(store: Store, run_id: str) -> list[list[Message]]:
    """Return the earlier messages that are stored with a run, in turns that begin with a question, newest first."""
    run = await store.run(run_id)
    messages = await _earlier_messages(store, run) if run is not None else []
    return list(_turns_of(messages))[::-1]


def _turns_of(messages: Sequence[Message]) -> Iterator[list[Message]]:
    turn: list[Message] = []
    for message in messages:
        if message.role == "user" and turn:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _joined(newest_first: Sequence[Sequence[Message]]) -> list[Message]:
    return [message for turn in reversed(newest_first) for message in turn]


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
        is_preview = summary.answer.truncated
        answer = _text(await complete_value(store, run, "content", "", summary.answer.content, is_preview))
    messages.append(Message(role="assistant", content=answer))
    return messages


def _tool_content(printed: str, result: str) -> str:
    """Return the content of a tool message: what the tool printed, then its result; either may be empty."""
    return "\n".join(part for part in (printed.rstrip("\n"), result) if part)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
