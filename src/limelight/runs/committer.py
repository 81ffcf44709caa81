"""Append before deliver, for all runs at once.

Whatever the live runs have written since the last commit becomes one batch; when the store has it, and not before,
viewers get it. A commit costs far more than an event. So what comes after a pause is committed at once, and pieces of
texts that keep coming are committed at the pace at which viewers are woken; whatever else happens does not wait. If
the store fails, in whatever way, the batch is tried again: nothing is skipped and nothing is delivered. Nothing that a
run or a viewer does ends the task. A run with a large result takes long to commit, so it is committed apart: the others
do not wait for it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from limelight.errors import LeaseLost, StoreError
from limelight.events import Record
from limelight.log_context import ids
from limelight.models import Append, Result, SessionRef
from limelight.runs.hub import INTERVAL
from limelight.runs.metrics import UNCOUNTED, Measures, commit
from limelight.runs.retry import is_told, rest
from limelight.stores.base import Store

log = logging.getLogger(__name__)
CROWD = 16
PAUSE_SECONDS = 0.005
"""After a commit of so many runs the next one waits a moment, because each run in a commit costs more than an event."""
LARGE = 256 * 1024
"""Bytes of results with which a run is committed apart."""


class Writing(Protocol):
    """A run as the committer sees it."""

    @property
    def ref(self) -> SessionRef: ...

    def take(self) -> Append:
        """What it has written since the last time."""
        ...

    def committed(self, append: Append) -> None:
        """That is in the log now."""
        ...

    def lost(self) -> None:
        """It may not write any more: somebody else has sealed it."""
        ...


class Committer:
    """One task that feeds the store."""

    def __init__(
        self,
        store: Store,
        publish: Callable[[SessionRef, Sequence[Record]], None],
        measures: Measures = UNCOUNTED,
    ) -> None:
        self._store = store
        self._measures = measures
        self._publish = publish
        self._waiting: dict[int, Writing] = {}
        self._marked = asyncio.Event()
        self._urgent = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failing = False
        """Whether the last try to commit something has failed."""
        self._apart: dict[int, asyncio.Task[None]] = {}
        """Runs that are committed apart now."""
        self._behind: dict[int, Writing] = {}
        """Those of them that have something more to commit, after that."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="limelight-committer")

    async def stop(self) -> None:
        if self._task is not None:
            tasks = [self._task, *self._apart.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def mark(self, run: Writing, *, can_wait: bool = False) -> None:
        """This run has something to commit. If that `can_wait`, it does so while the last commit is still fresh."""
        if id(run) in self._apart:
            self._behind[id(run)] = run
            return
        self._waiting[id(run)] = run
        self._marked.set()
        if not can_wait:
            self._urgent.set()

    async def _run(self) -> None:
        while True:
            await self._marked.wait()
            runs = list(self._waiting.values())
            self._waiting = {}
            self._marked.clear()
            self._urgent.clear()
            work = [part for run in runs for part in _taken(run)]
            for run, append in work:
                if is_large(append.results):
                    self._apart[id(run)] = asyncio.create_task(self._commit_apart(run, append))
            await self._commit([(run, append) for run, append in work if id(run) not in self._apart])
            await self._pause(len(runs))

    async def _commit_apart(self, run: Writing, append: Append) -> None:
        """One run by itself. What it writes meanwhile has to wait, as its Records are in order."""
        await self._commit([(run, append)])
        del self._apart[id(run)]
        if self._behind.pop(id(run), None) is not None:
            self.mark(run)

    async def _pause(self, runs: int) -> None:
        if runs >= CROWD:
            await asyncio.sleep(PAUSE_SECONDS)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL):
                await self._urgent.wait()

    async def _commit(self, work: list[tuple[Writing, Append]]) -> None:
        if not work:
            return
        tries = 0
        while True:
            try:
                await commit(self._store, [append for _, append in work], self._measures)
                break
            except LeaseLost:
                await self._without_lost(work)
                return
            except Exception as error:  # a mistake of ours, too: what is not written is neither shown nor skipped
                if not tries and not is_told(error):
                    odd = not isinstance(error, StoreError)
                    log.error("the log cannot be written, trying again: %s", error, exc_info=odd)
                self.failing = True
                await rest(tries)
                tries += 1
        self.failing = False
        for run, append in work:
            self.show(run.ref, append.records)
            _tell(append, lambda run=run, append=append: run.committed(append))

    def show(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """Deliver what is in the log."""
        try:
            self._publish(ref, records)
        except Exception:  # a dialect that breaks costs its viewers their stream, and the runs nothing
            about = ids(session_id=ref.session_id)
            log.exception("Records of session %s cannot be shown", ref.session_id, extra=about)

    async def _without_lost(self, work: list[tuple[Writing, Append]]) -> None:
        """One of them has lost its lease; write them one by one to find out which."""
        for run, append in work:
            if len(work) == 1:
                about = ids(run_id=append.run_id, session_id=run.ref.session_id)
                log.error("run %s was sealed by another process", append.run_id, extra=about)
                _tell(append, run.lost)
            else:
                await self._commit([(run, append)])


def is_large(results: Sequence[Result]) -> bool:
    """Whether these take so long to write that others should not have to wait for it."""
    return sum(len(result.body) for result in results) > LARGE


def _taken(run: Writing) -> list[tuple[Writing, Append]]:
    """What a run has written; nothing if it breaks, so that the others' is not lost with it."""
    try:
        return [(run, run.take())]
    except Exception:
        about = ids(session_id=run.ref.session_id)
        log.exception("a run of session %s cannot be committed", run.ref.session_id, extra=about)
        return []


def _tell(append: Append, news: Callable[[], None]) -> None:
    try:
        news()
    except Exception:
        about = ids(run_id=append.run_id)
        log.exception("run %s does not know that it was committed", append.run_id, extra=about)
