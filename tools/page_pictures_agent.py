"""The agent in the screenshots of the code and terminal panes: it runs Python programs and shows their output.

Only `page_pictures` uses it.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

from limelight.events import Plan, Todo, TodoStatus, ToolFinished, ToolOutputDelta, ToolStarted, Usage
from limelight.messages import Message
from limelight.sources.base import Context, Item

LOOK = """\
import random, statistics

random.seed(7)
tides = [2.1 + random.gauss(0, 0.6) for _ in range(180)]
print(len(tides), "tides of half a year")
print("mean   ", round(statistics.mean(tides), 2), "m")
print("highest", round(max(tides), 2), "m")
"""
COMPARE = """\
import random, statistics

random.seed(7)
tides = [2.1 + random.gauss(0, 0.6) for _ in range(180)]
limit = statistics.mean(tides) + 0.08

print("\\033[1mMean tide by month, in metres\\033[0m")
for n, month in enumerate("Jan Feb Mar Apr May Jun".split()):
    mean = statistics.mean(tides[30 * n : 30 * n + 30])
    colour = 31 if mean > limit else 32
    bar = "█" * round(90 * (mean - 1.9))
    print(f"{month}  \\033[{colour}m{bar}\\033[0m {mean:.2f}")
print(f"\\033[2mred: above {limit:.2f}\\033[0m")
"""
ANSWER = """Most months are close to the mean. **May** is not: then the harbour is deeper than usual, and a chart that \
gives only the mean hides it.

**What to do:** plan with the month's own mean, and leave half a metre of room."""
PLAN = ("Read the tides", "Compare the months", "Say what stands out")


async def analyst(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Run two programs and give an answer."""
    for number, program in enumerate((LOOK, COMPARE)):
        yield plan(number)
        async for item in run(f"program{number}", program):
            yield item
    yield plan(2)
    yield Usage(model="analyst", input_tokens=2140, output_tokens=388)
    for word in ANSWER.split(" "):
        yield f"{word} "
        await asyncio.sleep(0.01)
    yield plan(3)


def plan(done: int) -> Plan:
    states: tuple[TodoStatus, ...] = ("completed",) * done + ("in_progress",) + ("pending",) * len(PLAN)
    return Plan(items=tuple(Todo(text, state) for text, state in zip(PLAN, states, strict=False)), update=done > 0)


async def run(call_id: str, program: str) -> AsyncIterator[Item]:
    yield ToolStarted(call_id=call_id, name="run_python", args={"code": program})
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    async for line in process.stdout:
        yield ToolOutputDelta(call_id=call_id, text=line.decode())
    code = await process.wait()
    yield ToolFinished(call_id=call_id, result=f"exit code {code}", error=f"exit code {code}" if code else None)
