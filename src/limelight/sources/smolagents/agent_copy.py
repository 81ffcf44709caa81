"""A copy of an agent for one conversation: what an agent changes while it works is its own, the rest is shared.

Memory, monitor, state, executor and managed agents are the copy's own; model and tools are shared with the original,
which stays as it was. The copy prints nothing.
"""

# pyright: reportMissingTypeStubs=false

import copy
from types import MethodType
from typing import Any, cast

from rich.console import Console
from smolagents.local_python_executor import LocalPythonExecutor
from smolagents.monitoring import AgentLogger, LogLevel

from limelight.errors import SetupError
from limelight.sources.smolagents.executor_state import WatchedState


def copy_of(agent: Any, made: dict[int, Any] | None = None) -> Any:
    """A copy with an empty memory. `made` holds the copies so far, as agents may manage the same one."""
    made = {} if made is None else made
    if id(agent) in made:
        return made[id(agent)]
    mine = made[id(agent)] = copy.copy(agent)
    attributes = cast("dict[str, Any]", vars(agent))
    for name, value in attributes.items():  # those of subclasses too
        if type(value) in (dict, list, set):
            setattr(mine, name, copy.copy(value))
    mine.logger = AgentLogger(level=LogLevel.OFF, console=Console(quiet=True))
    mine.memory = copy.copy(agent.memory)
    mine.memory.steps = []
    mine.monitor = copy.copy(agent.monitor)
    mine.monitor.logger = mine.logger
    mine.monitor.reset()
    mine.step_callbacks = _callbacks(agent, mine)
    mine.managed_agents = {name: copy_of(managed, made) for name, managed in agent.managed_agents.items()}
    if getattr(agent, "python_executor", None) is not None:
        mine.python_executor = _executor(agent, mine)
    return mine


def _callbacks(agent: Any, mine: Any) -> Any:
    """The same callbacks; those that are methods of the agent or of its monitor become the copy's."""
    owners = {id(agent): mine, id(agent.monitor): mine.monitor}
    registry = copy.copy(agent.step_callbacks)
    registry._callbacks = {
        kind: [_rebound(callback, owners) for callback in callbacks]
        for kind, callbacks in agent.step_callbacks._callbacks.items()
    }
    return registry


def _rebound(callback: Any, owners: dict[int, Any]) -> Any:
    owner = owners.get(id(getattr(callback, "__self__", None)))
    return callback if owner is None else MethodType(callback.__func__, owner)


def _executor(agent: Any, mine: Any) -> Any:
    executor = agent.python_executor
    if isinstance(executor, LocalPythonExecutor):
        fresh = copy.copy(executor)
        fresh.state = WatchedState({"__name__": "__main__"})
        fresh.custom_tools = {}
        fresh.static_tools = None
        return fresh
    if agent.executor_type != "local":
        return mine.create_python_executor()
    try:
        return copy.deepcopy(executor)
    except Exception as error:
        kind = type(executor).__name__
        raise SetupError(
            f"each conversation needs an executor of its own, and a {kind} cannot be copied ({error}): "
            f"give {kind} a __deepcopy__, or use executor_type"
        ) from error
