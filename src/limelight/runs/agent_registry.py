"""The registry of the agents that a server offers, by name."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from limelight.errors import SetupError, UnknownAgent
from limelight.sandbox.sandbox import Sandbox
from limelight.sources.base import Source


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent with the settings that the server applies to it."""

    name: str
    source: Source
    title: str
    description: str
    model: str = ""
    """The name of the model, if Limelight and not the user's code has chosen it; `understudy` is the offline model."""
    enable_streaming: bool = True
    """Whether texts, reasoning and arguments are sent in deltas."""
    max_steps: int | None = None
    status: Mapping[str, str] = {}
    """Status texts to show when a tool starts, by tool name."""
    python_tools: tuple[str, ...] = ()
    """Names of the agent's tools that run Python code; () means the default names."""
    workspace: str = ""
    """Path of a folder that all sessions of the agent share; "" means one folder per session."""
    context_from_request: bool | tuple[str, ...] = False
    """Whether requests may set values of the agent's context: all, none, or those with these names."""
    sandbox: Sandbox | None = None
    """The sandbox of an agent that runs code of its model; None if the agent runs none, or runs it in this process."""

    @property
    def is_unconfined(self) -> bool:
        """Whether the agent needs a sandbox, but the sandbox confines nothing."""
        return self.sandbox is not None and self.sandbox.level == "none"


class Agents:
    """The agents that the server offers. The first one is the default."""

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._by_name: dict[str, Agent] = {}
        for agent in agents:
            if agent.name in self._by_name:
                raise SetupError(f"there are two agents named {agent.name!r}: name them apart in config.toml")
            self._by_name[agent.name] = agent
        if not self._by_name:
            raise SetupError("there is no agent to serve: name one, e.g. `limelight serve my_module:agent`")

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._by_name.values())

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def default(self) -> Agent:
        return next(iter(self._by_name.values()))

    def get(self, name: str | None) -> Agent:
        """Return the agent with this name, or the default agent for None. Raises UnknownAgent."""
        if name is None:
            return self.default
        agent = self._by_name.get(name)
        if agent is None:
            known = ", ".join(self._by_name)
            raise UnknownAgent(f"there is no agent {name[:100]!r}; this server has: {known}", path="agent")
        return agent
