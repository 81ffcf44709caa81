"""Recovery of a store without a server."""

from typing import NoReturn

from limelight.runs.agent_registry import Agents
from limelight.runs.committer import Committer
from limelight.runs.engine import Engine
from limelight.runs.limits import RunLimits
from limelight.runs.queue import SessionQueues
from limelight.runs.recovery import Recovery
from limelight.stores.base import Store
from tests.support.agents import echo
from tests.support.server import offer


def engine(store: Store) -> Engine:
    """An engine whose runs have no viewers."""
    committer = Committer(store, lambda ref, records: None, lambda ref: None)
    return Engine(store, committer, RunLimits(result_max=1_000_000))


async def recover(store: Store) -> int:
    """Seal all runs that no process holds, as a server whose agents cannot resume does."""

    def reopen(*_: object) -> NoReturn:
        raise AssertionError("an agent that cannot resume is not reopened")

    return await Recovery(engine(store), SessionQueues(), Agents([offer(echo, "echo")]), reopen).recover()
