"""`limelight watch SESSION`: follow a conversation through its runs. Leaving stops nothing."""

import asyncio
from contextlib import suppress
from typing import Annotated

import typer

from limelight.cli.drawing import AsJson, Plain, drawing
from limelight.cli.server import Url, client_of
from limelight.events import TERMINAL_TYPES, Record


def watch(
    session: Annotated[str, typer.Argument(help="The session's id; `limelight sessions` lists them.")],
    after: Annotated[int, typer.Option(help="Begin behind this Record; 0 is the whole conversation.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="Leave when a run has ended.")] = False,
    url: Url = None,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Follow a session live, from its beginning, through cuts and restarts of the server. Ctrl-C leaves."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(session, after, once, url, as_json, plain))


async def _watch(session: str, after: int, once: bool, url: str | None, as_json: bool, plain: bool) -> None:
    async with client_of(url) as client:
        last = (await client.session(session)).last_seq
        with drawing(as_json, plain) as show:
            async for record in client.watch(session, after=after):
                if isinstance(record, Record):
                    show(record)
                    if once and record.seq >= last and isinstance(record.event, TERMINAL_TYPES):
                        return
