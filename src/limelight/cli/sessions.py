"""`limelight sessions`: lists the sessions of a server."""

import sys
from itertools import islice
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from limelight.cli.options import JsonLines, Url, User
from limelight.cli.output import local_time, print_json, table_lines
from limelight.cli.server_choice import sync_client_of
from limelight.cli.view.sanitize import one_line
from limelight.client import SessionInfo
from limelight.client.client import SessionState

COLUMNS = ("SESSION", "STATE", "TURNS", "ACTIVE", "TITLE")


def sessions(
    q: Annotated[str, typer.Option("--search", "-q", help="Only sessions whose title contains this.")] = "",
    state: Annotated[SessionState | None, typer.Option(help="Only sessions in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sessions.")] = 50,
    url: Url = None,
    user: User = "",
    as_json: JsonLines = False,
) -> None:
    """List sessions, last active first."""
    with sync_client_of(url, user) as client:
        found = list(islice(client.sessions(q=q, state=state), limit))
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


def _row(session: SessionInfo) -> list[str]:
    state = "waiting" if session.run_state == "waiting" else session.state
    title = one_line(session.title, 60)
    return [session.session_id, state, str(session.turns), local_time(session.active_at), title]


def _table(rows: list[list[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in COLUMNS:
        table.add_column(name, no_wrap=name != "TITLE", justify="right" if name == "TURNS" else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
