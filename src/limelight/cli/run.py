"""`limelight run "…"`: ask an agent, watch it work, decide its approval requests. Ctrl-C stops the run."""

import asyncio
import signal
import sys
from typing import Annotated

import typer

from limelight.cli.approval_dialogue import ApprovalQueue, ApproveMode, Decide, ask_person, decide_all, print_command
from limelight.cli.options import JsonRecords, Plain, Url
from limelight.cli.output import exit_code, open_view
from limelight.cli.server_choice import client_or_own_server
from limelight.cli.terminal_input import is_interactive
from limelight.cli.view.live import LiveView
from limelight.client import Client, ClientError, Run
from limelight.events import Terminal, terminal_of

CANCEL_SECONDS = 3
"""Time limit for the response to the cancel request, counted from the end of the run."""


def run(
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    agent: Annotated[str | None, typer.Option(help="Which agent.  [default: the server's default]")] = None,
    session: Annotated[str | None, typer.Option(help="Session to continue.  [default: a new one]")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="TARGET", help="Serve this agent for this run only: module:name or file.py:name."),
    ] = None,
    approve: Annotated[
        ApproveMode, typer.Option(help="How approval requests are decided: ask me, approve all, or approve none.")
    ] = "ask",
    url: Url = None,
    as_json: JsonRecords = False,
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
    approve: ApproveMode,
    url: str | None,
    as_json: bool,
    plain: bool,
) -> Terminal | None:
    terminal: Terminal | None = None
    async with client_or_own_server(url, targets, agent) as client:
        started = await client.start(text, agent=agent, session_id=session)
        with open_view(as_json, plain) as view:
            async with CancelOnInterrupt(started), ApprovalQueue(_decider(client, approve, view.live)) as approvals:
                async for record in started:
                    view.show(record)
                    approvals.feed(record)
                    terminal = terminal_of(record.event) or terminal
    return terminal


def _decider(client: Client, mode: ApproveMode, live: LiveView | None) -> Decide:
    if mode != "ask":
        return decide_all(client, mode)
    return print_command(client) if live is None or not is_interactive() else ask_person(client, live)


class CancelOnInterrupt:
    """Handler of Ctrl-C. The first Ctrl-C cancels the run, whose end is still shown; the second exits at once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._cancelling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()

        def on_signal(*_: object) -> None:
            loop.call_soon_threadsafe(self._interrupt)

        # Not loop.add_signal_handler, because the handler is replaced while an editor runs.
        self._previous = signal.signal(signal.SIGINT, on_signal)

    async def __aexit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._previous)
        if self._cancelling is not None:
            await asyncio.wait({self._cancelling}, timeout=CANCEL_SECONDS)
            self._cancelling.cancel()

    def _interrupt(self) -> None:
        if self._cancelling is not None:
            raise KeyboardInterrupt
        sys.stderr.write("Stopping the run …\n")
        self._cancelling = asyncio.create_task(self._cancel())

    async def _cancel(self) -> None:
        try:
            await self._run.cancel("stopped with Ctrl-C")
        except ClientError as error:
            sys.stderr.write(f"The run could not be stopped: {error.detail}\n")
