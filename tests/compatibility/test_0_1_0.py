"""A data folder and a pipe file of version 0.1.0 work with this server.

`0.1.0.tar.xz` has a data folder that a server of version 0.1.0 wrote with its built-in agents before it was killed, the
streams of its runs in all formats as that server sent them, and its pipe file. The run `waiting` waits for an approval.
"""

import json
import tarfile
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from limelight.config.schema import MAX_DAYS, MAX_SECONDS
from limelight.events import RunFinished
from tests.builtin.agent_runs import serve_agent
from tests.openwebui.function_rules import load_function
from tests.sources.live_turn import checked_run
from tests.support.server import Served, collect

ARCHIVE = Path(__file__).parent / "0.1.0.tar.xz"
FORMATS = ("typed", "tool_calls", "records", "v2")
AGENTS = ("deep", "agno", "agno-team", "react", "codact", "demo")
WITH_ADDED_FRAMES = ("demo-approval.typed", "demo-approval.tool_calls", "codact-1.v2", "codact-2.v2")
"""Streams to which later versions have added frames: the statuses of approvals, and the increments of code."""

STREAM_FIELDS = ("message_id", "stream_id", "streaming", "is_delta")
DERIVED = ("summary", "language", "code_key", "outcome", "task", "source_links")
"""Fields that later versions add to calls, steps, approvals, sub-agents and answers."""
STEP_MESSAGES = ("action_", "planning_")
"""Beginnings of the types of `v2` messages about steps."""


class Upgraded(NamedTuple):
    """This version's server on the data folder of version 0.1.0."""

    served: Served
    folder: Path
    runs: dict[str, str]


@pytest.fixture
async def upgraded(tmp_path: Path) -> AsyncGenerator[Upgraded]:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    runs = json.loads((tmp_path / "transcripts" / "runs.json").read_text())
    # So that the age of the archive changes neither what is kept nor the states of its sessions.
    never: dict[str, Any] = {"store__retention_days": MAX_DAYS, "store__expiry_seconds": MAX_SECONDS}
    async with serve_agent(tmp_path / "data", **never) as served:
        yield Upgraded(served, tmp_path, runs)


def frames(stream: bytes) -> list[str]:
    """The frames of a stream, without comments and the retry time."""
    return [block for block in stream.decode().split("\n\n") if "data: " in block]


def without_derived_fields(stream: bytes) -> list[tuple[str, Any]]:
    """The id and the payload of each frame, without what later versions derive from the arguments of calls."""
    found: list[tuple[str, Any]] = []
    for frame in frames(stream):
        head, _, payload = frame.partition("data: ")
        value = json.loads(payload, object_hook=lambda fields: {k: v for k, v in fields.items() if k not in DERIVED})
        metadata: dict[str, Any] = value.get("metadata") or {}
        if str(metadata.get("message_type")).startswith(STEP_MESSAGES):  # later versions name the sub-agent in them
            value["content"] = value["content"].replace(f"**{metadata.get('agent_name')} · ", "**")
        is_added = value.get("type") == "tool_args" and not value["data"]["content"]
        if not is_added:
            found.append((head, value))
    return found


def without_stream_ids(frames: list[tuple[str, Any]]) -> list[Any]:
    """The payloads of frames, without the fields of `v2` that number messages and say which of them are streams."""
    text = json.dumps([payload for _, payload in frames])
    return json.loads(text, object_hook=lambda fields: {k: v for k, v in fields.items() if k not in STREAM_FIELDS})


def is_subsequence(part: Iterable[Any], whole: Iterable[Any]) -> bool:
    remaining = iter(whole)
    return all(item in remaining for item in part)


@pytest.mark.requirement("older-versions")
async def test_streams_of_old_runs_have_only_derived_fields_added_in_every_format(upgraded: Upgraded) -> None:
    names = [name for name in upgraded.runs if name != "waiting"]
    assert len(names) == 13
    for name in names:
        for format_ in FORMATS:
            response = await upgraded.served.http.get(f"/runs/{upgraded.runs[name]}/stream", params={"format": format_})
            old = (upgraded.folder / "transcripts" / f"{name}.{format_}.sse").read_bytes()
            before, after = without_derived_fields(old), without_derived_fields(response.content)
            if (
                f"{name}.{format_}" in WITH_ADDED_FRAMES
            ):  # these shift cursors inside of a Record, and numbers of messages
                assert is_subsequence(without_stream_ids(before), without_stream_ids(after)), name
            else:
                assert after == before, (name, format_)


async def test_old_sessions_are_listed_unchanged(upgraded: Upgraded) -> None:
    old = json.loads((upgraded.folder / "transcripts" / "sessions.json").read_text())["sessions"]
    listed = (await upgraded.served.http.get("/sessions")).json()["sessions"]
    assert [session for session in listed if session["session_id"] != "waiting-deep"] == old


async def test_run_that_waited_when_the_old_server_was_killed_resumes_with_the_decision(upgraded: Upgraded) -> None:
    http, run_id = upgraded.served.http, upgraded.runs["waiting"]
    run = (await http.get(f"/runs/{run_id}")).json()
    assert run["state"] == "waiting"
    (approval,) = run["approvals"]
    decided = await http.post(f"/runs/{run_id}/approvals/{approval['approval_id']}", json={"decision": "approve"})
    assert decided.status_code == 200
    stream = upgraded.served.stream("GET", f"/runs/{run_id}/stream", params={"format": "records"})
    assert isinstance(checked_run(await collect(stream)).terminal, RunFinished)


async def test_old_sessions_continue_with_their_agents(upgraded: Upgraded) -> None:
    for agent in AGENTS:
        body = {"agent": agent, "session_id": f"s-{agent}", "messages": [{"role": "user", "content": "And in summer?"}]}
        answer = await upgraded.served.http.post("/chat", json=body)
        assert answer.status_code == 200, answer.text
        session = (await upgraded.served.http.get(f"/sessions/s-{agent}")).json()
        assert (session["run_state"], session["turns"]) == ("finished", 3), agent


@pytest.mark.requirement("older-versions")
async def test_old_pipe_shows_a_run_of_this_server_in_every_display(upgraded: Upgraded) -> None:
    pipe = load_function((upgraded.folder / "deep_agent_pipe.py").read_text()).Pipe()
    for display in ("native", "collapse", "details", "plain"):
        pipe.valves = pipe.Valves(DEEP_AGENT_URL=upgraded.served.url, DISPLAY=display)
        assert "demo" in [model["id"] for model in await pipe.pipes()]
        statuses: list[dict[str, Any]] = []

        async def emit(event: dict[str, Any], statuses: list[dict[str, Any]] = statuses) -> None:
            if event["type"] == "status":
                statuses.append(event["data"])

        reply = await pipe.pipe(
            {"model": "deep_agent_pipe.demo", "messages": [{"role": "user", "content": "bees"}], "stream": True},
            __user__={"id": "u-1", "name": "Ann"},
            __metadata__={"session_id": "socket", "chat_id": f"chat-{display}", "message_id": "m-2"},
            __event_emitter__=emit,
            __event_call__=None,
        )
        chunks = [chunk async for chunk in reply]
        assert "report.md" in json.dumps(chunks), display
        assert statuses[-1]["done"], display
