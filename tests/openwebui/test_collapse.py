"""The one block of `collapse`: it is sent whole with each change, so it must not be sent with each of many."""

import asyncio
import html
import json

import pytest

from tests.openwebui.display_frames import Shown
from tests.openwebui.function_rules import Chunk, pipe_module
from tests.openwebui.output import text_of


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def step(shown: Shown, number: int) -> None:
    about = {"tool_id": f"c{number}", "name": "search", "agent_depth": 0}
    shown.feed("tool_start", args={}, **about)
    shown.feed("tool_end", result="x" * 200, **about)


def size(chunks: list[Chunk]) -> int:
    return len(json.dumps(chunks))


def test_many_steps_are_sent_a_few_times() -> None:
    clock = Clock()
    shown = Shown("collapse", clock)
    for number in range(2000):
        step(shown, number)
        clock.now += 0.04
        shown.flush()
    shown.close()
    final = size([shown.items[0]])
    assert "Execution Steps (2000 tools)" in text_of(shown.items[0])
    assert size(shown.chunks) < 100 * final
    assert len(shown.chunks) < 200


def test_the_first_step_is_there_at_once_and_the_next_ones_soon() -> None:
    clock = Clock()
    shown = Shown("collapse", clock)
    step(shown, 1)
    shown.flush()
    step(shown, 2)
    shown.flush()
    assert "(1 tool)" in text_of(shown.items[0])
    clock.now += 0.5
    shown.flush()
    assert "(2 tools)" in text_of(shown.items[0])


def test_a_large_block_waits_longer() -> None:
    clock = Clock()
    shown = Shown("collapse", clock)
    for number in range(2000):
        step(shown, number)
    shown.flush()
    step(shown, 2000)
    clock.now += 0.6
    shown.flush()
    assert "(2000 tools)" in text_of(shown.items[0])
    clock.now += 3
    shown.flush()
    assert "(2001 tools)" in text_of(shown.items[0])


@pytest.mark.parametrize("nothing", ["", " ", "\n\n\t"])
@pytest.mark.parametrize("display", ["native", "collapse", "details"])
def test_a_call_that_says_nothing_is_completed(display: str, nothing: str) -> None:
    shown = Shown(display)
    about = {"tool_id": "c", "name": "touch", "agent_depth": 0}
    shown.feed("tool_start", args={}, **about)
    shown.feed("tool_end", result=nothing, **about)
    shown.close()
    assert "✓ completed" in shown.text + "".join(
        text_of(item) for item in shown.items if item["type"] != "function_call"
    )


def test_a_preview_begins_with_what_there_is_to_see() -> None:
    shown = Shown("collapse")
    about = {"tool_id": "c", "name": "look", "agent_depth": 0}
    shown.feed("tool_end", result="\n" * 300 + "Bees.", **about)
    shown.close()
    assert "**🔧 look:** Bees.\n" in text_of(shown.items[0])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<u>x</u> a < b <@ann>", "<|u>x<|/u> a < b <|@ann>"),
        ("[4, 8] rows[3] [^1] [x] []", "[|4, 8] rows[|3] [|^1] [x] []"),
        ("{{user}} {{{x}}} {a}", "{|{user}} {|{|{x}}} {a}"),
        (r"\begin{equation} \(x", r"\\|begin{equation} \\|(x"),
        ("![](y) [a][b] **c**", r"![]|(y) [a]|[b] \*\*c\*\*"),
    ],
)
def test_what_means_something_together_is_parted(text: str, shown: str) -> None:
    assert pipe_module().escape_line(text) == html.escape(shown.replace("|", "\u200b"), quote=False)


async def test_what_was_put_off_comes_without_more_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "IDLE_SECONDS", 0.01)
    queue: asyncio.Queue[object] = asyncio.Queue()
    bundles = pipe_module().batches(queue)
    assert await asyncio.wait_for(anext(bundles), 30) == []
    queue.put_nowait("news")
    while not (bundle := await asyncio.wait_for(anext(bundles), 30)):
        pass
    assert bundle == ["news"]
    queue.put_nowait(None)
    assert [found async for found in bundles if found] == []
