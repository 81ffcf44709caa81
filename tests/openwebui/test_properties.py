"""What holds for every legal run, whole or broken off anywhere, in every display."""

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
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage, playing
from tests.openwebui.function_rules import Chunk, Json, delivered, pipe_module
from tests.openwebui.output import fold, text_of, unanswered
from tests.support.strategies import as_records, legal_runs

DISPLAYS = ("native", "collapse", "details", "plain")
HEADLINE = re.compile(r"<summary>🔍 Execution Steps \((\d+) tools?\)</summary>")
MARK = "¶sub¶"

displays = st.sampled_from(DISPLAYS)


def frames_of(run: list[AnyEvent]) -> list[Frame]:
    """The typed frames of a run, with a mark in each text of a sub-agent."""
    marked = [
        msgspec.structs.replace(event, text=f"{MARK}{event.text}")
        if isinstance(event, TextDelta) and event.agent_id
        else event
        for event in run
    ]
    return live(TypedDialect, as_records(marked))


def payloads(run: list[AnyEvent]) -> list[Json]:
    return [msgspec.json.decode(frame.data) for frame in frames_of(run)]


# Through the pipe, over HTTP


class Loop:
    """A loop with a stage on it, for tests that hypothesis calls many times."""

    def __init__(self, runner: asyncio.Runner, stage: Stage) -> None:
        self._runner = runner
        self._stage = stage

    def see(self, run: list[AnyEvent], display: str, *, one_by_one: bool) -> Seen:
        self._stage.clear()
        self._stage.one_by_one = one_by_one
        self._stage.frames = [b"id: %b\ndata: %b\n\n" % (frame.id.encode(), frame.data) for frame in frames_of(run)]
        chat = Chat(self._stage.url, ask=_nobody, DISPLAY=display, RECONNECT_SECONDS=0)
        return self._runner.run(chat.say("go"))


async def _nobody(_: Json) -> Any:
    await asyncio.Event().wait()


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    async def opened() -> tuple[AsyncGenerator[Stage], Stage]:
        stream = _playing()
        return stream, await anext(stream)

    with asyncio.Runner() as runner:
        stream, stage = runner.run(opened())
        yield Loop(runner, stage)
        runner.run(stream.aclose())


async def _playing() -> AsyncGenerator[Stage]:
    async with playing() as stage:
        yield stage


@pytest.fixture(scope="module", autouse=True)
def no_pauses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipe_module(), "BATCH_SECONDS", 0)
        yield


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(run=legal_runs(max_length=60), display=displays, one_by_one=st.booleans())
def test_every_run_is_shown_and_comes_to_an_end(
    loop: Loop, run: list[AnyEvent], display: str, one_by_one: bool
) -> None:
    seen = loop.see(run, display, one_by_one=one_by_one)
    items = seen.items
    assert unanswered(items) == []
    ids = [item["id"] for item in items]
    assert len(set(ids)) == len(ids)
    dones = [event["data"]["done"] for event in seen.events if event["type"] == "status"]
    assert dones == [False] * (len(dones) - 1) + [True]
    kinds = {frame["type"] for frame in payloads(run)}
    if "done" not in kinds:
        assert "connection" in seen.errors[0]
    elif not kinds & {"error", "cancelled"}:
        assert (seen.end[0], seen.errors) == ("Complete", [])
    assert MARK not in seen.text


# The displays alone


class Played(msgspec.Struct):
    chunks: list[Chunk]
    main_text: str


def played(run: list[AnyEvent], display: str, pauses: Callable[[], bool]) -> Played:
    """Frames into a display, which is asked for news wherever `pauses` says so, and at the end."""
    module = pipe_module()
    story = module.RunState()
    shown = {
        "native": lambda: module.NativeDisplay(story, lambda: "run_0", lambda: 0.0),
        "collapse": lambda: module.CollapseDisplay(story, lambda: "run_0", lambda: 0.0, show_steps=True),
        "plain": lambda: module.CollapseDisplay(story, lambda: "run_0", lambda: 0.0, show_steps=False),
        "details": lambda: module.DetailsDisplay(story, lambda: 0.0),
    }[display]()
    result = Played([], "")
    for payload in payloads(run):
        frame = module.Frame(payload["type"], payload.get("data", {}))
        story.feed(frame)
        shown.feed(frame)
        if frame.type == "token" and not frame.data["agent_depth"]:
            result.main_text += frame.data["content"]
        elif frame.type == "tool_start" and not frame.data["agent_depth"]:
            result.main_text = ""
        if pauses():
            result.chunks += [delivered(chunk) for chunk in shown.flush()]
    shown.close()
    result.chunks += [delivered(chunk) for chunk in shown.flush()]
    return result


def shown_by(result: Played) -> tuple[list[Json], str]:
    return fold(result.chunks), "".join(chunk for chunk in result.chunks if isinstance(chunk, str))


@given(run=legal_runs(max_length=60), display=displays, seed=st.integers(0, 2**16))
def test_where_the_stream_pauses_makes_no_difference(run: list[AnyEvent], display: str, seed: int) -> None:
    random = Random(seed)
    at_once = shown_by(played(run, display, lambda: False))
    assert shown_by(played(run, display, lambda: True)) == at_once
    assert shown_by(played(run, display, lambda: random.random() < 0.3)) == at_once


@given(run=legal_runs(max_length=60))
def test_in_collapse_the_answer_is_there_once_below_the_count_of_the_tools(run: list[AnyEvent]) -> None:
    result = played(run, "collapse", lambda: True)
    texts = [text_of(item) for item in shown_by(result)[0]]
    calls = sum(isinstance(event, ToolStarted) for event in run)
    headlines = [int(found[1]) for text in texts for found in HEADLINE.finditer(text) if text.startswith("<details>")]
    assert headlines == ([calls] if calls else [])
    titles = [frame["data"]["title"] for frame in payloads(run) if frame["type"] == "answer"]
    if not any(titles):
        assert "".join(texts[1:]) == result.main_text.lstrip("\n")
    assert len(texts) in (0, 2)
