"""The workload, the events that all compared servers send: a status, five tools, two sub-agents, many tokens, the end.

It is defined by the items that Limelight's agent yields. The other servers send the same events, and `bare` sends the
same bytes. This module knows nothing of the measurement.
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from limelight.dialects.frame_encoder import FrameEncoder
from limelight.dialects.typed import TypedDialect
from limelight.events import AgentFinished, AgentStarted, Record, RunStarted, Status, ToolFinished, ToolStarted
from limelight.server.sse import sse_framing
from limelight.sources.base import FileMade, Item
from limelight.sources.function import FunctionTranslator

TOKENS = int(os.environ.get("BENCH_TOKENS", "1000"))
SHORT_TOKENS = 10
IDLE_TOKENS = 33
"""Number of tokens of an idle stream: 50 events with the others, after which it sends nothing."""
TOKEN = "lime "
"""The text of each token, by which a client can count tokens that arrive joined."""
TOOLS = 5
AGENTS = 2


def tokens_of(mode: str) -> int:
    """Return the number of tokens that an agent of this mode (`turn`, `short`, `idle` …) streams."""
    return {"short": SHORT_TOKENS, "idle": IDLE_TOKENS}.get(mode, TOKENS)


def items(tokens: int) -> Iterator[str | Item]:
    """Yield the items that Limelight's agent yields, without the end of the run, which Limelight adds."""
    yield Status(text="Looking around")
    for number in range(TOOLS):
        call_id = f"call-{number}"
        yield ToolStarted(call_id=call_id, name="search", args={"query": "q" * 185})
        yield ToolFinished(call_id=call_id, result="r" * 2048, duration_ms=12)
    for number in range(AGENTS):
        yield AgentStarted(agent_id=f"agent-{number}", name="researcher")
        yield AgentFinished(agent_id=f"agent-{number}")
    for _ in range(tokens):
        yield TOKEN


def frames(tokens: int) -> list[bytes]:
    """Return the workload as Limelight sends it, one SSE frame for each event."""
    encoder, framing = FrameEncoder(TypedDialect), sse_framing(TypedDialect.event_name)
    translator = FunctionTranslator()
    events: list[Item] = [RunStarted(agent="turn")]
    for item in items(tokens):
        events += translator.feed(item)
    events += translator.end()
    records = [Record(seq, "", 0, e) for seq, e in enumerate(events, start=1) if not isinstance(e, FileMade)]
    return [blob for record in records if (blob := framing(encoder.encode(record)))]


def payloads(tokens: int) -> list[dict[str, Any]]:
    """Return the workload as dictionaries, for a server that encodes them itself."""
    return [msgspec.json.decode(frame.split(b"\ndata: ", 1)[1]) for frame in frames(tokens)]
