"""`limelight approve RUN`: decide an approval request from another terminal or a script."""

import asyncio
import sys
from typing import Annotated, Any

import msgspec
import typer

from limelight.cli.approvals import parse_arguments
from limelight.cli.options import JsonLines, RunId, Url, User
from limelight.cli.output import print_json
from limelight.cli.server_choice import client_of
from limelight.cli.view.render import approval_changes, approval_subject, argument_lines
from limelight.client import ApprovalInfo, Client
from limelight.errors import SetupError
from limelight.events import Decision

DECIDED: dict[Decision, str] = {"approve": "approved", "edit": "approved with changes", "reject": "rejected"}


class DecisionView(msgspec.Struct):
    """A decision, for --json."""

    run_id: str
    approval_id: str
    name: str
    decision: Decision


def approve(
    run_id: RunId,
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
    as_json: JsonLines = False,
) -> None:
    """Approve what an agent asks leave for, or --edit or --reject it. Exit code: 0 decided, 2 not."""
    if sum((edit is not None, reject is not None, only_list)) > 1:
        raise SetupError("--edit, --reject and --list exclude each other")
    if only_list:
        _print(asyncio.run(_open_requests(client_of(url, user), run_id)), as_json)
        return
    args = None if edit is None else _read_arguments(edit)
    decision: Decision = "edit" if args is not None else "approve" if reject is None else "reject"
    request = asyncio.run(_decide(client_of(url, user), run_id, approval_id, decision, args, reject or "", as_json))
    if as_json:
        print_json(DecisionView(run_id, request.approval_id, request.name, decision))
        return
    typer.echo(f"{approval_subject(request.name, request.args).name} {DECIDED[decision]} ({request.approval_id})")
    for line in approval_changes(request.name, request.args, args):
        typer.echo(f"  {line}")


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        return parse_arguments(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise SetupError(f"--edit takes the new arguments. {error}") from error


async def _open_requests(server: Client, run_id: str) -> tuple[ApprovalInfo, ...]:
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
) -> ApprovalInfo:
    async with server as client:
        if approval_id:
            request = await client.approval(run_id, approval_id)
        else:
            request = await _only_request(client, run_id, as_json)
        await client.decide(run_id, request.approval_id, decision, args=args, reason=reason)
        return request


async def _only_request(client: Client, run_id: str, as_json: bool) -> ApprovalInfo:
    run = await client.run(run_id)
    match run.approvals:
        case (request,):
            return request
        case ():
            raise SetupError(f"nothing waits for a decision: {run_id} is {run.state}")
        case several:
            _print(several, as_json)
            raise SetupError(f"{len(several)} questions are open: name one of them behind the run")


def _print(approvals: tuple[ApprovalInfo, ...], as_json: bool) -> None:
    for request in approvals:
        if as_json:
            print_json(request)
            continue
        subject = approval_subject(request.name, request.args)
        typer.echo(f"{request.approval_id}  {subject.title}  ({', '.join(request.decisions)})")
        for lines in argument_lines(subject.args):
            typer.echo("\n".join(f"  {line}" for line in lines))
