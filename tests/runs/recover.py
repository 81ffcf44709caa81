"""What a server does at its start with what the last one left, without a server."""

from limelight.events import Terminal
from limelight.models import Run
from limelight.runs.recovery import seal_orphans
from limelight.runs.seal import seal
from limelight.stores.base import Store

RESULT_MAX = 1_000_000


async def recover(store: Store) -> int:
    """Seal all runs that nobody holds."""

    async def seal_it(run: Run, terminal: Terminal) -> bool:
        return await seal(store, run, terminal, RESULT_MAX) is not None

    return await seal_orphans(store, seal_it)
