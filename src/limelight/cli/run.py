"""`limelight run "…"`: ask an agent and watch it work. Ctrl-C stops the run."""

import asyncio
import signal
import sys
from typing import Annotated

import typer

from limelight.cli.drawing import AsJson, Plain, drawing, exit_code
from limelight.cli.server import Url, client_or_own_server
from limelight.client import Client, Run
from limelight.events import Terminal, terminal_of


def run(
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    agent: Annotated[str | None, typer.Option(help="Which agent.  [default: the server's default]")] = None,
    session: Annotated[str | None, typer.Option(help="Session to go on with.  [default: a new one]")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="TARGET", help="Serve this for the one run: module:name or file.py:name."),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Ask an agent and watch it work. Exit code: 0 finished, 1 failed, 3 stopped.

    Without --url it talks to the usual server if one answers, and otherwise starts one for itself.
    """
    text = sys.stdin.read() if question == "-" else question
    terminal = asyncio.run(_run(text, agent, session, target or [], url, as_json, plain))
    raise typer.Exit(exit_code(terminal))


async def _run(
    text: str, agent: str | None, session: str | None, targets: list[str], url: str | None, as_json: bool, plain: bool
) -> Terminal | None:
    terminal: Terminal | None = None
    async with client_or_own_server(url, targets) as client:
        started = await client.start(text, agent=agent, session_id=session)
        with drawing(as_json, plain) as show, _stopping(client, started):
            async for record in started:
                show(record)
                terminal = terminal_of(record.event) or terminal
    return terminal


class _stopping:
    """Ctrl-C asks the server to stop the run, and the view goes on to its end; a second one leaves at once."""

    def __init__(self, client: Client, run: Run) -> None:
        self._client = client
        self._run = run
        self._task: asyncio.Task[str] | None = None

    def __enter__(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._stop)

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _stop(self) -> None:
        if self._task is not None:
            raise KeyboardInterrupt
        sys.stderr.write("\nStopping the run …\n")
        self._task = asyncio.ensure_future(self._client.cancel(self._run.run_id, "stopped with Ctrl-C"))
