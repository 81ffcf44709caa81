"""Which argument of a call is code is one rule for the Web API v2, the terminal and the page.

`code_arguments.json` has the cases. The page's tests read them too (`web/src/log/codeArguments.test.ts`).
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from limelight.cli.view.run_state import RunState
from limelight.events import AnyEvent, Record, RunStarted, ToolArgsDelta, ToolReady, ToolStarted
from tests.dialects.v2.messages import messages_of
from tests.support.strategies import as_records


class Case(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    tool: str
    pieces: list[str]
    """The deltas of the arguments."""
    streamed: str | None
    """The code that clients show when all deltas have arrived."""
    args: dict[str, Any] | str
    code_key: str
    code: str | None
    """The code that clients show when the arguments are complete."""

    def records(self, *, by_character: bool = False) -> list[Record]:
        pieces = list("".join(self.pieces)) if by_character else self.pieces
        events: list[AnyEvent] = [
            RunStarted(agent="a"),
            ToolStarted(call_id="c", name=self.tool),
            *(ToolArgsDelta(call_id="c", text=piece) for piece in pieces),
            ToolReady(call_id="c", args=self.args),
        ]
        return as_records(events)


CASES = msgspec.json.decode(Path(__file__).with_name("code_arguments.json").read_bytes(), type=list[Case])
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.mark.requirement("derived-once")
@each_case
def test_event_names_the_argument_with_the_code(case: Case) -> None:
    ready = case.records()[-1].event
    assert isinstance(ready, ToolReady)
    assert ready.code_key == case.code_key
    assert bool(ready.language) == (case.code is not None)


@pytest.mark.requirement("derived-once")
@each_case
@pytest.mark.parametrize("by_character", [False, True])
def test_terminal_streams_the_code(case: Case, by_character: bool) -> None:
    state = RunState()
    *begun, ready = case.records(by_character=by_character)
    for record in begun:
        state.feed(record)
    call = state.calls["c"]
    assert call.streamed_code == (case.streamed or "")
    state.feed(ready)
    assert (call.streamed_code, call.code_key) == ("", case.code_key)


@pytest.mark.requirement("derived-once")
@each_case
@pytest.mark.parametrize("by_character", [False, True])
def test_v2_streams_the_code_of_python_tools(case: Case, by_character: bool) -> None:
    events = [record.event for record in case.records(by_character=by_character)]
    streamed = _streamed_code(messages_of(events[:-1]))
    assert streamed == (case.streamed or "")
    codes = [message["metadata"]["code"] for message in messages_of(events) if "code" in message["metadata"]]
    assert codes[-1:] == ([case.code] if case.tool == "python" else [])


def _streamed_code(messages: list[dict[str, Any]]) -> str:
    pieces = [m["content"] for m in messages if m["metadata"]["message_type"] == "tool_invocation"]
    return "".join(pieces).removeprefix("```python\n")
