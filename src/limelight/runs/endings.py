"""What a terminal event means for its run: the state that it leaves, and why what was open is cut off. Pure.

The engine asks for the runs that it has, sealing for those that nobody has any more.
"""

from limelight.events import RunCancelled, RunFailed, RunFinished, Terminal
from limelight.stores.base import RunState

CUT_OFF = "the run ended before this did"


def state_after(terminal: Terminal) -> RunState:
    match terminal:
        case RunFinished():
            return "finished"
        case RunFailed():
            return "failed"
        case RunCancelled():
            return "cancelled"


def reason_to_close(terminal: Terminal) -> str:
    """What the events say that close a run's calls, steps and sub-agents before its end."""
    match terminal:
        case RunFinished():
            return CUT_OFF
        case RunFailed():
            return terminal.message
        case RunCancelled():
            return "stopped"
