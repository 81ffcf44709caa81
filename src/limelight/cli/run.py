"""`limelight run "…"`: ask an agent, watch it work, decide what it may do. Ctrl-C stops the run."""

import asyncio
import sys
from typing import Annotated

import typer

from limelight.cli.approvals.dialogue import Asking
from limelight.cli.approvals.keyboard import somebody_is_there
from limelight.cli.approvals.queue import Approve, Decide, Desk, decide_all, tell
from limelight.cli.interrupt import Stopping
from limelight.cli.output import AsJson, Plain, drawing, exit_code
from limelight.cli.server_choice import Url, client_or_own_server
from limelight.cli.view.live import LiveView
from limelight.client import Client
from limelight.events import Terminal, terminal_of


def run(
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    agent: Annotated[str | None, typer.Option(help="Which agent.  [default: the server's default]")] = None,
    session: Annotated[str | None, typer.Option(help="Session to go on with.  [default: a new one]")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="TARGET", help="Serve this for the one run: module:name or file.py:name."),
    ] = None,
    approve: Annotated[
        Approve, typer.Option(help="What the agent asks leave for: ask me, approve all, or approve none of it.")
    ] = "ask",
    url: Url = None,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Ask an agent and watch it work. Exit code: 0 finished, 1 failed, 3 stopped.

    Without --url it talks to the usual server if one answers, and otherwise starts one for itself.
    """
    text = sys.stdin.read() if question == "-" else question
    terminal = asyncio.run(_run(text, agent, session, target or [], approve, url, as_json, plain))
    raise typer.Exit(exit_code(terminal))


async def _run(
    text: str,
    agent: str | None,
    session: str | None,
    targets: list[str],
    approve: Approve,
    url: str | None,
    as_json: bool,
    plain: bool,
) -> Terminal | None:
    terminal: Terminal | None = None
    async with client_or_own_server(url, targets, agent) as client:
        started = await client.start(text, agent=agent, session_id=session)
        with drawing(as_json, plain) as drawn:
            async with Stopping(started), Desk(_deciding(client, approve, drawn.live)) as desk:
                async for record in started:
                    drawn.show(record)
                    desk.take(record)
                    terminal = terminal_of(record.event) or terminal
    return terminal


def _deciding(client: Client, approve: Approve, live: LiveView | None) -> Decide:
    if approve != "ask":
        return decide_all(client, approve)
    return tell(client) if live is None or not somebody_is_there() else Asking(client, live)
