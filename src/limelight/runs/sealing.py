"""Sealing: a run that nobody holds is ended in the place of the process that is gone.

It is taken over, its log is read through the grammar, whatever is open is closed, and a terminal event follows. It
must not know why: recovery seals what a crash cut off, sessions seal what somebody stops.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from limelight.errors import BadEvent, StoreUnavailable
from limelight.events import Record, RunStarted, Terminal
from limelight.grammar import Grammar
from limelight.log_context import ids
from limelight.runs.committer import RETRY_SECONDS
from limelight.runs.endings import reason_to_close, state_after
from limelight.runs.fitting import fit
from limelight.runs.ids import now_ms
from limelight.runs.measures import UNCOUNTED, Measures, commit
from limelight.runs.meter import Meter
from limelight.stores.base import Append, Run, Store

log = logging.getLogger(__name__)
LEASE_MS = 30_000
"""How long a process may be silent before others take its runs over."""


async def seal(
    store: Store, run: Run, terminal: Terminal, result_max: int, measures: Measures = UNCOUNTED
) -> Sequence[Record] | None:
    """Take a run over and end it. Returns what was written, or None if somebody holds the run."""
    now = now_ms()
    if not await store.take_over(run.run_id, until=now + LEASE_MS, now=now):
        return None
    tries = 0
    while True:  # nobody else will do it now, so a store that fails is tried again
        try:
            append = await _sealing(store, run, terminal, result_max)
            await commit(store, [append], measures)
            Meter(run.agent, measures).committed(append)
            return append.records
        except StoreUnavailable as error:
            about = ids(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent)
            log.error("run %s cannot be sealed, trying again: %s", run.run_id, error, extra=about)
            await asyncio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
            tries += 1


async def _sealing(store: Store, run: Run, terminal: Terminal, result_max: int) -> Append:
    """The Records that end a run properly."""
    grammar = Grammar()
    last_seq, last_at = run.first_seq - 1, run.started_at
    while records := await store.records(run.ref, after=last_seq, limit=512):
        for record in records:
            with suppress(BadEvent):  # another version's grammar let it through; the run is sealed all the same
                grammar.check(record.event)
        last_seq, last_at = records[-1].seq, records[-1].at
    begin = [] if grammar.started else [RunStarted(agent=run.agent, turn=run.turn)]
    events = (*begin, *grammar.closing(reason_to_close(terminal)), terminal)
    at = max(now_ms(), last_at)
    fitted = [fit(event, run.run_id, result_max) for event in events]
    sealing = [event for part in fitted for event in part.events]
    return Append(
        run_id=run.run_id,
        records=[Record(last_seq + n, run.run_id, at, event) for n, event in enumerate(sealing, start=1)],
        results=[result for part in fitted for result in part.results],
        state=state_after(terminal),
    )
