"""Recovery: a crash leaves no session stuck.

A run whose process is gone is never run again by itself: it is sealed as `run_failed` with code `interrupted`. Called
at the start, and whenever a lease has run out. The one exception is a run that waits for a person: where its framework
has kept the state, it goes on waiting.
"""

import logging
from collections.abc import Awaitable, Callable

from limelight.errors import Interrupted
from limelight.events import RunFailed, Terminal
from limelight.ids import now_ms, sortable_id
from limelight.log_context import ids
from limelight.models import Run
from limelight.stores.base import Store

log = logging.getLogger(__name__)
MESSAGE = "the server stopped while the run was going on"
Seal = Callable[[Run, Terminal], Awaitable[bool]]
"""Ends a run that nobody holds, in this way. False if somebody holds it."""


async def seal_orphans(store: Store, seal: Seal, spare: Callable[[Run], Awaitable[bool]] | None = None) -> int:
    """Seal every run that nobody holds any more, but for those to `spare`. Returns how many."""
    sealed = 0
    for run in await store.orphans(now_ms()):
        if spare is not None and await spare(run):
            continue
        error_id = sortable_id("err_")
        if await seal(run, RunFailed(code=Interrupted.code, message=MESSAGE, error_id=error_id)):
            sealed += 1
            about = ids(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent, error_id=error_id)
            log.warning("run %s was interrupted, %s; its log is sealed", run.run_id, error_id, extra=about)
    return sealed
