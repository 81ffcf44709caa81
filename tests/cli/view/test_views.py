"""How runs look in a terminal: plain lines against golden files, the live view on a recorded screen, hostile text."""

import io
import os
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from limelight.cli.view.live import LiveView, Moving
from limelight.cli.view.main_argument import telling_argument
from limelight.cli.view.plain import PlainView
from limelight.cli.view.sanitize import one_line, safe
from limelight.cli.view.state import took
from limelight.events import (
    AgentStarted,
    AnyEvent,
    Record,
    RunStarted,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolStarted,
)

RUNS = Path(__file__).parents[2] / "dialects" / "golden"
GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in RUNS.glob("*.jsonl"))
HOSTILE = "red\x1b[31m \x1b]0;title\x07 back\x08 over\rwritten \x9b2J \u202eturned\u2069\x7f"


def records_of(name: str) -> list[Record]:
    return [msgspec.json.decode(line, type=Record) for line in (RUNS / f"{name}.jsonl").read_bytes().splitlines()]


def plain(records: list[Record]) -> str:
    view = PlainView()
    return "".join(f"{line}\n" for record in records for line in view.feed(record))


def live(records: list[Record]) -> str:
    """All that the live view leaves on a screen of 100 columns."""
    screen = io.StringIO()
    with LiveView(Console(file=screen, force_terminal=True, width=100, height=40, color_system=None)) as view:
        for record in records:
            view.feed(record)
    return screen.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_plain_lines_are_the_golden_ones(name: str) -> None:
    found, path = plain(records_of(name)), GOLDEN / f"{name}.txt"
    if os.environ.get("LIMELIGHT_GOLDEN") == "write":
        path.write_text(found)
    assert found == path.read_text()


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_live_view_shows_what_the_plain_one_says(name: str) -> None:
    records = records_of(name)
    screen = live(records)
    for record in records:
        if isinstance(record.event, ToolStarted):
            assert record.event.name in screen
    assert plain(records).splitlines()[-1][:60] in screen


def moving(records: list[Record], width: int = 60, height: int = 20) -> list[str]:
    """The part of the screen that moves, as it is after these Records."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)
    view = LiveView(console, moving=False)
    for record in records:
        view.feed(record)
    lines = console.render_lines(Moving(view), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def numbered(*events: AnyEvent) -> list[Record]:
    return [Record(n, "run", n, event) for n, event in enumerate(events, start=1)]


def test_what_is_printed_moves_no_more() -> None:
    said = (RunStarted(agent="a"), TextDelta(message_id="m", text="Starting."), TextFinished(message_id="m"))
    assert "Starting." in moving(numbered(*said))[0]
    lines = moving(numbered(*said, ToolStarted(call_id="1", name="sleep", args={})))
    assert [line[2:] for line in lines if line] == ["sleep", "working"]


def test_of_a_long_text_the_end_is_seen() -> None:
    text = " ".join(f"w{number}" for number in range(1500))
    lines = moving(numbered(RunStarted(agent="a"), TextDelta(message_id="m", text=text)))
    assert any("w1499" in line for line in lines)
    assert "working" in lines[-1] or "working" in lines[-2]
    assert len(lines) <= 20
    assert all(len(line) <= 60 for line in lines)


def test_helpers_side_by_side_are_told_apart() -> None:
    events: list[AnyEvent] = [RunStarted(agent="a")]
    for name in ("alpha", "beta"):
        events += [AgentStarted(agent_id=name, name=name), TextDelta(agent_id=name, message_id=name, text="hm " * 40)]
        events.append(ToolStarted(agent_id=name, call_id=name, name="search", args={"q": "x" * 100}))
    lines = moving(numbered(*events), height=40)
    for name in ("alpha", "beta"):
        assert any(line.startswith(f"  {name}: hm") for line in lines)
        assert sum(f"{name}: search xxx" in line for line in lines) == 1
    assert all(line.startswith("  ") or line[:1] in "▸⠋ " or line[2:] == "working" for line in lines if line)


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    events = [
        RunStarted(agent=HOSTILE, input=HOSTILE),
        ToolStarted(call_id="1", name=HOSTILE, args={HOSTILE: HOSTILE}),
        ToolFinished(call_id="1", result=HOSTILE, error=HOSTILE),
        TextDelta(message_id="m", text=HOSTILE),
        TextFinished(message_id="m"),
    ]
    records = [Record(n, "run", n, event) for n, event in enumerate(events, start=1)]
    for line in plain(records).splitlines():
        assert line.isprintable(), repr(line)
    screen = live(records)
    for sequence in ("\x1b[31m", "\x1b]0", "\x07", "\x08", "\x9b", "\u202e"):
        assert sequence not in screen
    assert "␛[31m" in screen


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\tb\nc", "a\tb\nc"), ("a\r\nb\rc", "a\nb\nc"), ("\x00\x1b\x7f", "␀␛␡"), ("\x9b\u202e", "\\u009b\\u202e")],
)
def test_control_characters_are_shown(text: str, expected: str) -> None:
    assert safe(text) == expected


def test_one_line_is_short_and_one_line() -> None:
    assert one_line("a\n  b\tc", 10) == "a b c"
    assert one_line("x" * 100, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (None, ""),
        ({}, ""),
        ("not json", "not json"),
        ({"limit": 3, "path": "a.txt"}, "a.txt"),
        ({"words": ["bees", "honey"]}, "bees honey"),
        ({"a": {"b": 1}}, '{"b":1}'),
        ({"todos": [{"content": "Look", "status": "completed"}, {"content": "Tell"}]}, "Look, Tell"),
        ({"path": "a.txt", "content": "much"}, "a.txt"),
        ({"query": "", "n": 5}, "5"),
    ],
)
def test_the_argument_that_matters(args: dict[str, object] | str | None, expected: str) -> None:
    assert telling_argument(args) == expected


@pytest.mark.parametrize(
    ("ms", "expected"), [(None, ""), (0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (61_000, "1 min 1 s")]
)
def test_durations_are_for_people(ms: int | None, expected: str) -> None:
    assert took(ms) == expected
