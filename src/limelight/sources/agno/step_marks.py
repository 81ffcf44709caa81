"""The marks by which a copied workflow shows in Agno's stream which of its steps starts and ends. Pure.

Agno itself reports no step that fails or is skipped, and its ids of steps are not unique. `workflow_steps` puts a mark
into the stream where an execution of a step starts and where it ends, and tags every event of Agno with the innermost
execution that has sent it. The translator reads both.
"""

from typing import Any

STEP_STARTED = "LimelightStepStarted"
STEP_ENDED = "LimelightStepEnded"
TAG = "limelight_step"
"""Name of the attribute by which an event of Agno refers to the execution that has sent it."""
CARRIED = "limelight_carried"
"""Name of the attribute of an event of Agno that carries a mark, or an event that Agno would not pass on."""
PARALLEL = "Parallel"
LOOP = "Loop"
CONTAINERS = (PARALLEL, LOOP, "Condition", "Router", "Steps")
"""Names of Agno's classes of steps that contain steps."""
FUNCTION = "function"
WORKFLOW = "workflow"


class StepExecution:
    """One execution of a step of a workflow; a step in a loop is executed several times."""

    def __init__(self, name: str, kind: str, executor: str = "", *, is_last: bool = False) -> None:
        self.name = name
        self.kind = kind
        """The name of Agno's class: one of CONTAINERS, or `Step`."""
        self.executor = executor
        """What the step runs: `agent`, `team`, `function` or `workflow`; "" for a container."""
        self.is_last = is_last
        """Whether the step is the last one of the main workflow, so that its result is probably the answer."""
        self.inner_name = ""
        """The name of the workflow that the step runs; "" if it runs something else."""
        self.parent: StepExecution | None = None
        """The execution that contains this one; None if the step belongs to the main workflow."""
        self.output: Any = None
        """Agno's StepOutput; None if there is none."""
        self.error: str | None = None

    @property
    def ancestors(self) -> "list[StepExecution]":
        """The executions that contain this one, innermost first."""
        found: list[StepExecution] = []
        step = self.parent
        while step is not None:
            found.append(step)
            step = step.parent
        return found


class StepMark:
    """An item in Agno's stream that marks the start or the end of an execution."""

    def __init__(self, event: str, step: StepExecution) -> None:
        self.event = event
        self.limelight_step = step


def tag(event: Any, step: StepExecution) -> None:
    """Tag an event that an execution passes on with that execution, unless an inner execution has sent it.

    An execution gets to know its parent here: the parent is the first execution that passes on the mark of its start.
    """
    event = getattr(event, CARRIED, event)
    sender: StepExecution | None = getattr(event, TAG, None)
    if sender is None:
        event.limelight_step = step
    elif event.event == STEP_STARTED and sender.parent is None:
        sender.parent = step
