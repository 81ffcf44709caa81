"""Two turns with each built-in agent over the socket, with and without streaming, compared with golden files."""

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from limelight.builtin.catalogue import BUILT_INS
from tests.server.v2.conversations import QUESTIONS, converse, is_loading, kind, ordered, transcript
from tests.server.v2.socket_client import Json, messages, states, whole

GOLDEN = Path(__file__).parent / "golden"
NAMES = [one.name for one in BUILT_INS]
OF_STREAMS = {"streaming", "is_delta", "is_initial_stream", "stream_id"}
VARYING = {"tool_id", "token_usage", "timing", "execution_duration", "agent_id", "parent_id"}
OF_FILES = {"artifact_id", "url", "image_path"}

LETTERS = {
    "planning_header": "P",
    "planning_content": "p",
    "planning_footer": "q",
    "action_header": "A",
    "action_thought": "t",
    "reasoning": "t",
    "tool_call": "c",
    "tool_invocation": "i",
    "execution_logs": "l",
    "observation": "o",
    "action_footer": "f",
    "separator": "-",
    "final_answer": "!",
}
ORDER = re.compile(r"(Ppq-|At*(ci|l?o)*f-)*!?")
"""The order of messages by the documents of the API: plans, steps, and the answer."""


@pytest.mark.parametrize("name", NAMES)
async def test_conversation_matches_its_golden_files(name: str, tmp_path: Path) -> None:
    streaming = await converse(name, tmp_path / "streaming", streaming=True)
    quiet = await converse(name, tmp_path / "whole", streaming=False)
    for frames in (streaming, quiet):
        check_states(frames)
        check_ids(frames)
        check_order(frames)
    check_streams(streaming)
    assert not [frame for frame in messages(quiet) if OF_STREAMS & set(frame["metadata"]) - {"streaming", "is_delta"}]
    assert comparable(streaming) == comparable(quiet)
    compare(f"{name}.streaming", streaming)
    compare(f"{name}.whole", quiet)


def test_golden_files_are_complete() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {
        f"{name}.{mode}.jsonl" for name in NAMES for mode in ("streaming", "whole")
    }


def compare(name: str, frames: list[Json]) -> None:
    """Compare with the golden file; `make golden` writes it."""
    path, text = GOLDEN / f"{name}.jsonl", "\n".join(transcript(frames)) + "\n"
    if os.environ.get("LIMELIGHT_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"there is no {path.name} yet: make golden, then look at it"
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs: if that is meant, run `make golden`"


def check_states(frames: list[Json]) -> None:
    assert states(frames) == ["idle", *["processing", "completed"] * len(QUESTIONS)]
    count = 0
    for before, frame in zip([{}, *frames], frames, strict=False):
        if frame.get("type") != "state":
            count += not frame["metadata"].get("streaming")
        elif frame["state"]["state"] == "completed":
            assert kind(before) == "final_answer"
            assert frame["state"]["message_count"] == count
    asked = [frame["content"] for frame in messages(frames) if frame["role"] == "user"]
    assert asked == list(QUESTIONS)


def check_ids(frames: list[Json]) -> None:
    assert max(Counter(frame["message_id"] for frame in whole(frames)).values()) == 1
    cursors = [tuple(map(int, frame["cursor"].split("."))) for frame in messages(frames)]
    assert len(set(cursors)) == len(cursors)


def check_streams(frames: list[Json]) -> None:
    """Each stream begins empty, and ends with a message that is the sum of its increments, all with one id."""
    folded: dict[str, str] = {}
    ended: set[str] = set()
    for frame in messages(frames):
        about, stream_id = frame["metadata"], frame["metadata"].get("stream_id")
        if stream_id is None:
            assert not about.get("streaming")
            continue
        assert frame["message_id"] == stream_id
        assert stream_id not in ended
        if about.get("is_initial_stream"):
            assert (stream_id in folded, frame["content"]) == (False, "")
            folded[stream_id] = ""
        elif about["is_delta"]:
            assert frame["content"] or kind(frame) == "tool_invocation"  # the end of the arguments adds no code
            folded[stream_id] += frame["content"]
        else:
            assert frame["content"] == folded[stream_id] != ""
            ended.add(stream_id)
    assert ended == set(folded)


def check_order(frames: list[Json]) -> None:
    """The order holds for each agent and turn; messages of sub-agents are in between."""
    for turn in turns(whole(frames)):
        for agent_id in {frame["metadata"].get("agent_id", "") for frame in turn}:
            own = [frame for frame in turn if frame["metadata"].get("agent_id", "") == agent_id]
            check_calls(own)
            word = "".join(LETTERS.get(kind(frame), "") for frame in own)
            assert ORDER.fullmatch(word), (agent_id, word)
            assert word.endswith("!") == (agent_id == "")


def check_calls(frames: list[Json]) -> None:
    """The order holds for each call; nested and parallel calls are in between."""
    for frame in frames:
        if kind(frame) == "tool_call":
            own = [one for one in frames if one["metadata"].get("tool_id") == frame["metadata"]["tool_id"]]
            kinds = [kind(one) for one in own if kind(one) in LETTERS]
            assert kinds in (
                ["tool_call", "tool_invocation", "observation"],
                ["tool_call", "tool_invocation", "execution_logs", "observation"],
            )


def turns(frames: list[Json]) -> list[list[Json]]:
    found: list[list[Json]] = []
    for frame in frames:
        if frame["role"] == "user":
            found.append([])
        found[-1].append(frame)
    return found


def comparable(frames: list[Json]) -> list[tuple[str, Any, dict[str, Any]]]:
    """Types, contents and metadata of the complete messages, without streaming keys and varying values."""
    left_out = OF_STREAMS | VARYING | OF_FILES
    found: list[tuple[str, Any, dict[str, Any]]] = []
    for frame in whole(ordered(frames)):
        assert not is_loading(frame)
        about = {key: value for key, value in frame["metadata"].items() if key not in left_out}
        changing = kind(frame).endswith("footer") or kind(frame) == "artifact"
        found.append((kind(frame), None if changing else frame["content"], about))
    return found
