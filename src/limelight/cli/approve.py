"""`limelight approve RUN`: decides an approval request from another terminal or a script."""

import sys
from typing import Annotated, Any

import typer

from limelight.cli.approval_dialogue import parse_arguments, parse_typed_answer
from limelight.cli.options import JsonLines, RunId, Url, User
from limelight.cli.output import print_json
from limelight.cli.server_choice import sync_client_of
from limelight.cli.view.approval_prompt import numbered_choices
from limelight.cli.view.render import approval_changes, approval_subject, argument_lines, question_lines
from limelight.client import ApprovalInfo, SyncClient
from limelight.errors import SetupError
from limelight.events import RequestedDecision

DECIDED: dict[RequestedDecision, str] = {
    "approve": "approved",
    "edit": "approved with changes",
    "reject": "rejected",
    "respond": "answered",
}


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
    answer: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Answer the question; a form takes a JSON object. - reads standard input."),
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="List the open requests, and decide nothing.")] = False,
    url: Url = None,
    user: User = "",
    as_json: JsonLines = False,
) -> None:
    """Approve, --edit, --reject or --answer the request for which a run waits. Exit code: 0 decided, 2 not decided."""
    if sum((edit is not None, reject is not None, answer is not None, only_list)) > 1:
        raise SetupError("--edit, --reject, --answer and --list exclude each other")
    args = None if edit is None else _read_arguments(edit)
    decision: RequestedDecision = "edit" if args is not None else "approve" if reject is None else "reject"
    with sync_client_of(url, user) as client:
        if only_list:
            _print(client.run(run_id).approvals, as_json)
            return
        request = client.approval(run_id, approval_id) if approval_id else _only_request(client, run_id, as_json)
        if answer is None:
            client.decide(run_id, request.approval_id, decision, args=args, reason=reject or "")
        else:
            decision, args = "respond", {"value": _read_answer(answer, request)}
            client.respond(run_id, request.approval_id, args["value"])
    if as_json:
        print_json({"run_id": run_id, "approval_id": request.approval_id, "name": request.name, "decision": decision})
        return
    subject = approval_subject(request.name, request.args, request.question)
    typer.echo(f"{subject.name} {DECIDED[decision]} ({request.approval_id})")
    for line in approval_changes(request.name, request.args, args, answered=decision == "respond"):
        typer.echo(f"  {line}")


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        return parse_arguments(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise SetupError(f"--edit takes the new arguments. {error}") from error


def _read_answer(text: str, request: ApprovalInfo) -> Any:
    if request.answer_schema is None:
        raise SetupError(f"{request.name} is no question: it takes {', '.join(request.decisions)}")
    try:
        return parse_typed_answer(sys.stdin.read().rstrip("\n") if text == "-" else text, request.answer_schema)
    except ValueError as error:
        raise SetupError(f"--answer does not fit: {error}") from error


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
        subject = approval_subject(request.name, request.args, request.question)
        offered = [*request.decisions, *([] if request.answer_schema is None else ["answer"])]
        typer.echo(f"{request.approval_id}  {subject.title}  ({', '.join(offered)})")
        for line in (*question_lines(subject.question, 200, 100), *numbered_choices(request.answer_schema or {})):
            typer.echo(f"  {line}")
        for lines in argument_lines(subject.args):
            typer.echo("\n".join(f"  {line}" for line in lines))
