"""The writer thread: commits all queued jobs in one transaction (group commit).

A job makes its checks before it writes. So a job that raises a LimelightError has changed nothing, and does not affect
the other jobs of its transaction. If a job raises another error, the transaction is rolled back and each job is
repeated in its own transaction. So a job may be called twice, but the effects of the first call are rolled back. A
transaction has at most one job of each run, because jobs see the in-memory state from before their transaction.
"""

import asyncio
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from limelight.errors import LimelightError, StoreUnavailable
from limelight.stores.sqlite.faults import Health


@dataclass(slots=True)
class Job:
    """A write in the queue of the writer thread: `work` is called in a transaction, `committed` after its commit."""

    work: Callable[[sqlite3.Connection], Any]
    committed: Callable[[Any], None] | None
    runs: frozenset[str]
    future: asyncio.Future[Any]
    retried_by: frozenset[str]
    is_last: bool
    outcome: Any = None
    refusal: Exception | None = None


class Writer:
    """The writer thread, with its own connection. The event loop calls `do` to queue a job and wait for its commit."""

    def __init__(self, committed: Callable[[], None], health: Health) -> None:
        """Create the writer. `committed` is called after each commit, in the writer thread."""
        self._committed = committed
        self._health = health
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._backlog: deque[Job | None] = deque()
        self._thread: threading.Thread | None = None

    def start(self, db: sqlite3.Connection) -> None:
        """Start the writer thread. It uses the connection alone, and closes it."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, args=(db,), name="limelight-sqlite-writer", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    async def stop(self) -> None:
        """Commit the queued jobs, then stop the writer thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join)

    async def do(
        self,
        work: Callable[[sqlite3.Connection], Any],
        committed: Callable[[Any], None] | None = None,
        runs: Iterable[str] = (),
        *,
        retried_by: Iterable[str] = (),
        is_last: bool = True,
    ) -> Any:
        """Run `work` in the next transaction, and return its result after the commit.

        `committed` is called with the result in the writer thread, directly after the commit. `runs` are the runs whose
        data `work` changes; a transaction contains at most one job of each run. `retried_by` are the runs whose callers
        call `do` again after a failure. `is_last` is False if further jobs belong to the same write, as with parts.
        """
        if self._thread is None:
            raise StoreUnavailable("the database is closed")
        future: asyncio.Future[Any] = self._loop.create_future()
        job = Job(work, committed, frozenset(runs), future, frozenset(retried_by), is_last)
        self._jobs.put(job)
        try:
            return await future
        finally:  # else an error, whose traceback has this frame, would form a reference cycle with its future
            del job, future

    def _run(self, db: sqlite3.Connection) -> None:
        while group := self._next_group():
            self._commit(db, group)
            self._loop.call_soon_threadsafe(_resolve, group)
        db.close()

    def _next_group(self) -> list[Job]:
        """Wait for jobs, and return those for the next transaction, at most one for each run; [] to stop the thread."""
        if not self._backlog:
            self._backlog.append(self._jobs.get())
        while not self._jobs.empty():
            self._backlog.append(self._jobs.get())
        group: list[Job] = []
        runs: set[str] = set()
        while self._backlog and (job := self._backlog[0]) is not None and runs.isdisjoint(job.runs):
            group.append(job)
            runs |= job.runs
            self._backlog.popleft()
        return group

    def _commit(self, db: sqlite3.Connection, jobs: list[Job]) -> None:
        retrying = {run for job in jobs for run in job.retried_by}
        if (refusal := self._health.check(retrying)) is not None:
            _refuse(jobs, refusal)
            return
        try:
            _transact(db, jobs)
        except Exception as error:
            with suppress(sqlite3.Error):
                db.rollback()
            # An OperationalError, such as a full disk, concerns all jobs; any other error is caused by one job.
            if len(jobs) > 1 and not isinstance(error, sqlite3.OperationalError):
                for job in jobs:
                    self._commit(db, [job])
                return
            refusal = self._health.write_failed(error, retrying)
            refusal.__cause__ = error
            _refuse(jobs, refusal)
            return
        self._health.write_succeeded({run for job in jobs if job.is_last for run in job.retried_by})
        for job in jobs:
            if job.committed is not None and job.refusal is None:
                job.committed(job.outcome)
        self._committed()


def _transact(db: sqlite3.Connection, jobs: list[Job]) -> None:
    db.execute("BEGIN IMMEDIATE")
    for job in jobs:
        job.refusal = None
        try:
            job.outcome = job.work(db)
        except LimelightError as refusal:
            job.refusal = refusal
    db.execute("COMMIT")


def _refuse(jobs: list[Job], refusal: StoreUnavailable) -> None:
    for job in jobs:
        job.refusal = refusal


def _resolve(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():  # the caller was cancelled
            continue
        if job.refusal is not None:
            job.future.set_exception(job.refusal)
        else:
            job.future.set_result(job.outcome)
