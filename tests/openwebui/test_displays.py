"""The displays: rows of sub-agents, the output of tools, the block of `collapse`, and escaped text."""

import asyncio
import html
import json
import time

import pytest

from tests.openwebui.chat import Chat
from tests.openwebui.display_recorder import DisplayRecorder
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Chunk, Json, pipe_module
from tests.openwebui.output_items import item_text
from tests.support.wait import DEADLINE


def start_call(display: DisplayRecorder, tool_id: str, agent_id: str = "", depth: int = 0) -> None:
    display.feed("tool_start", tool_id=tool_id, name=tool_id, args={}, agent_id=agent_id, agent_depth=depth)


def row_names(display: DisplayRecorder) -> list[str]:
    """The last parts of the rows' names, without numbers."""
    display.flush()
    return [name.rpartition(" › ")[2].partition(" ")[0] for name in display.names]


# Rows of sub-agents


def test_rows_of_an_agent_follow_those_of_its_sub_agents() -> None:
    display = DisplayRecorder()
    start_call(display, "task")
    display.feed("agent_start", agent_id="a", name="a", depth=1, parent_id="", tool_id="task")
    start_call(display, "ask", "a", 1)
    display.feed("agent_start", agent_id="b", name="b", depth=2, parent_id="a", tool_id="ask")
    start_call(display, "b1", "b", 2)
    display.feed("agent_start", agent_id="c", name="c", depth=3, parent_id="b")
    start_call(display, "c1", "c", 3)
    start_call(display, "a2", "a", 1)
    start_call(display, "b2", "b", 2)
    start_call(display, "a3", "a", 1)
    start_call(display, "last")
    assert row_names(display) == ["a", "b", "b1", "c", "c1", "b2", "a2", "a3", "last"]


def test_rows_of_concurrent_agents_are_grouped_by_agent() -> None:
    display = DisplayRecorder()
    for name in ("a", "b"):
        start_call(display, f"task-{name}")
        display.feed("agent_start", agent_id=name, name=name, depth=1, parent_id="", tool_id=f"task-{name}")
    for tool, agent in (("b1", "b"), ("a1", "a"), ("b2", "b"), ("a2", "a")):
        start_call(display, tool, agent, 1)
    assert row_names(display) == ["a", "a1", "a2", "b", "b1", "b2"]


def test_agent_that_is_its_own_parent_has_rows() -> None:
    display = DisplayRecorder()
    display.feed("agent_start", agent_id="a", name="a", depth=1, parent_id="a")
    start_call(display, "a1", "a", 1)
    assert len(row_names(display)) == 2


# Results


@pytest.mark.parametrize("display_name", ["native", "collapse", "details"])
def test_call_without_a_result_is_marked_as_such_and_not_as_failed(display_name: str) -> None:
    display = DisplayRecorder(display_name)
    start_call(display, "mail")
    display.feed("tool_end", tool_id="mail", name="mail", result="No result seen", agent_depth=0, result_seen=False)
    display.close()
    chunks = str(display.chunks)
    assert "no result seen" in chunks.lower()
    assert "failed" not in chunks and "Error" not in chunks


@pytest.mark.parametrize("outcome", ["stopped", "rejected"])
@pytest.mark.parametrize("display_name", ["native", "collapse", "details"])
def test_stopped_or_rejected_call_is_marked_as_such_and_not_as_failed(display_name: str, outcome: str) -> None:
    display = DisplayRecorder(display_name)
    start_call(display, "mail")
    end = {"tool_id": "mail", "name": "mail", "agent_depth": 0, "result": "Error: no", "error": "no"}
    display.feed("tool_end", **end, outcome=outcome)
    display.close()
    chunks = str(display.chunks)
    assert f"mail · {outcome}" in chunks
    assert "failed" not in chunks


def test_failed_call_is_red_and_its_title_unchanged() -> None:
    display = DisplayRecorder()
    start_call(display, "mail")
    display.feed("tool_end", tool_id="mail", name="mail", agent_depth=0, result="Error: stopped", error="stopped")
    display.close()
    (row,) = [item for item in display.items if item["type"] == "function_call"]
    assert (row["name"], row["status"]) == ("mail", "failed")


def test_row_of_a_stopped_sub_agent_is_marked_as_stopped_and_not_as_failed() -> None:
    display = DisplayRecorder()
    display.feed("agent_start", agent_id="a", name="helper", depth=1, parent_id="")
    display.feed("agent_end", agent_id="a", depth=1, error="no luck", outcome="stopped")
    display.close()
    (row,) = [item for item in display.items if item["type"] == "function_call"]
    assert (row["name"], row["status"]) == ("helper · stopped", "completed")


@pytest.mark.parametrize("blank", ["", " ", "\n\n\t"])
@pytest.mark.parametrize("display_name", ["native", "collapse", "details"])
def test_call_with_a_blank_result_is_completed(display_name: str, blank: str) -> None:
    display = DisplayRecorder(display_name)
    start_call(display, "touch")
    display.feed("tool_end", tool_id="touch", name="touch", result=blank, agent_depth=0)
    display.close()
    texts = [item_text(item) for item in display.items if item["type"] != "function_call"]
    assert "✓ completed" in display.text + "".join(texts)


def test_open_calls_in_details_are_interrupted_at_the_end() -> None:
    display = DisplayRecorder("details")
    for tool_id, name in (("1", "quick"), ("2", "slow")):
        display.feed("tool_start", tool_id=tool_id, name=name, args={"n": 1}, agent_depth=0)
    display.feed("tool_output", tool_id="2", stream="stdout", content="halfway\n")
    display.feed("tool_end", tool_id="1", name="quick", result="done", agent_depth=0)
    display.close()
    assert display.text.count("<details") == display.text.count("</details>") == 2
    assert 'name="slow" arguments="{&quot;n&quot;: 1}"' in display.text
    assert "halfway\\n\\nError: interrupted" in display.text
    assert display.text.index('name="quick"') < display.text.index('name="slow"')


# The output of tools while they run


def display_with_running_call() -> DisplayRecorder:
    display = DisplayRecorder()
    display.feed("tool_start", tool_id="c", name="build", args={}, agent_depth=0)
    return display


def label_after(display: DisplayRecorder, *output: str) -> str:
    """The label of the row after this output of the tool."""
    for text in output:
        display.feed("tool_output", tool_id="c", stream="stdout", content=text)
    display.flush()
    return display.names[0]


def output_after(display: DisplayRecorder, result: str) -> str:
    """The output of the row after this result of the tool."""
    display.feed("tool_end", tool_id="c", name="build", result=result, agent_depth=0)
    display.close()
    return item_text(next(item for item in display.items if item["type"] == "function_call_output"))


def test_label_of_a_running_call_is_the_last_line_that_is_not_blank() -> None:
    display = display_with_running_call()
    assert label_after(display, "\n \n") == "build"
    assert label_after(display, "one\n", "two\n\n  \n") == "build · two"
    assert label_after(display, "thr", "ee") == "build · three"
    assert label_after(display, "\r10%\r20%") == "build · 20%"


def test_label_is_sent_once_per_flush() -> None:
    display = display_with_running_call()
    display.flush()
    for number in range(1000):
        display.feed("tool_output", tool_id="c", stream="stdout", content=f"line {number}\n")
    assert [chunk["item"]["name"] for chunk in display.flush() if isinstance(chunk, dict)] == ["build · line 999"]


def test_approval_replaces_the_label_with_earlier_output() -> None:
    display = display_with_running_call()
    display.feed("tool_output", tool_id="c", stream="stdout", content="line\n")
    display.feed("approval", tool_id="c", name="build", state="requested", args={})
    display.flush()
    assert display.names == ["build · waiting for approval"]


def test_long_output_is_processed_in_linear_time_and_truncated() -> None:
    display, start = display_with_running_call(), time.thread_time()
    for number in range(0, 50_000, 100):
        label_after(display, *(f"{line:050}\n" for line in range(number, number + 100)))
    text = output_after(display, "done")
    assert time.thread_time() - start < 20
    assert text.startswith(f"{0:050}\n{1:050}\n")
    assert text.endswith(f"{49_999:050}\n\ndone")
    assert "characters are left out here" in text
    assert len(text) < 101_000


@pytest.mark.asyncio(loop_scope="module")
async def test_long_output_of_a_server_is_truncated_in_the_chat(server: FrameServer) -> None:
    lines = [{"tool_id": "c", "stream": "stdout", "content": f"{number:050}\n"} for number in range(40_000)]
    frames: list[Json] = [{"type": "tool_start", "data": {"tool_id": "c", "name": "build", "args": {}}}]
    frames += [{"type": "tool_output", "data": line} for line in lines]
    frames += [{"type": "tool_end", "data": {"tool_id": "c", "name": "build", "result": "ok"}}, {"type": "done"}]
    server.set_payloads(*map(json.dumps, frames))
    output = await asyncio.wait_for(Chat(server.url).send("go"), DEADLINE)
    assert len(output.rows["build"]) < 101_000


def test_output_that_the_result_contains_is_not_repeated() -> None:
    display = display_with_running_call()
    label_after(display, "one\n", "two\n")
    assert output_after(display, "Output:\none\ntwo\nLast value: 3") == "Output:\none\ntwo\nLast value: 3"


@pytest.mark.parametrize("length", [99_999, 100_000, 100_001, 150_001, 400_000])
def test_long_output_that_the_result_contains_is_not_repeated(length: int) -> None:
    display, text = display_with_running_call(), "".join(f"{number}\n" for number in range(length))[:length]
    for start in range(0, length, 7000):
        display.feed("tool_output", tool_id="c", stream="stdout", content=text[start : start + 7000])
    assert output_after(display, text) == text


@pytest.mark.parametrize("sizes", [(1,), (100_001,), (50_000, 50_000), (30_000, 30_000, 90_000, 1), (250_000, 3)])
def test_tool_output_is_complete_or_says_how_much_is_omitted(sizes: tuple[int, ...]) -> None:
    tool_output = pipe_module().ToolOutput()
    complete = ""
    for number, size in enumerate(sizes):
        text = chr(ord("a") + number) * size
        tool_output.add(text)
        complete += text
    if len(complete) <= 100_000:
        assert tool_output.text == complete
    else:
        note = f"\n… ({len(complete) - 100_000:,} characters are left out here)\n"
        assert tool_output.text == complete[:50_000] + note + complete[-50_000:]


# The block of `collapse`, which is sent completely with each change


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def add_step(display: DisplayRecorder, number: int) -> None:
    call = {"tool_id": f"c{number}", "name": "search", "agent_depth": 0}
    display.feed("tool_start", args={}, **call)
    display.feed("tool_end", result="x" * 200, **call)


def json_length(chunks: list[Chunk]) -> int:
    return len(json.dumps(chunks))


def test_block_with_many_steps_is_sent_a_limited_number_of_times() -> None:
    clock = Clock()
    display = DisplayRecorder("collapse", clock)
    for number in range(2000):
        add_step(display, number)
        clock.now += 0.04
        display.flush()
    display.close()
    final = json_length([display.items[0]])
    assert "Execution Steps (2000 tools)" in item_text(display.items[0])
    assert json_length(display.chunks) < 100 * final
    assert len(display.chunks) < 200


def test_block_has_the_first_step_at_once_and_the_next_after_half_a_second() -> None:
    clock = Clock()
    display = DisplayRecorder("collapse", clock)
    add_step(display, 1)
    display.flush()
    add_step(display, 2)
    display.flush()
    assert "(1 tool)" in item_text(display.items[0])
    clock.now += 0.5
    display.flush()
    assert "(2 tools)" in item_text(display.items[0])


def test_large_block_is_sent_less_often() -> None:
    clock = Clock()
    display = DisplayRecorder("collapse", clock)
    for number in range(2000):
        add_step(display, number)
    display.flush()
    add_step(display, 2000)
    clock.now += 0.6
    display.flush()
    assert "(2000 tools)" in item_text(display.items[0])
    clock.now += 3
    display.flush()
    assert "(2001 tools)" in item_text(display.items[0])


def test_preview_in_the_block_omits_leading_blank_lines() -> None:
    display = DisplayRecorder("collapse")
    display.feed("tool_end", result="\n" * 300 + "Bees.", tool_id="c", name="look", agent_depth=0)
    display.close()
    assert "**🔧 look:** Bees.\n" in item_text(display.items[0])


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<u>x</u> a < b <@ann>", "<|u>x<|/u> a < b <|@ann>"),
        ("[4, 8] rows[3] [^1] [x] []", "[|4, 8] rows[|3] [|^1] [x] []"),
        ("{{user}} {{{x}}} {a}", "{|{user}} {|{|{x}}} {a}"),
        (r"\begin{equation} \(x", r"\\|begin{equation} \\|(x"),
        ("![](y) [a][b] **c**", r"![]|(y) [a]|[b] \*\*c\*\*"),
    ],
)
def test_escaped_line_has_zero_width_spaces_inside_of_markup(text: str, escaped: str) -> None:
    assert pipe_module().escape_line(text) == html.escape(escaped.replace("|", "\u200b"), quote=False)
