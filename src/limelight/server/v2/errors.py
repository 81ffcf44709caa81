"""What a client is told of an error: ours in the words of this API, others by the id under which the log has them."""

import logging

import msgspec

from limelight.errors import LimelightError, RequestError, SessionBusy
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.runs.queue import StoppedInQueue
from limelight.server.v2.replies import Error

log = logging.getLogger(__name__)


def error_of(error: Exception, request_id: str = "") -> Error:
    """The frame for it. One that nobody expected is logged here."""
    told = Error(message=_message(error), error_code=error.code if isinstance(error, LimelightError) else "internal")
    told.request_id = request_id or msgspec.UNSET
    if isinstance(error, LimelightError):
        told.retry_after = error.retry_after or msgspec.UNSET
    if isinstance(error, SessionBusy):
        told.run_id = error.run_id or msgspec.UNSET
    elif isinstance(error, StoppedInQueue):
        told.error_code = SessionBusy.code
    return told


def _message(error: Exception) -> str:
    match error:
        case SessionBusy():
            return "Session is already processing a query"
        case StoppedInQueue():
            return "Query was stopped while it waited"
        case RequestError():
            return error.detail
        case LimelightError():
            return f"Processing error: {error.detail}"
        case _:
            error_id = sortable_id("err_")
            log.error("a socket broke, %s", error_id, exc_info=error, extra=log_fields(error_id=error_id))
            return f"Processing error: something broke here; the server's log has the details under {error_id}"
