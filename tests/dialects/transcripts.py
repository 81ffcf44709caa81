"""Scripted runs for all dialects, and a client that parses frames and joins deltas.

A new dialect gets its golden files from these scripts (`make golden`). `DELTAS` says how to find the text of a delta.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from limelight import plugins
from limelight.dialects.base import Dialect
from limelight.dialects.base import Frame as WireFrame
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    Record,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.grammar import unseen_result
from limelight.models import Cursor
from limelight.runs.truncation import fit
from limelight.server.sse import sse_framing
from tests.support.strategies import RUN_ID, as_records

DIALECTS: dict[str, Callable[[], Dialect]] = plugins.find("dialects")


def message(message_id: str, *texts: str, agent_id: str = "") -> list[AnyEvent]:
    """Return the events of a complete message."""
    return [
        *(TextDelta(agent_id=agent_id, message_id=message_id, text=text) for text in texts),
        TextFinished(agent_id=agent_id, message_id=message_id),
    ]


def answer(message_id: str, *texts: str) -> list[AnyEvent]:
    """Return the events of the last message and of a successful end."""
    return [*message(message_id, *texts), FinalAnswer(content="".join(texts), message_id=message_id), RunFinished()]


def call(call_id: str, name: str, args: dict[str, Any], result: Any, *, agent_id: str = "") -> list[AnyEvent]:
    """Return the events of a complete tool call."""
    return [
        ToolStarted(agent_id=agent_id, call_id=call_id, name=name, args=args),
        ToolFinished(agent_id=agent_id, call_id=call_id, result=result, duration_ms=12),
    ]


ASKED = RunStarted(agent="demo", input="What is limelight?")

SCRIPTS: dict[str, list[AnyEvent]] = {
    "text": [ASKED, *answer("m1", "Lime", "light is ", "calcium oxide, 🔥 heated.\n\ndata: not a frame")],
    "one_tool": [
        ASKED,
        StepStarted(number=1),
        ReasoningDelta(message_id="r1", text="Let me "),
        ReasoningDelta(message_id="r1", text="look it up."),
        ReasoningFinished(message_id="r1"),
        *message("m1", "I'll search."),
        *call("c1", "search", {"query": "limelight"}, {"hits": [{"title": "Limelight", "score": 0.9}]}),
        Usage(model="understudy", input_tokens=120, output_tokens=8),
        StepFinished(number=1, input_tokens=120, output_tokens=8, duration_ms=40),
        SourceCited(title="Limelight", url="https://example.org/limelight", text="a stage light"),
        *answer("m2", "A stage ", "light."),
    ],
    "parallel_tools": [
        ASKED,
        ToolStarted(call_id="c1", name="read_file", args={"path": "a.md"}),
        ToolStarted(call_id="c2", name="read_file", args={"path": "b.md"}),
        Status(text="Reading two files"),
        ToolFinished(call_id="c2", result="b", duration_ms=3),
        ToolFinished(call_id="c1", result="", duration_ms=9),
        *answer("m1", "Both read."),
    ],
    "tool_error": [
        ASKED,
        ToolStarted(call_id="c1", name="divide", args="{not json"),
        ToolFinished(call_id="c1", result="Error: division by zero", error="division by zero", duration_ms=1),
        *answer("m1", "That did not work."),
    ],
    "streamed_args": [
        ASKED,
        ToolStarted(call_id="c1", name="write_file"),
        ToolArgsDelta(call_id="c1", text='{"path": "x.txt", '),
        ToolArgsDelta(call_id="c1", text='"content": "é"}'),
        ToolReady(call_id="c1", args={"path": "x.txt", "content": "é"}),
        ToolStarted(call_id="c2", name="ls"),
        ToolReady(call_id="c2", args={"path": "/"}),
        ToolFinished(call_id="c2", result=["x.txt"], duration_ms=1),
        ToolFinished(call_id="c1", result="ok", duration_ms=2),
        *answer("m1", "Written."),
    ],
    "sub_agents": [
        ASKED,
        ToolStarted(call_id="c1", name="task", args={"subagent": "researcher"}),
        ToolStarted(call_id="c2", name="task", args={"subagent": "critic"}),
        AgentStarted(agent_id="a1", name="researcher", call_id="c1"),
        AgentStarted(agent_id="a2", name="critic", call_id="c2"),
        TextDelta(agent_id="a1", message_id="m1", text="Search"),
        TextDelta(agent_id="a2", message_id="m2", text="Hm."),
        TextDelta(agent_id="a1", message_id="m1", text="ing."),
        TextFinished(agent_id="a1", message_id="m1"),
        AgentStarted(agent_id="a3", name="reader", parent_id="a1"),
        *call("c3", "readurl", {"url": "https://example.org/"}, "text", agent_id="a3"),
        TextFinished(agent_id="a2", message_id="m2"),
        AgentFinished(agent_id="a2", error="nothing to criticise"),
        ToolFinished(call_id="c2", result="Error: nothing", error="nothing", duration_ms=20),
        Status(agent_id="a3", text="Reading"),
        AgentFinished(agent_id="a3"),
        AgentFinished(agent_id="a1"),
        ToolFinished(call_id="c1", result="A report.", duration_ms=30),
        *answer("m3", "They are done."),
    ],
    "branches": [
        ASKED,
        StepStarted(number=1, step_kind="write"),
        AgentStarted(agent_id="write-1", name="write", title="bees", branch=True),
        StepStarted(agent_id="write-1", number=1, step_kind="write"),
        AgentStarted(agent_id="write-2", name="write", title="wasps", branch=True),
        StepStarted(agent_id="write-2", number=1, step_kind="write"),
        TextDelta(agent_id="write-1", message_id="m1", text="Bees "),
        TextDelta(agent_id="write-2", message_id="m2", text="Wasps "),
        TextDelta(agent_id="write-1", message_id="m1", text="hum."),
        *call("c1", "search", {"query": "wasps"}, "Nothing.", agent_id="write-2"),
        TextFinished(agent_id="write-1", message_id="m1"),
        Status(agent_id="write-2", text="Still searching"),
        StepFinished(agent_id="write-1", number=1, step_kind="write", duration_ms=20),
        AgentFinished(agent_id="write-1"),
        TextDelta(agent_id="write-2", message_id="m2", text="sting."),
        TextFinished(agent_id="write-2", message_id="m2"),
        StepFinished(agent_id="write-2", number=1, step_kind="write", duration_ms=30),
        AgentFinished(agent_id="write-2"),
        StepFinished(number=1, step_kind="write", duration_ms=31),
        StepStarted(number=2, step_kind="join"),
        *message("m3", "Bees hum, wasps sting."),
        StepFinished(number=2, step_kind="join", duration_ms=5),
        FinalAnswer(content="Bees hum, wasps sting.", message_id="m3"),
        RunFinished(),
    ],
    "plan": [
        ASKED,
        PlanDelta(text="First look, "),
        PlanDelta(text="then answer."),
        Plan(text="First look, then answer."),
        Plan(items=(Todo("look", "in_progress"), Todo("answer")), update=True),
        Plan(items=(Todo("look", "completed"), Todo("answer", "completed")), update=True),
        *answer("m1", "Done."),
    ],
    "code_output": [
        ASKED,
        ToolStarted(call_id="c1", name="python", args={"code": "print(1)\nraise ValueError"}),
        ToolOutputDelta(call_id="c1", text="1"),
        ToolOutputDelta(call_id="c1", text="\n"),
        ToolOutputDelta(call_id="c1", text="Traceback …\nValueError\n", stream="stderr"),
        ArtifactMade(artifact_id="art_1", name="plot.png", media_type="image/png", size=67, call_id="c1"),
        ToolFinished(call_id="c1", result="Error: ValueError", error="ValueError", duration_ms=5),
        *answer("m1", "It raised."),
    ],
    "streamed_code": [
        ASKED,
        ToolStarted(call_id="c1", name="python_interpreter"),
        ToolArgsDelta(call_id="c1", text='{"code": "'),
        ToolArgsDelta(call_id="c1", text='import math\\nprint(\\"'),
        ToolArgsDelta(call_id="c1", text="é\\ud83d"),
        ToolArgsDelta(call_id="c1", text='\\ude00\\")'),
        ToolArgsDelta(call_id="c1", text='"}'),
        ToolReady(call_id="c1", args={"code": 'import math\nprint("é😀")'}),
        ToolOutputDelta(call_id="c1", text="é😀\n"),
        ToolFinished(call_id="c1", result="", duration_ms=5),
        ToolStarted(call_id="c2", name="python_interpreter"),
        ToolArgsDelta(call_id="c2", text='{"code": "final_answer = 1"}'),
        ToolReady(call_id="c2", args={"code": "final_answer_variable = 1"}),
        ToolFinished(call_id="c2", result="", duration_ms=5),
        ToolStarted(call_id="c3", name="python_interpreter"),
        ToolArgsDelta(call_id="c3", text='{"code": "never'),
        ToolReady(call_id="c3", args='{"code": "never'),
        ToolFinished(call_id="c3", result="Error: cut", error="cut"),
        *answer("m1", "Printed."),
    ],
    "question": [
        ASKED,
        ApprovalRequested(
            approval_id="p1",
            name="interrupt",
            args={"question": "Which town?", "options": ["Lyon", "Paris"]},
            question="Which town?",
            answer_schema={"enum": ["Lyon", "Paris"]},
        ),
        ApprovalResolved(approval_id="p1", decision="edit", args={"value": "Paris"}, answered=True, by="ada"),
        ToolStarted(call_id="c1", name="book", args={"town": ""}),
        ApprovalRequested(approval_id="p2", name="book", args={"town": ""}, call_id="c1", answer_schema={}),
        ApprovalResolved(approval_id="p2", decision="edit", args={"value": {"town": "Rome"}}, answered=True, by="ada"),
        ToolFinished(call_id="c1", result="booked"),
        *answer("m1", "Booked."),
    ],
    "approval": [
        ASKED,
        ToolStarted(call_id="c1", name="rm", args={"path": "/"}),
        ApprovalRequested(approval_id="p1", name="rm", args={"path": "/"}, call_id="c1", expires_at=1_700_000_600_000),
        ApprovalResolved(approval_id="p1", decision="edit", args={"path": "/tmp"}, by="ada"),
        ToolFinished(call_id="c1", result="removed", duration_ms=1),
        ApprovalRequested(approval_id="p2", name="publish", args={}, decisions=("approve", "reject")),
        ApprovalResolved(approval_id="p2", decision="reject", reason="not yet", by="ada"),
        *answer("m1", "Removed, not published."),
    ],
    "answer_never_streamed": [
        ASKED,
        *message("m1", "Thinking aloud."),
        FinalAnswer(content={"answer": 42}, title="The answer", sources=("https://example.org/",)),
        RunFinished(code="max_steps"),
    ],
    "nested_answer": [
        ASKED,
        FinalAnswer(
            content={
                "title": "Bees",
                "content": {"title": "inner", "content": "They dance."},
                "sources": [
                    {"title": "Bees", "url": "https://example.org/bees"},
                    "Winter — https://example.org/winter",
                    "A book",
                ],
            }
        ),
        RunFinished(),
    ],
    "failed": [
        ASKED,
        TextDelta(message_id="m1", text="I will"),
        TextFinished(message_id="m1"),
        RunFailed(code="agent_error", message="ValueError: no", error_id="err_1"),
    ],
    "cancelled": [
        ASKED,
        ToolStarted(call_id="c1", name="sleep", args={"seconds": 60}),
        ToolFinished(call_id="c1", result="Error: stopped", error="stopped", outcome="stopped", duration_ms=900),
        RunCancelled(reason="stopped by the user"),
    ],
    "interrupted": [
        ASKED,
        StepStarted(number=1),
        ToolStarted(call_id="c1", name="task", args={"task": "look"}),
        AgentStarted(agent_id="a1", name="helper", call_id="c1"),
        ToolStarted(agent_id="a1", call_id="c2", name="fetch", args={}),
        ToolFinished(agent_id="a1", call_id="c2", result="Error: broke", error="broke", duration_ms=3),
        AgentFinished(agent_id="a1", error="no luck", outcome="stopped"),
        ToolFinished(call_id="c1", result="Error: no luck", error="no luck", outcome="stopped", duration_ms=4),
        StepFinished(number=1, error="no luck", outcome="stopped"),
        RunFailed(code="agent_error", message="no luck", error_id="err_1"),
    ],
    "rejected": [
        ASKED,
        ToolStarted(call_id="c1", name="rm", args={"path": "/"}),
        ApprovalRequested(approval_id="p1", name="rm", args={"path": "/"}, call_id="c1"),
        ApprovalResolved(approval_id="p1", decision="reject", reason="no", by="ada"),
        ToolFinished(call_id="c1", result="Error: rejected by ada: no", error="rejected by ada: no", duration_ms=0),
        *answer("m1", "Then not."),
    ],
    "unseen_result": [
        ASKED,
        ToolStarted(call_id="c1", name="send_mail", args={"to": "ann"}),
        *message("m1", "I have asked for it."),
        unseen_result("", "c1"),
        FinalAnswer(content="I have asked for it.", message_id="m1"),
        RunFinished(),
    ],
    "truncated_result": [
        ASKED,
        ToolStarted(call_id="c1", name="read_file", args={"path": "big.txt"}),
        *fit(ToolFinished(call_id="c1", result="0123456789" * 5000, duration_ms=2), RUN_ID, 10**6).events,
        *answer("m1", "Long."),
    ],
}


class Frame(NamedTuple):
    """One SSE message as a client gets it."""

    id: str
    event: str
    data: bytes


def parse(sent: bytes) -> list[Frame]:
    """Parse SSE strictly: each frame has one id and one data line, and the last one is complete."""
    frames: list[Frame] = []
    assert sent == b"" or sent.endswith(b"\n\n")
    for block in sent.split(b"\n\n")[:-1]:
        lines = [line.partition(b": ") for line in block.split(b"\n")]
        fields = {name.decode(): value for name, _, value in lines}
        assert len(fields) == len(lines), "a field appears twice"
        assert set(fields) - {"event"} == {"id", "data"}
        frames.append(Frame(fields["id"].decode(), fields.get("event", b"").decode(), fields["data"]))
    return frames


def live(make_dialect: Callable[[], Dialect], records: Iterable[Record]) -> list[Frame]:
    """Return the frames of a viewer from the beginning, encoded one Record at a time."""
    encoder = FrameEncoder(make_dialect)
    return as_sent(make_dialect, [frame for record in records for frame in encoder.encode(record)])


def as_sent(make_dialect: Callable[[], Dialect], frames: Sequence[WireFrame]) -> list[Frame]:
    """Return the frames as a client of an SSE stream parses them."""
    return parse(sse_framing(make_dialect().event_name)(frames))


def resumed(make_dialect: Callable[[], Dialect], records: list[Record], after: str) -> list[Frame]:
    """Return the frames after a cursor, as a viewer encodes them: deltas joined, known frames skipped."""
    cursor = Cursor.parse(after)
    known = cursor.seq - 1 if cursor.k else cursor.seq
    encoder = FrameEncoder(make_dialect)
    for record in records[:known]:
        encoder.feed(record)
    rest = records[known:]
    frames: list[WireFrame] = []
    if cursor.k:
        frames += encoder.encode(rest[0], skip=cursor.k)
        rest = rest[1:]
    frames += encoder.catch_up(rest)
    return as_sent(make_dialect, frames)


class Piece(NamedTuple):
    """A frame for comparison: `text` is the text of a delta, `payload` everything else."""

    id: str
    payload: Any
    text: str | None


def _typed_delta(payload: Any) -> tuple[Any, str] | None:
    if payload["type"] not in ("token", "reasoning", "tool_args", "tool_output"):
        return None
    data = dict(payload["data"])
    text = data.pop("content")
    return (payload["type"], data), text


def _records_delta(payload: Any) -> tuple[Any, str] | None:
    event = dict(payload["event"])
    if not event["kind"].endswith("_delta"):
        return None
    text = event.pop("text")
    return (payload["run_id"], event), text


def _tool_calls_delta(payload: Any) -> tuple[Any, str] | None:
    if payload["type"] != "message":
        return None
    text = payload["content"]
    return {key: value for key, value in payload.items() if key != "content"}, text


def _v2_delta(payload: Any) -> tuple[Any, str] | None:
    """Ignore the timestamp of an increment, which depends on how deltas were joined."""
    if not payload.get("metadata", {}).get("is_delta"):
        return None
    rest = {key: value for key, value in payload.items() if key not in ("content", "timestamp")}
    return rest, payload["content"]


DELTAS: dict[str, Callable[[Any], tuple[Any, str] | None]] = {
    "typed": _typed_delta,
    "records": _records_delta,
    "tool_calls": _tool_calls_delta,
    "v2": _v2_delta,
}
"""For each dialect, a function that splits the frame of a delta into its payload and text; None for other frames."""


def pieces(dialect: str, frames: Iterable[Frame]) -> list[Piece]:
    found: list[Piece] = []
    for frame in frames:
        payload = msgspec.json.decode(frame.data)
        delta = DELTAS[dialect](payload)
        found.append(Piece(frame.id, payload, None) if delta is None else Piece(frame.id, *delta))
    return found


def joined(found: Iterable[Piece]) -> list[Piece]:
    """Join neighbouring deltas of one text, so that streams can be compared."""
    groups: list[list[Piece]] = []  # joined once, because adding text piece by piece would copy it each time
    for piece in found:
        last = groups[-1][-1] if groups else None
        if last and last.text is not None and piece.text is not None and last.payload == piece.payload:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [Piece(group[-1].id, group[-1].payload, _text_of(group)) for group in groups]


def _text_of(group: list[Piece]) -> str | None:
    texts = [piece.text for piece in group if piece.text is not None]
    return "".join(texts) if texts else None


def records_of(script: str) -> list[Record]:
    return as_records(SCRIPTS[script])
