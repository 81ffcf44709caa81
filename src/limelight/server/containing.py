"""What an agent's code must not do to the server: end it. `exit()` in a tool ends the run of that agent.

In a thread SystemExit and KeyboardInterrupt would go through the event loop and end everybody's runs. Here they become
errors of the agent before the loop sees them.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from limelight.errors import AgentFailed

P = ParamSpec("P")
T = TypeVar("T")


class AgentThreads(ThreadPoolExecutor):
    """Threads for the tools of agents."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        def contained() -> T:
            try:
                return fn(*args, **kwargs)
            except (SystemExit, KeyboardInterrupt) as error:
                raise AgentFailed(f"{type(error).__name__}: {error}") from error

        return super().submit(contained)
