"""`limelight run "…"`: asks an agent, shows its work, and asks for decisions on approvals. Ctrl-C stops the run."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial
from typing import Annotated

import typer

from limelight.cli.approval_dialogue import ApprovalQueue, ApproveMode, Decide, ask_person, decide_all, print_command
from limelight.cli.options import TARGET_HELP, JsonRecords, NoEnvFile, Plain, Url, env_file_override
from limelight.cli.output import RunView, exit_code, is_live, open_view
from limelight.cli.reserved_stdout import reserved_stdout
from limelight.cli.run_input import RunArguments, parse_input, split_context
from limelight.cli.server_choice import client_or_own_server
from limelight.cli.terminal_input import is_interactive
from limelight.cli.view.live_view import LiveView
from limelight.client import Client, ClientError, Run
from limelight.events import Terminal, terminal_of

CANCEL_SECONDS = 3
"""Time for which the command, after the end of the run, still waits for the response to its cancel request."""


def run(
    question: Annotated[
        str | None,
        typer.Argument(help="What to ask; - reads it from standard input. May be left out with --input."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Which agent.  [default: the server's default]")] = None,
    session: Annotated[str | None, typer.Option(help="Session to continue.  [default: a new one]")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="TARGET", help=f"Serve this for this run only: {TARGET_HELP}."),
    ] = None,
    input_json: Annotated[
        str | None,
        typer.Option("--input", metavar="JSON", help="Input object, for an agent that takes one; - reads it."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A value of the agent's context, if it allows that. Repeatable."),
    ] = None,
    approve: Annotated[
        ApproveMode, typer.Option(help="How approval requests are decided: ask me, approve all, or approve none.")
    ] = "ask",
    no_env_file: NoEnvFile = False,
    url: Url = None,
    as_json: JsonRecords = False,
    plain: Plain = False,
) -> None:
    """Ask an agent and watch it work. Exit code: 0 finished, 1 failed, 3 stopped.

    Without --url it uses the default server if that answers, and otherwise starts one for this run, which allows all
    --context. What an agent needs and the options lack is asked for at a terminal.
    """
    if question == "-" and input_json == "-":
        raise typer.BadParameter("only one of the question and --input can be read from standard input")
    text = sys.stdin.read() if question == "-" else question
    arguments = RunArguments(text, parse_input(input_json), split_context(context or []))
    server = client_or_own_server(url, target or [], agent, env_file_override(no_env_file))
    with nullcontext() if is_live(as_json, plain) else reserved_stdout() as stdout:
        view = partial(open_view, as_json, plain, stdout)
        terminal = asyncio.run(_run(arguments, server, agent, session, approve, view))
    raise typer.Exit(exit_code(terminal))


async def _run(
    arguments: RunArguments,
    server: AbstractAsyncContextManager[Client],
    agent: str | None,
    session: str | None,
    approve: ApproveMode,
    view_of_run: Callable[[], AbstractContextManager[RunView]],
) -> Terminal | None:
    terminal: Terminal | None = None
    async with server as client:
        arguments.complete(await client.agents(), agent, is_new=session is None)
        started = await client.start(
            arguments.question,
            agent=agent,
            session_id=session,
            input=arguments.values,
            context=arguments.context or None,
        )
        with view_of_run() as view:
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
    """Handles Ctrl-C: the first one cancels the run and shows how it ends, the second one exits at once."""

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
