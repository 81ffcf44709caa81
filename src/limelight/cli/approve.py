"""`limelight approve RUN`: decide an approval request from another terminal or a script."""

import sys
from typing import Annotated, Any

import msgspec
import typer

from limelight.cli.approval_dialogue import parse_arguments
from limelight.cli.options import JsonLines, RunId, Url, User
from limelight.cli.output import print_json
from limelight.cli.server_choice import sync_client_of
from limelight.cli.view.render import approval_changes, approval_subject, argument_lines
from limelight.client import ApprovalInfo, SyncClient
from limelight.errors import SetupError
from limelight.events import Decision

DECIDED: dict[Decision, str] = {"approve": "approved", "edit": "approved with changes", "reject": "rejected"}


class DecisionView(msgspec.Struct):
    """A decision as `--json` prints it."""

    run_id: str
    approval_id: str
    name: str
    decision: Decision


def approve(
    run_id: RunId,
    approval_id: Annotated[
        str, typer.Argument(metavar="[APPROVAL]", help="Which request; not needed if only one is open.")
    ] = "",
    edit: Annotated[
        str | None, typer.Option(metavar="JSON", help="Approve with these arguments; - reads them from standard input.")
    ] = None,
    reject: Annotated[
        str | None, typer.Option(metavar="REASON", help="Reject with this reason, which may be empty.")
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="List the open requests, and decide nothing.")] = False,
    url: Url = None,
    user: User = "",
    as_json: JsonLines = False,
) -> None:
    """Approve the open request of a run, or --edit or --reject it. Exit code: 0 decided, 2 not."""
    if sum((edit is not None, reject is not None, only_list)) > 1:
        raise SetupError("--edit, --reject and --list exclude each other")
    args = None if edit is None else _read_arguments(edit)
    decision: Decision = "edit" if args is not None else "approve" if reject is None else "reject"
    with sync_client_of(url, user) as client:
        if only_list:
            _print(client.run(run_id).approvals, as_json)
            return
        request = client.approval(run_id, approval_id) if approval_id else _only_request(client, run_id, as_json)
        client.decide(run_id, request.approval_id, decision, args=args, reason=reject or "")
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


def _only_request(client: SyncClient, run_id: str, as_json: bool) -> ApprovalInfo:
    run = client.run(run_id)
    match run.approvals:
        case (request,):
            return request
        case ():
            raise SetupError(f"no approval request is open: {run_id} is {run.state}")
        case several:
            _print(several, as_json)
            raise SetupError(f"{len(several)} requests are open: name one of them after the run")


def _print(approvals: tuple[ApprovalInfo, ...], as_json: bool) -> None:
    for request in approvals:
        if as_json:
            print_json(request)
            continue
        subject = approval_subject(request.name, request.args)
        typer.echo(f"{request.approval_id}  {subject.title}  ({', '.join(request.decisions)})")
        for lines in argument_lines(subject.args):
            typer.echo("\n".join(f"  {line}" for line in lines))
