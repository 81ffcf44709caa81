"""Recovery of a store without a server."""

from typing import NoReturn

from limelight.events import Terminal
from limelight.models import Run
from limelight.runs.agents import Agents
from limelight.runs.recovery import Recovery, seal
from limelight.stores.base import Store
from tests.support.agents import echo
from tests.support.server import offer

RESULT_MAX = 1_000_000


async def recover(store: Store) -> int:
    """Seal all runs that no process holds, as a server whose agents cannot resume does."""

    async def seal_run(run: Run, terminal: Terminal) -> bool:
        return await seal(store, run, terminal, RESULT_MAX) is not None

    def reopen(*_: object) -> NoReturn:
        raise AssertionError("an agent that cannot resume is not reopened")

    return await Recovery(store, Agents([offer(echo, "echo")]), seal_run, reopen).recover()
