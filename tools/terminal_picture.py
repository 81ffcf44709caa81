"""Draws docs/pictures/run.svg: a real run of the default agent, as `limelight run` shows it in a terminal.

.venv/bin/python tools/terminal_picture.py
"""

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from limelight.cli.view.live_view import LiveView
from limelight.config import load_settings
from limelight.events import Record
from limelight.messages import Message
from limelight.models import SessionRef, User
from limelight.runs.queries import records_of
from limelight.runs.sessions import QueuedRun, Request
from limelight.server.app import create_app
from limelight.server.runtime import Runtime

QUESTION = "What do bees do in winter?"
PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "run.svg"


async def run_agent() -> list[Record]:
    """Run the default agent once, and return the Records of the run."""
    with tempfile.TemporaryDirectory() as data:
        runtime: Runtime = create_app(load_settings(environ={}, overrides={("store", "data"): data})).state.runtime
        await runtime.start()
        request = Request(
            agent=runtime.agents.default,
            ref=SessionRef("local", "picture"),
            user=User("local"),
            messages=[Message(role="user", content=QUESTION)],
        )
        begun = await runtime.sessions.begin(QueuedRun.of(request))
        live = runtime.control.live_run(begun.run.run_id)
        if live is not None:
            await live.task
        run = await runtime.store.run(begun.run.run_id)
        records = [record async for record in records_of(runtime.store, run)] if run else []
        await runtime.stop()
        return records


def main() -> None:
    console = Console(record=True, width=96, force_terminal=True, file=io.StringIO())
    console.print(f'[bold]$[/bold] limelight run "{QUESTION}"')
    view = LiveView(console)
    for record in asyncio.run(run_agent()):
        view.feed(record)
    svg = console.export_svg(title="limelight run")
    PICTURE.write_text(re.sub(r"@font-face {.*?}\s*", "", svg, flags=re.DOTALL))  # do not load fonts from the network


if __name__ == "__main__":
    main()
