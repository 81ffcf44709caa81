"""The copy of the user's agent that each conversation has, which keeps its memory between turns.

A copy has its own memory, monitor, state, executor and managed agents. It shares the model and the tools with the
original, which is not changed. A copy prints nothing.
"""

# pyright: reportMissingTypeStubs=false

import copy
from collections.abc import Sequence
from types import MethodType
from typing import Any, cast

from rich.console import Console
from smolagents.local_python_executor import LocalPythonExecutor
from smolagents.monitoring import AgentLogger, LogLevel

from limelight.errors import SetupError
from limelight.messages import Message
from limelight.sandbox.interpreter import ObservedState
from limelight.sandbox.sandbox import Sandbox
from limelight.sources.image_budget import ImageLease
from limelight.sources.smolagents.history import note_step, steps_of
from limelight.sources.smolagents.memory import memory_bytes, shrink
from limelight.sources.smolagents.sandboxed_executor import LOST_VARIABLES, SandboxedExecutor

CUT_OFF = "This task was broken off here, before it was finished."
"""The note that the agent's memory gets after a turn that was stopped or failed."""


class Conversation:
    """One conversation, with its own copy of the agent.

    It is created in the thread of a turn, because copying takes time.
    """

    def __init__(
        self, target: Any, lease: ImageLease, history: Sequence[Message] = (), sandbox: Sandbox | None = None
    ) -> None:
        """Copy the agent, with this history, whose images belong to the `lease` of the turn.

        Its code runs in the `sandbox`, if there is one.
        """
        self._target = target
        self._sandbox = sandbox
        self._agent = copy_agent(target, sandbox=sandbox)
        self._abandoned: Any = None
        self.held_bytes = 0
        """Approximate memory that the conversation holds between turns; set by `shrink`."""
        if history:
            self._agent.memory.steps = steps_of(history, getattr(target, "code_block_tags", None), lease)

    def agent(self) -> Any:
        """Return the agent for the next turn. Must be called in the thread of the turn.

        After `abandon`, this is a new copy with the memory and the variables of the abandoned agent.
        """
        if self._abandoned is not None:
            old, self._abandoned = self._abandoned, None
            steps, self._agent = self._agent.memory.steps, copy_agent(self._target, sandbox=self._sandbox)
            self._agent.memory.steps = steps
            _copy_variables(old, self._agent)
        return self._agent

    def repair(self) -> None:
        """Repair the agent's memory after a turn without an answer.

        A last step without a result is removed, and a note is added.
        """
        steps = self._agent.memory.steps
        last = steps[-1] if steps else None
        if last is None:
            return
        output = None
        if type(last).__name__ == "ActionStep" and last.error is None and last.observations is None:
            steps.pop()
            output = last.model_output
        lost = getattr(self._agent, "python_executor", None)
        note = f"{CUT_OFF} {LOST_VARIABLES}" if isinstance(lost, SandboxedExecutor) and lost.is_lost else CUT_OFF
        steps.append(note_step(note, output, len(steps)))

    def abandon(self) -> None:
        """Discard the agent, because a thread of the last turn still uses it. The next turn uses a new copy."""
        self._abandoned, self._agent = self._agent, copy.copy(self._agent)
        self._agent.memory = copy.copy(self._agent.memory)
        self._agent.memory.steps = list(self._agent.memory.steps)
        self.repair()

    def shrink(self) -> None:
        """Make the agent's memory small until the next turn, and measure it. Must be called in a thread: it is slow."""
        agents = [agent for agent in (self._agent, self._abandoned) if agent is not None]
        for agent in agents:
            shrink(agent)
        self.held_bytes = sum(map(memory_bytes, agents))

    @property
    def has_worker(self) -> bool:
        """Whether a sandboxed process with the variables of the agent's code is running."""
        executor = getattr(self._agent, "python_executor", None)
        return isinstance(executor, SandboxedExecutor) and executor.has_worker

    def pause(self) -> None:
        """Pause the sandboxed code of the agent and of its managed agents until the next turn."""
        for executor in sandboxed_executors(self._agent):
            executor.pause()

    def kill_code(self) -> None:
        """Kill the sandboxes of the agent and of its managed agents, also while a turn uses them."""
        for executor in sandboxed_executors(self._agent):
            executor.cleanup()

    def close(self) -> None:
        """Release what the conversation uses outside of this process, such as its sandbox or a container."""
        clean_up(self._agent)


def _copy_variables(old: Any, new: Any) -> None:
    """Copy an agent's state, and the variables of its code, to another agent.

    Functions are not copied, because they refer to the old state.
    """
    new.state.update(old.state)
    if isinstance(getattr(old, "python_executor", None), SandboxedExecutor):
        new.python_executor = old.python_executor
        return
    variables = getattr(getattr(old, "python_executor", None), "state", None)
    if isinstance(variables, ObservedState):
        values = {name: value for name, value in dict(variables).items() if not callable(value)}
        new.python_executor.state.update(values)


def sandboxed_executors(agent: Any) -> list[SandboxedExecutor]:
    """Return the executors of an agent and of its managed agents whose code runs in a sandbox."""
    executor = getattr(agent, "python_executor", None)
    managed = [found for one in agent.managed_agents.values() for found in sandboxed_executors(one)]
    return [executor, *managed] if isinstance(executor, SandboxedExecutor) else managed


def clean_up(agent: Any) -> None:
    """Release the resources of the executors of an agent and of its managed agents."""
    cleanup = getattr(getattr(agent, "python_executor", None), "cleanup", None)
    if callable(cleanup):
        cleanup()
    for managed in agent.managed_agents.values():
        clean_up(managed)


def copy_agent(agent: Any, copies: dict[int, Any] | None = None, sandbox: Sandbox | None = None) -> Any:
    """Return a copy of an agent with an empty memory, whose code runs in the `sandbox`, if there is one.

    `copies` contains the copies made so far, by the `id()` of the original, because agents may share a managed agent.
    """
    copies = {} if copies is None else copies
    if id(agent) in copies:
        return copies[id(agent)]
    copied = copies[id(agent)] = copy.copy(agent)
    attributes = cast("dict[str, Any]", vars(agent))
    for name, value in attributes.items():  # including attributes of subclasses
        if type(value) in (dict, list, set):
            setattr(copied, name, copy.copy(value))
    copied.logger = AgentLogger(level=LogLevel.OFF, console=Console(quiet=True))
    copied.memory = copy.copy(agent.memory)
    copied.memory.steps = []
    copied.monitor = copy.copy(agent.monitor)
    copied.monitor.logger = copied.logger
    copied.monitor.reset()
    copied.step_callbacks = _copy_callbacks(agent, copied)
    copied.managed_agents = {
        name: copy_agent(managed, copies, sandbox) for name, managed in agent.managed_agents.items()
    }
    if getattr(agent, "python_executor", None) is not None:
        copied.python_executor = _copy_executor(agent, copied, sandbox)
    return copied


def _copy_callbacks(agent: Any, copied: Any) -> Any:
    """Return a copy of the agent's callbacks, with methods of the agent or its monitor bound to their copies."""
    owners = {id(agent): copied, id(agent.monitor): copied.monitor}
    registry = copy.copy(agent.step_callbacks)
    registry._callbacks = {
        kind: [_rebound(callback, owners) for callback in callbacks]
        for kind, callbacks in agent.step_callbacks._callbacks.items()
    }
    return registry


def _rebound(callback: Any, owners: dict[int, Any]) -> Any:
    owner = owners.get(id(getattr(callback, "__self__", None)))
    return callback if owner is None else MethodType(callback.__func__, owner)


def _copy_executor(agent: Any, copied: Any, sandbox: Sandbox | None) -> Any:
    executor = agent.python_executor
    if isinstance(executor, SandboxedExecutor):
        return executor.copy()
    if isinstance(executor, LocalPythonExecutor) and sandbox is not None:
        return SandboxedExecutor(sandbox, executor)
    if isinstance(executor, LocalPythonExecutor):
        fresh = copy.copy(executor)
        fresh.state = ObservedState({"__name__": "__main__"})
        fresh.custom_tools = {}
        fresh.static_tools = None
        return fresh
    if agent.executor_type != "local":
        return copied.create_python_executor()
    try:
        return copy.deepcopy(executor)
    except Exception as error:
        kind = type(executor).__name__
        raise SetupError(
            f"each conversation needs an executor of its own, and a {kind} cannot be copied ({error}): "
            f"give {kind} a __deepcopy__, or use executor_type"
        ) from error
