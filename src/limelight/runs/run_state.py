"""What a terminal event means for its run: the state that it leaves. Pure.

The engine asks for the runs that it has, sealing for those that nobody has any more.
"""

from limelight.events import RunCancelled, RunFailed, RunFinished, Terminal
from limelight.stores.base import RunState


def state_after(terminal: Terminal) -> RunState:
    match terminal:
        case RunFinished():
            return "finished"
        case RunFailed():
            return "failed"
        case RunCancelled():
            return "cancelled"
