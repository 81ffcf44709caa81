"""Status lines about approvals, for wires whose documented types have no frame for an approval."""

from typing import NamedTuple

from limelight.events import ApprovalRequested, ApprovalResolved

WAITING = "Waiting for approval"


class ApprovalStatus(NamedTuple):
    """The status line after an approval event: a label, and the approval that the label is about."""

    label: str
    subject: ApprovalRequested
    request: ApprovalRequested
    """The approval that the event belongs to. It is not the subject if another approval still waits."""


class Approvals:
    """The open approvals of one run."""

    def __init__(self) -> None:
        self._open: dict[str, ApprovalRequested] = {}

    def feed(self, event: ApprovalRequested | ApprovalResolved) -> ApprovalStatus:
        """Take the event in. After a decision the line names the newest approval that still waits, if there is one."""
        if isinstance(event, ApprovalRequested):
            self._open[event.approval_id] = event
            return ApprovalStatus(WAITING, event, event)
        request = self._open.pop(event.approval_id)
        waiting = next(reversed(self._open.values()), None)
        if waiting is not None:
            return ApprovalStatus(WAITING, waiting, request)
        return ApprovalStatus(_outcome(event), request, request)


def _outcome(event: ApprovalResolved) -> str:
    """The server rejects an approval when its time runs out, and when its run or its agent ends before a decision."""
    match event.decision:
        case "approve":
            return "Approved"
        case "edit":
            return "Approved with changes"
        case "reject" if event.by != "system":
            return "Rejected"
        case "reject":
            return "Approval expired" if event.reason == "expired" else "Approval withdrawn"
