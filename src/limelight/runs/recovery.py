"""Recovery: a crash leaves no session stuck.

A run whose process is gone is never run again by itself. Its log is read through the grammar, whatever is open is
closed, and it ends as `run_failed` with code `interrupted`. Called at the start, and whenever a lease has run out. The
one exception is a run that waits for a person: where its framework has kept the state, it goes on waiting.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from limelight.errors import BadEvent, Interrupted, StoreUnavailable
from limelight.events import Record, RunFailed, RunStarted
from limelight.grammar import Grammar
from limelight.runs.committer import RETRY_SECONDS
from limelight.runs.engine import RunLimits
from limelight.runs.fitting import fit
from limelight.runs.ids import now_ms, sortable_id
from limelight.runs.sessions import LEASE_MS
from limelight.stores.base import Append, Run, Store

log = logging.getLogger(__name__)
MESSAGE = "the server stopped while the run was going on"


async def seal_orphans(
    store: Store, result_max: int = RunLimits().result_max, spare: Callable[[Run], Awaitable[bool]] | None = None
) -> int:
    """Seal every run that nobody holds any more, but for those to `spare`. Returns how many."""
    sealed = 0
    now = now_ms()
    for run in await store.orphans(now):
        if spare is not None and await spare(run):
            continue
        if await store.take_over(run.run_id, until=now + LEASE_MS, now=now):
            await _seal(store, run, result_max)
            sealed += 1
            log.warning("run %s was interrupted; its log is sealed", run.run_id)
    return sealed


async def _seal(store: Store, run: Run, result_max: int) -> None:
    """End a run that we have taken over. Nobody else will, so a store that fails is tried again."""
    tries = 0
    while True:
        try:
            await store.append([await _sealing(store, run, result_max)])
            return
        except StoreUnavailable as error:
            log.error("run %s cannot be sealed, trying again: %s", run.run_id, error)
            await asyncio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
            tries += 1


async def _sealing(store: Store, run: Run, result_max: int) -> Append:
    """The Records that end a run properly."""
    grammar = Grammar()
    last_seq, last_at = run.first_seq - 1, run.started_at
    while records := await store.records(run.ref, after=last_seq, limit=512):
        for record in records:
            with suppress(BadEvent):  # another version's grammar let it through; the run is sealed all the same
                grammar.check(record.event)
        last_seq, last_at = records[-1].seq, records[-1].at
    events = [] if grammar.started else [RunStarted(agent=run.agent, turn=run.turn)]
    failed = RunFailed(code=Interrupted.code, message=MESSAGE, error_id=sortable_id("err_"))
    at = max(now_ms(), last_at)
    fitted = [fit(event, run.run_id, result_max) for event in (*events, *grammar.closing(MESSAGE), failed)]
    sealing = [event for part in fitted for event in part.events]
    return Append(
        run_id=run.run_id,
        records=[Record(last_seq + n, run.run_id, at, event) for n, event in enumerate(sealing, start=1)],
        results=[result for part in fitted for result in part.results],
        state="failed",
    )
