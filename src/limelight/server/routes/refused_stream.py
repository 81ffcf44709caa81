"""Requests whose stream has started and whose run never begins: they are stopped or refused before."""

import logging

from limelight.errors import LimelightError
from limelight.events import Record, RunCancelled, RunFailed, RunStarted, Terminal
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.runs.queue import QueuedRun, StoppedInQueue
from limelight.runs.viewer import Format
from limelight.server.sse import sse_framing

log = logging.getLogger(__name__)


def refusal_frames(format_: Format, waiting: QueuedRun, error: BaseException) -> bytes:
    """The frames of a complete stream that ends with the error. They have no ids, because no log has them."""
    encoder = format_.encoder()
    events = (RunStarted(agent=waiting.request.agent.name), _terminal(waiting, error))
    payloads = [payload for event in events for payload in encoder.feed(Record(0, waiting.run_id, 0, event))]
    return sse_framing(format_.event_name).without_ids(payloads)


def _terminal(waiting: QueuedRun, error: BaseException) -> Terminal:
    match error:
        case StoppedInQueue():
            return RunCancelled(reason=str(error))
        case LimelightError():
            return RunFailed(code=error.code, message=error.detail)
        case _:
            error_id = sortable_id("err_")
            about = log_fields(run_id=waiting.run_id, session_id=waiting.ref.session_id, error_id=error_id)
            log.error("run %s cannot begin, %s", waiting.run_id, error_id, exc_info=error, extra=about)
            message = "something broke here; the server's log has the details under the error_id"
            return RunFailed(code=LimelightError.code, message=message, error_id=error_id)
