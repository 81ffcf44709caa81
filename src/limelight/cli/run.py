"""`limelight run "…"`: ask an agent and watch it work. Ctrl-C stops the run."""

import asyncio
import signal
import sys
from typing import Annotated

import typer

from limelight.cli.drawing import AsJson, Plain, drawing, exit_code
from limelight.cli.server import Url, client_or_own_server
from limelight.client import Client, ClientError, Run
from limelight.events import Terminal, terminal_of

ANSWER_SECONDS = 3
"""How long the answer to Stop may take once the run has ended."""


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
    async with client_or_own_server(url, targets, agent) as client:
        started = await client.start(text, agent=agent, session_id=session)
        async with _Stopping(client, started):
            with drawing(as_json, plain) as show:
                async for record in started:
                    show(record)
                    terminal = terminal_of(record.event) or terminal
    return terminal


class _Stopping:
    """Ctrl-C asks the server to stop the run, and the view goes on to its end; a second one leaves at once."""

    def __init__(self, client: Client, run: Run) -> None:
        self._client = client
        self._run = run
        self._asking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._stop)

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=ANSWER_SECONDS)
            self._asking.cancel()

    def _stop(self) -> None:
        if self._asking is not None:
            raise KeyboardInterrupt
        sys.stderr.write("Stopping the run …\n")
        self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        try:
            await self._client.cancel(self._run.run_id, "stopped with Ctrl-C")
        except ClientError as error:
            sys.stderr.write(f"The run could not be stopped: {error.detail}\n")
