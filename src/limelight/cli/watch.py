"""`limelight watch SESSION`: shows all runs of a session live; with --decide, asks for decisions on approvals."""

import asyncio
from contextlib import suppress
from typing import Annotated

import typer

from limelight.cli.approval_dialogue import ApprovalQueue, Decide, ask_person
from limelight.cli.options import JsonRecords, Plain, Url, User
from limelight.cli.output import RunView, open_view
from limelight.cli.server_choice import client_of
from limelight.cli.terminal_input import is_interactive
from limelight.client import Client
from limelight.errors import SetupError
from limelight.events import TERMINAL_TYPES, Record


def watch(
    session: Annotated[str, typer.Argument(help="The session's id; `limelight sessions` lists them.")],
    after: Annotated[int, typer.Option(help="Start after this Record; 0 is the beginning.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="Exit when the newest run has ended.")] = False,
    decide: Annotated[bool, typer.Option("--decide", help="Ask me to decide approval requests.")] = False,
    url: Url = None,
    user: User = "",
    as_json: JsonRecords = False,
    plain: Plain = False,
) -> None:
    """Show a session live from its beginning. Continues after lost connections and server restarts; Ctrl-C exits."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(client_of(url, user), session, after, once, decide, as_json, plain))


async def _watch(
    server: Client, session: str, after: int, once: bool, decide: bool, as_json: bool, plain: bool
) -> None:
    async with server as client:
        last = (await client.session(session)).last_seq
        with open_view(as_json, plain) as view:
            async with ApprovalQueue(_decider(client, decide, view)) as approvals:
                async for record in client.watch(session, after=after):
                    if isinstance(record, Record):
                        view.show(record)
                        approvals.feed(record, decide=record.seq >= last)
                        if once and record.seq >= last and isinstance(record.event, TERMINAL_TYPES):
                            return


def _decider(client: Client, decide: bool, view: RunView) -> Decide:
    if not decide:
        return _ignore
    if view.live is None or not is_interactive():
        raise SetupError("--decide needs a terminal; elsewhere `limelight approve RUN` decides")
    return ask_person(client, view.live)


async def _ignore(_: object) -> None:
    """Leave an approval request undecided. Used by `limelight watch` without --decide."""
