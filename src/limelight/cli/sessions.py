"""`limelight sessions`: list the sessions of a server."""

import asyncio
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from limelight.cli.options import JsonLines, Url, User
from limelight.cli.output import local_time, print_json, table_lines
from limelight.cli.server_choice import client_of
from limelight.cli.view.sanitize import one_line
from limelight.client import Client, SessionInfo
from limelight.client.client import SessionState

COLUMNS = ("SESSION", "STATE", "TURNS", "ACTIVE", "TITLE")


def sessions(
    q: Annotated[str, typer.Option("--search", "-q", help="Only titles that contain this.")] = "",
    state: Annotated[SessionState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    url: Url = None,
    user: User = "",
    as_json: JsonLines = False,
) -> None:
    """List sessions, last active first."""
    found = asyncio.run(_sessions(client_of(url, user), q, state, limit))
    if as_json:
        for session in found:
            print_json(session)
        return
    if not found:
        typer.echo("There are no sessions.")
        return
    rows = [_row(session) for session in found]
    if sys.stdout.isatty():
        Console().print(_table(rows))
    else:
        typer.echo("\n".join(table_lines(COLUMNS, rows)))


async def _sessions(server: Client, q: str, state: SessionState | None, limit: int) -> list[SessionInfo]:
    found: list[SessionInfo] = []
    async with server as client:
        async for session in client.sessions(q=q, state=state):
            found.append(session)
            if len(found) >= limit:
                break
    return found


def _state(session: SessionInfo) -> str:
    """The state of the session, or `waiting` if its run waits for an approval."""
    return "waiting" if session.run_state == "waiting" else session.state


def _row(session: SessionInfo) -> list[str]:
    title = one_line(session.title, 60)
    return [session.session_id, _state(session), str(session.turns), local_time(session.active_at), title]


def _table(rows: list[list[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in COLUMNS:
        table.add_column(name, no_wrap=name != "TITLE", justify="right" if name == "TURNS" else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
