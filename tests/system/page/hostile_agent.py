"""An agent that puts hostile text wherever an agent can put text.

Whatever runs would set `window.pwned` or open a dialog; whatever is fetched would go to `evil.invalid`.
"""

from collections.abc import AsyncIterator
from typing import Any

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    FinalAnswer,
    Plan,
    ReasoningDelta,
    ReasoningFinished,
    SourceCited,
    Status,
    TextDelta,
    TextFinished,
    Todo,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from limelight.sources.base import FileMade

RUN = "window.pwned=1;alert(1)"
TAG = f'<img src=x onerror="{RUN}">'
SCRIPT = f"<script>{RUN}</script>"
LINK = f'<a href="javascript:{RUN}">x</a>'
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}">{SCRIPT}{LINK}</svg>'
TURN = "\u202eevil\u2066"
ESCAPES = (
    "\x1b]0;pwned title\x07\x1b]8;;http://evil.invalid/osc\x07a link\x1b]8;;\x07"
    "\x1b]52;c;cHduZWQ=\x07\x1b]1337;File=inline=1:AAAA\x07\x1bP+q544e\x1b\\\x1b[2J\x1b[?1049h\x1b[6n\x9b31m\x00\x08"
)
MARKDOWN = f"""
# Title {TAG}

{TAG} {SCRIPT} {SVG} {TURN}

[a script link](javascript:{RUN}) [a data link](data:text/html,{SCRIPT.replace(" ", "")}) [tabbed](java\tscript:{RUN})
[vb](vbscript:{RUN}) <javascript:{RUN}> [relative](/docs) [elsewhere](http://evil.invalid/click) [ref][r]

[r]: javascript:{RUN}

![a remote pixel](http://evil.invalid/pixel.png) ![protocol relative](//evil.invalid/relative.png)
![script image](javascript:{RUN})

<iframe src="http://evil.invalid/frame"></iframe><link rel=stylesheet href="http://evil.invalid/a.css">
<style>body {{ background: url(http://evil.invalid/style.png) }}</style><base href="http://evil.invalid/">
<form action="http://evil.invalid/form"><input name=x autofocus onfocus="{RUN}"></form><object data="{RUN}"></object>

$\\href{{javascript:{RUN}}}{{formula}}$ $\\includegraphics{{http://evil.invalid/formula.png}}$
$\\htmlStyle{{background:url(http://evil.invalid/h.png)}}{{y}}$ $\\url{{javascript:{RUN}}}$

```html
{SCRIPT}
```

| {TAG} | b |
|---|---|
| {SCRIPT} | [x](javascript:{RUN}) |
"""
ALL = f"{TAG} {SCRIPT} {SVG} {ESCAPES} {TURN} [x](javascript:{RUN})"


async def hostile(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Tries to run a script in the browser."""
    if "crash" in messages[-1].text:
        yield ToolStarted(call_id="c", name="steer", args={})
        raise ValueError(ALL)
    yield Status(text=ALL)
    yield ReasoningDelta(message_id="r", text=MARKDOWN)
    yield ReasoningFinished(message_id="r")
    yield Plan(text=MARKDOWN)
    yield Plan(items=(Todo(ALL, "in_progress"), Todo(TAG)))
    yield ToolStarted(
        call_id="t1", name=f"tool {TAG}{TURN}", args={TAG: SCRIPT, "path": ALL, "nested": [SVG, {"a": TAG}]}
    )
    yield ToolOutputDelta(call_id="t1", text=ALL + "\n")
    yield ToolFinished(call_id="t1", result=ALL)
    yield ToolStarted(call_id="t2", name="broken", args={"url": f"javascript:{RUN}"})
    yield ToolFinished(call_id="t2", result="", error=ALL)
    yield ToolStarted(call_id="t3", name="as_json", args={})
    yield ToolFinished(call_id="t3", result={TAG: [SCRIPT, SVG], "markdown": MARKDOWN})
    yield ToolStarted(call_id="t4", name="python", args={"code": f"# {ALL}\nprint('{TAG}')"})
    yield ToolOutputDelta(call_id="t4", text=f"{ESCAPES}\x1b[31mpainted\x1b[0m {SCRIPT}\n")
    yield ToolOutputDelta(call_id="t4", text=ALL + "\n", stream="stderr")
    yield ToolFinished(call_id="t4", result=ALL)
    yield ToolStarted(call_id="t5", name="task", args={"task": ALL})
    yield AgentStarted(agent_id="a", name=f"agent {ALL}", call_id="t5")
    yield TextDelta(agent_id="a", message_id="m", text=MARKDOWN)
    yield TextFinished(agent_id="a", message_id="m")
    yield AgentFinished(agent_id="a", error=ALL)
    yield ToolFinished(call_id="t5", result=MARKDOWN)
    yield FileMade(name=f"{TAG}{TURN}.svg", data=SVG.encode(), media_type="image/svg+xml")
    yield FileMade(name=f"{TAG}.html", data=f"<html>{SCRIPT}".encode(), media_type="text/html")
    yield FileMade(name="table.csv", data=f"{TAG},{SCRIPT}\n=cmd(),2\n".encode(), media_type="text/csv")
    yield FileMade(name="page.md", data=MARKDOWN.encode(), media_type="text/markdown")
    yield SourceCited(title=ALL, url=f"javascript:{RUN}", text=ALL)
    yield ToolStarted(call_id="t6", name=f"ask {TAG}", args={"command": ALL})
    await ctx.approve(f"ask {TAG}", {"command": ALL, TAG: SVG}, call_id="t6")
    yield ToolFinished(call_id="t6", result=ALL)
    yield FinalAnswer(title=ALL, content=MARKDOWN, sources=(f"javascript:{RUN}", "http://evil.invalid/source", ALL))
