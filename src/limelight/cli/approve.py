"""`limelight approve RUN`: decide what an agent may do, from another terminal or a script."""

import asyncio
import sys
from typing import Annotated, Any

import msgspec
import typer

from limelight.cli.answers import json_object
from limelight.cli.server import Url, User, client_of
from limelight.cli.view.arguments import argument_lines
from limelight.cli.view.safe import one_line
from limelight.client import ApprovalInfo, Client
from limelight.errors import SetupError
from limelight.events import Decision

DONE: dict[Decision, str] = {"approve": "approved", "edit": "approved with changes", "reject": "rejected"}


class Decided(msgspec.Struct):
    """What was decided, for --json."""

    run_id: str
    approval_id: str
    name: str
    decision: Decision


def approve(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    approval_id: Annotated[
        str, typer.Argument(metavar="[APPROVAL]", help="Which question; not needed if only one is open.")
    ] = "",
    edit: Annotated[
        str | None, typer.Option(metavar="JSON", help="Approve with these arguments; - reads them from standard input.")
    ] = None,
    reject: Annotated[
        str | None, typer.Option(metavar="REASON", help="Say no, and why; the reason may be empty.")
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="Show what is open, and decide nothing.")] = False,
    url: Url = None,
    user: User = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Approve what an agent asks leave for, or --edit or --reject it. Exit code: 0 decided, 2 not."""
    if sum((edit is not None, reject is not None, only_list)) > 1:
        raise SetupError("--edit, --reject and --list exclude each other")
    if only_list:
        _print(asyncio.run(_open(client_of(url, user), run_id)), as_json)
        return
    args = None if edit is None else _arguments(edit)
    decision: Decision = "edit" if args is not None else "approve" if reject is None else "reject"
    decided = asyncio.run(_decide(client_of(url, user), run_id, approval_id, decision, args, reject or "", as_json))
    said = f"{one_line(decided.name, 60)} {DONE[decision]} ({decided.approval_id})"
    typer.echo(msgspec.json.encode(decided).decode() if as_json else said)


def _arguments(text: str) -> dict[str, Any]:
    try:
        return json_object(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise SetupError(f"--edit takes the new arguments. {error}") from error


async def _open(server: Client, run_id: str) -> tuple[ApprovalInfo, ...]:
    async with server as client:
        return (await client.run(run_id)).approvals


async def _decide(
    server: Client,
    run_id: str,
    approval_id: str,
    decision: Decision,
    args: dict[str, Any] | None,
    reason: str,
    as_json: bool,
) -> Decided:
    async with server as client:
        asked = await client.approval(run_id, approval_id) if approval_id else await _only_one(client, run_id, as_json)
        await client.decide(run_id, asked.approval_id, decision, args=args, reason=reason)
        return Decided(run_id, asked.approval_id, asked.name, decision)


async def _only_one(client: Client, run_id: str, as_json: bool) -> ApprovalInfo:
    run = await client.run(run_id)
    match run.approvals:
        case (asked,):
            return asked
        case ():
            raise SetupError(f"nothing waits for a decision: {run_id} is {run.state}")
        case several:
            _print(several, as_json)
            raise SetupError(f"{len(several)} questions are open: name one of them behind the run")


def _print(approvals: tuple[ApprovalInfo, ...], as_json: bool) -> None:
    for asked in approvals:
        if as_json:
            typer.echo(msgspec.json.encode(asked).decode())
            continue
        typer.echo(f"{asked.approval_id}  {one_line(asked.name, 60)}  ({', '.join(asked.decisions)})")
        for lines in argument_lines(asked.args):
            typer.echo("\n".join(f"  {line}" for line in lines))
