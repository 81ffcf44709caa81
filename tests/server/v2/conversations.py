"""A conversation with a built-in agent over the socket, and its transcript without varying values."""

import json
import re
from pathlib import Path
from typing import Any, cast

from limelight.agents.resolve import resolve_agents
from limelight.config import load_settings
from tests.server.v2.socket_client import Json, socket
from tests.support.server import serving

QUESTIONS = ("What do bees do in winter?", "And lighthouses?")
LONG = 120
"""Characters of a text in a golden file."""
VARYING = {"execution_duration", "timing", "message_count", "token_usage"}
LEFT_OUT = {"session_id", "cursor", "timestamp", "created_at", "last_activity"}
IDS = {"run_id": "run", "tool_id": "call", "message_id": "msg", "stream_id": "msg", "agent_id": "agent"}
IN_TEXTS = (
    (re.compile(r"\bart_\w+"), "art_…"),
    (re.compile(r"put tokens: [\d,]+"), "put tokens: …"),
    (re.compile(r"Duration: [\d.]+s"), "Duration: …"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:…"),
)


async def converse(name: str, data: Path, *, streaming: bool) -> list[Json]:
    """All frames of two turns with the offline model."""
    file = data.with_suffix(".toml")
    file.write_text(f"[agents.{name}]\nenable_streaming = {json.dumps(streaming)}\n")
    agents = resolve_agents(load_settings(file, environ={}), [name], environ={}).agents
    async with serving(agents=agents, data=data) as served, socket(served) as ws:
        frames = [await ws.receive()]
        for question in QUESTIONS:
            frames += await ws.ask(question)
    return frames


def is_loading(frame: Json) -> bool:
    """Whether a frame reports the import of a framework, which only the first run in a process does."""
    return kind(frame) == "status" and frame["content"].startswith("Loading ")


def kind(frame: Json) -> str:
    return frame.get("type") or frame["metadata"]["message_type"]


def ordered(frames: list[Json]) -> list[Json]:
    """Frames with the observations of parallel calls in the order of the calls."""
    calls = [frame["metadata"]["tool_id"] for frame in frames if kind(frame) == "tool_call"]
    found: list[Json] = []
    row: list[Json] = []
    for frame in (frame for frame in frames if not is_loading(frame)):
        if kind(frame) == "observation":
            row.append(frame)
            continue
        found += [*sorted(row, key=lambda one: calls.index(one["metadata"]["tool_id"])), frame]
        row = []
    return found + row


def transcript(frames: list[Json]) -> list[str]:
    """A line for each message. Consecutive increments are one line without their text."""
    names: dict[str, str] = {}
    lines: list[str] = []
    for frame in ordered(frames):
        if frame.get("metadata", {}).get("is_delta"):
            frame = {**frame, "content": "…"}
        line = json.dumps(_steady(frame, names), ensure_ascii=False)
        if not (lines and line == lines[-1] and '"is_delta": true' in line):
            lines.append(line)
    return lines


def _steady(value: Any, names: dict[str, str], key: str = "") -> Any:
    if value is not None and key in VARYING:
        return "…"
    if isinstance(value, dict):
        steady = {name: _steady(one, names, name) for name, one in cast("dict[str, Any]", value).items()}
        return {name: one for name, one in steady.items() if name not in LEFT_OUT}
    if isinstance(value, list):
        return [_steady(one, names) for one in cast("list[Any]", value)]
    if value and key in IDS:
        return names.setdefault(f"{IDS[key]}:{value}", f"{IDS[key]}-{_count(names, IDS[key]) + 1}")
    return _short(value) if isinstance(value, str) else value


def _count(names: dict[str, str], kind: str) -> int:
    return sum(name.startswith(f"{kind}-") for name in names.values())


def _short(text: str) -> str:
    for pattern, instead in IN_TEXTS:
        text = pattern.sub(instead, text)
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text)} characters)"
