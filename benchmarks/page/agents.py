"""The agents of the page benchmark. Most of them take a number from the message, such as `60`."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

from limelight.events import AnyEvent, TextDelta, TextFinished, ToolFinished, ToolOutputDelta, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Context

RATE = 200
"""Default number of tokens a second."""
STEPS_PER_TURN = 4

PROSE = (
    "The quarter was **better** than the last: `north` grew by 4.1 %, and [the report](https://example.org) says it. "
)
WORDS = PROSE.split(" ")
CODE = """```python
def mean(rows: list[dict[str, float]], name: str) -> float:
    # A comment.
    values = [row[name] for row in rows if name in row]
    return sum(values) / len(values) if values else 0.0


for region in ("north", "south", "east"):
    print(region, round(mean(ROWS, region), 2))
```
"""
TABLE = "\n".join(
    [
        "| region | q1 | q2 | q3 | note |",
        "|---|---:|---:|---:|---|",
        *(f"| region {n} | {n * 3} | **{n * 5}** | `{n * 7}` | it grew by {n} % |" for n in range(12)),
        "",
    ]
)
LIST = "\n".join(f"{n}. **Point {n}**: {PROSE.strip()}" for n in range(1, 6)) + "\n"


def long_answer(tokens: int) -> Iterator[str]:
    """Yield a Markdown text of at least this many tokens of four characters, token by token."""
    count = 0
    part = 0
    while count < tokens:
        part += 1
        for text in (f"## Part {part}\n\n", PROSE * 4 + "\n\n", CODE, "\n", TABLE, "\n", LIST, "\n"):
            for token in _tokens(text):
                yield token
                count += 1


def _tokens(text: str) -> Iterator[str]:
    for at in range(0, len(text), 4):
        yield text[at : at + 4]


def step(number: int) -> Iterator[AnyEvent]:
    """Yield the events of two messages of a long session: a text, and a tool call with its result."""
    yield TextDelta(message_id=f"m{number}", text=f"Step {number}: {PROSE}")
    yield TextFinished(message_id=f"m{number}")
    args = {"path": f"reports/q{number % 4}/file-{number}.csv", "limit": number}
    yield ToolStarted(call_id=f"c{number}", name="read_file", args=args)
    if number % 5 == 0:
        yield ToolOutputDelta(call_id=f"c{number}", text=f"reading {number}\n")
    yield ToolFinished(call_id=f"c{number}", result=f"{number} rows, {number * 3} columns; north 4.1, south 3.9")


async def long_run(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Send the number of messages that the user asks for, in one run."""
    for number in range(int(messages[-1].text) // 2):
        for event in step(number):
            yield event
        if number % 50 == 0:
            await asyncio.sleep(0)
    yield f"## Done\n\n{PROSE}\n\n{TABLE}"


async def turn(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Run one turn of a long conversation: ten messages, including the question."""
    for number in range(STEPS_PER_TURN):
        for event in step(number):
            yield event
    yield f"{PROSE * 2}\n\n- one\n- two\n"


async def talker(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Stream words for a number of seconds; `60 20000` sends 20,000 messages first."""
    seconds, _, before = messages[-1].text.partition(" ")
    for number in range(int(before or 0) // 2):
        for event in step(number):
            yield event
    async for number in _paced(int(float(seconds) * RATE)):
        yield WORDS[number % len(WORDS)] + ("\n\n" if number % 120 == 119 else " ")


async def writer(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Stream a Markdown answer with code and tables; `3000 1000` is 3,000 tokens at 1,000 tokens a second."""
    tokens, _, rate = messages[-1].text.partition(" ")
    pieces = list(long_answer(int(tokens)))[: int(tokens)]
    async for number in _paced(len(pieces), int(rate or RATE)):
        yield pieces[number]


async def printer(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Call a tool that prints a number of lines."""
    yield ToolStarted(call_id="p", name="bash", args={"command": "make everything"})
    lines = int(messages[-1].text)
    for first in range(0, lines, 100):
        text = "".join(
            f"\x1b[32m{number:>7}\x1b[0m compiled module {number % 97} of the program\n"
            for number in range(first, min(lines, first + 100))
        )
        yield ToolOutputDelta(call_id="p", text=text)
        await asyncio.sleep(0.005)
    yield ToolFinished(call_id="p", result="done")
    yield "All lines are printed."


async def _paced(count: int, rate: int = RATE) -> AsyncIterator[int]:
    """Yield numbers at an average rate per second, even if the event loop is busy at times."""
    start = time.monotonic()
    for number in range(count):
        wait = start + number / rate - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        yield number
