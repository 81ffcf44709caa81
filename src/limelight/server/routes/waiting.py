"""Requests that wait for their session, and are stopped before they begin."""

from limelight.events import Record, RunCancelled, RunStarted
from limelight.runs.requests import Waiting
from limelight.runs.viewer import Format


def stopped_frames(format_: Format, waiting: Waiting, why: str) -> bytes:
    """It never became a run: its stream says so, and there is nothing in the log."""
    encoder = format_.encoder()
    events = (RunStarted(agent=waiting.request.agent.name), RunCancelled(reason=why))
    return b"".join(encoder.unnumbered(Record(0, waiting.run_id, 0, event)) for event in events)
