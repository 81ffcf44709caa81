"""`limelight watch SESSION`: follow a conversation through its runs, and decide if you want. Leaving stops nothing."""

import asyncio
from contextlib import suppress
from typing import Annotated

import typer

from limelight.cli.approvals.dialogue import Asking
from limelight.cli.approvals.keyboard import somebody_is_there
from limelight.cli.approvals.queue import Decide, Desk
from limelight.cli.output import AsJson, Drawing, Plain, drawing
from limelight.cli.server_choice import Url, User, client_of
from limelight.client import Client
from limelight.errors import SetupError
from limelight.events import TERMINAL_TYPES, Record


def watch(
    session: Annotated[str, typer.Argument(help="The session's id; `limelight sessions` lists them.")],
    after: Annotated[int, typer.Option(help="Begin behind this Record; 0 is the whole conversation.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="Leave when a run has ended.")] = False,
    decide: Annotated[bool, typer.Option("--decide", help="Ask me what the agent asks leave for.")] = False,
    url: Url = None,
    user: User = "",
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Follow a session live, from its beginning, through cuts and restarts of the server. Ctrl-C leaves."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(client_of(url, user), session, after, once, decide, as_json, plain))


async def _watch(
    server: Client, session: str, after: int, once: bool, decide: bool, as_json: bool, plain: bool
) -> None:
    async with server as client:
        last = (await client.session(session)).last_seq
        with drawing(as_json, plain) as drawn:
            async with Desk(_deciding(client, decide, drawn)) as desk:
                async for record in client.watch(session, after=after):
                    if isinstance(record, Record):
                        drawn.show(record)
                        desk.take(record, decide=record.seq >= last)
                        if once and record.seq >= last and isinstance(record.event, TERMINAL_TYPES):
                            return


def _deciding(client: Client, decide: bool, drawn: Drawing) -> Decide:
    if not decide:
        return _leave_it
    if drawn.live is None or not somebody_is_there():
        raise SetupError("--decide needs a terminal; elsewhere `limelight approve RUN` decides")
    return Asking(client, drawn.live)


async def _leave_it(_: object) -> None:
    """The view says that it waits, and for what."""
