"""Properties of every legal run, complete or interrupted, in every display."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limelight.dialects.typed import TypedDialect
from limelight.events import AnyEvent, TextDelta, ToolStarted
from tests.dialects.transcripts import Frame, live
from tests.openwebui.chat import Chat, Output
from tests.openwebui.display_recorder import DisplayRecorder
from tests.openwebui.frame_server import FrameServer, running_frame_server
from tests.openwebui.function_rules import Json, pipe_module
from tests.openwebui.output_items import calls_without_output, item_text
from tests.support.strategies import as_records, legal_runs

DISPLAYS = ("native", "collapse", "details", "plain")
SUMMARY = re.compile(r"<summary>🔍 Execution Steps \((\d+) tools?\)</summary>")
MARKER = "¶sub¶"

displays = st.sampled_from(DISPLAYS)


def frames_of(run: list[AnyEvent]) -> list[Frame]:
    """The typed frames of a run, with a marker in each text of a sub-agent."""
    marked = [
        msgspec.structs.replace(event, text=f"{MARKER}{event.text}")
        if isinstance(event, TextDelta) and event.agent_id
        else event
        for event in run
    ]
    return live(TypedDialect, as_records(marked))


def payloads(run: list[AnyEvent]) -> list[Json]:
    return [msgspec.json.decode(frame.data) for frame in frames_of(run)]


# The pipe, over HTTP


class ServerLoop:
    """An event loop with a frame server, for tests that Hypothesis calls many times."""

    def __init__(self, runner: asyncio.Runner, server: FrameServer) -> None:
        self._runner = runner
        self._server = server

    def chat_output(self, run: list[AnyEvent], display: str, *, frame_by_frame: bool) -> Output:
        self._server.clear()
        self._server.frame_by_frame = frame_by_frame
        self._server.frames = [b"id: %b\ndata: %b\n\n" % (frame.id.encode(), frame.data) for frame in frames_of(run)]
        chat = Chat(self._server.url, ask=_never_answer, DISPLAY=display, RECONNECT_SECONDS=0)
        return self._runner.run(chat.send("go"))


async def _never_answer(_: Json) -> Any:
    await asyncio.Event().wait()


@pytest.fixture(scope="module")
def loop() -> Iterator[ServerLoop]:
    async def start() -> tuple[AsyncGenerator[FrameServer], FrameServer]:
        generator = _frame_server()
        return generator, await anext(generator)

    with asyncio.Runner() as runner:
        generator, server = runner.run(start())
        yield ServerLoop(runner, server)
        runner.run(generator.aclose())


async def _frame_server() -> AsyncGenerator[FrameServer]:
    async with running_frame_server() as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def no_delays() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipe_module(), "BATCH_SECONDS", 0)
        yield


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(run=legal_runs(max_length=60), display=displays, frame_by_frame=st.booleans())
def test_every_run_ends_with_a_final_status_and_complete_items(
    loop: ServerLoop, run: list[AnyEvent], display: str, frame_by_frame: bool
) -> None:
    output = loop.chat_output(run, display, frame_by_frame=frame_by_frame)
    items = output.items
    assert calls_without_output(items) == []
    ids = [item["id"] for item in items]
    assert len(set(ids)) == len(ids)
    dones = [event["data"]["done"] for event in output.events if event["type"] == "status"]
    assert dones == [False] * (len(dones) - 1) + [True]
    types = {frame["type"] for frame in payloads(run)}
    if "done" not in types:
        assert "connection" in output.errors[0]
    elif not types & {"error", "cancelled"}:
        assert (output.final_status[0], output.errors) == ("Complete", [])
    assert MARKER not in output.text


# The displays without the pipe


def run_display(run: list[AnyEvent], name: str, should_flush: Callable[[], bool]) -> tuple[DisplayRecorder, str]:
    """Feed a run to a display, flushing it after frames for which `should_flush` says so, and at the end.

    Returns the display and the text of the main agent after its last tool call."""
    display, answer = DisplayRecorder(name), ""
    for payload in payloads(run):
        data = payload.get("data", {})
        display.feed(payload["type"], **data)
        if payload["type"] == "token" and not data["agent_depth"]:
            answer += data["content"]
        elif payload["type"] == "tool_start" and not data["agent_depth"]:
            answer = ""
        if should_flush():
            display.flush()
    display.close()
    return display, answer


def final_content(run: list[AnyEvent], display: str, should_flush: Callable[[], bool]) -> tuple[list[Json], str]:
    recorder, _ = run_display(run, display, should_flush)
    return recorder.items, recorder.text


@given(run=legal_runs(max_length=60), display=displays, seed=st.integers(0, 2**16))
def test_output_does_not_depend_on_the_times_of_flushes(run: list[AnyEvent], display: str, seed: int) -> None:
    random = Random(seed)
    expected = final_content(run, display, lambda: False)
    assert final_content(run, display, lambda: True) == expected
    assert final_content(run, display, lambda: random.random() < 0.3) == expected


@given(run=legal_runs(max_length=60))
def test_collapse_has_one_block_with_the_number_of_calls_and_one_answer(run: list[AnyEvent]) -> None:
    display, answer = run_display(run, "collapse", lambda: True)
    texts = [item_text(item) for item in display.items]
    calls = sum(isinstance(event, ToolStarted) for event in run)
    counts = [int(match[1]) for text in texts for match in SUMMARY.finditer(text) if text.startswith("<details>")]
    assert counts == ([calls] if calls else [])
    titles = [frame["data"]["title"] for frame in payloads(run) if frame["type"] == "answer"]
    if not any(titles):
        assert "".join(texts[1:]) == answer.lstrip("\n")
    assert len(texts) in (0, 2)
