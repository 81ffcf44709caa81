"""The lifecycle of the agents of a server: opens and closes their sources, and provides the resources they use."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

from limelight.config import Settings
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent
from limelight.understudy.server import Understudy

log = logging.getLogger(__name__)
CLOSE_SECONDS = 3
"""Time limit for closing the source of one agent."""


class ServerResources:
    """What a server shares among its agents: the data folder, and the offline model (the understudy)."""

    def __init__(self, data: Path, pace_seconds: float = 0) -> None:
        self.data = data
        self._pace_seconds = pace_seconds
        self._lock = asyncio.Lock()
        self._understudy: Understudy | None = None
        self._stack = AsyncExitStack()

    async def understudy(self) -> tuple[str, str]:
        """Return the base URL and the key of the offline model. The first call starts it."""
        async with self._lock:
            if self._understudy is None:
                self._understudy = await self._stack.enter_async_context(Understudy(pace=self._pace_seconds))
        return self._understudy.base_url, self._understudy.key

    async def close(self) -> None:
        await self._stack.aclose()


class AgentLifecycle:
    """Opens and closes the sources of all agents."""

    def __init__(self, agents: Iterable[Agent], settings: Settings) -> None:
        self._agents = agents
        self._settings = settings
        self._resources: ServerResources | None = None
        self._opened: list[Agent] = []

    async def open(self) -> None:
        """Open the sources of all agents concurrently. Raises the first error after all have opened or failed.

        If a later request can open the source of an agent again, its error is only logged, unless no agent could be
        opened.
        """
        self._resources = resources = self._make_resources()
        agents = list(self._agents)
        results = await asyncio.gather(*(self._open(agent, resources) for agent in agents), return_exceptions=True)
        errors = [(agent, error) for agent, error in zip(agents, results, strict=True) if error is not None]
        final = [error for agent, error in errors if not agent.source.failed]
        if final or (errors and len(errors) == len(agents)):
            raise final[0] if final else errors[0][1]
        for agent, error in errors:
            self._opened.append(agent)  # to close it if a request opens it
            log.error("agent %s: %s; the next request to it opens it again", agent.name, error)

    def _make_resources(self) -> ServerResources:
        """Create the data folder, and return the resources for agents. Raises SetupError.

        Nothing else creates the folder, so a data folder that is moved while the server runs is not replaced by an
        empty one.
        """
        data = Path(self._settings.store.data)
        try:
            data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            detail = f"the data folder {data} cannot be created ({error.strerror}): choose another with --data"
            raise SetupError(detail) from error
        return ServerResources(data, self._settings.understudy.pace_ms / 1000)

    async def _open(self, agent: Agent, resources: ServerResources) -> None:
        await agent.source.open(resources)
        self._opened.append(agent)

    async def close(self) -> None:
        """Close the sources of all agents, then the resources that they use. Errors of sources are logged."""
        if self._resources is None:
            return
        await asyncio.gather(*map(self._close, self._opened))
        self._opened.clear()
        await self._resources.close()
        self._resources = None

    async def _close(self, agent: Agent) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await agent.source.close()
        except Exception as error:  # continue with the other agents
            log.warning("agent %s could not be closed: %r", agent.name, error)
