"""Sealing: a run that nobody holds is ended in the place of the process that is gone.

It is taken over, its log is read through the grammar, whatever is open is closed, and a terminal event follows. It
must not know why: recovery seals what a crash cut off, sessions seal what somebody stops.
"""

from collections.abc import Sequence
from contextlib import suppress

from limelight.errors import BadEvent
from limelight.events import Record, RunStarted, Terminal
from limelight.grammar import Grammar, reason_to_close
from limelight.ids import now_ms
from limelight.models import Append, Run, state_after
from limelight.runs.metrics import UNCOUNTED, Measures, commit
from limelight.runs.retry import patiently
from limelight.runs.run_metrics import Meter
from limelight.runs.truncation import fit
from limelight.stores.base import Store

LEASE_MS = 30_000
"""How long a process may be silent before others take its runs over."""


async def seal(
    store: Store, run: Run, terminal: Terminal, result_max: int, measures: Measures = UNCOUNTED
) -> Sequence[Record] | None:
    """Take a run over and end it. Returns what was written, or None if somebody holds the run."""
    now = now_ms()
    if not await store.take_over(run.run_id, until=now + LEASE_MS, now=now):
        return None

    async def write() -> Sequence[Record]:
        append = await _sealing(store, run, terminal, result_max)
        await commit(store, [append], measures)
        Meter(run.agent, measures).committed(append)
        return append.records

    return await patiently(write)  # nobody else will do it now


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
