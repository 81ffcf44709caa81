"""The one thread that writes: it takes whatever is queued and commits it as one transaction (group commit).

It knows nothing of what the jobs do. A job checks first and writes afterwards, so that one which is refused (it
raises a LimelightError) leaves nothing behind and the others in its transaction go through. A job sees in memory what
was committed before its transaction, so there is one job of a run in each. One that breaks takes nobody with it: the
others are tried again by themselves, so a job may be done twice, the first time to no effect.
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
from limelight.stores.sqlite.health import Health


@dataclass(slots=True)
class Job:
    """Something to do inside a transaction, and something to do once that is committed."""

    work: Callable[[sqlite3.Connection], Any]
    committed: Callable[[], None] | None
    runs: frozenset[str]
    future: asyncio.Future[Any]
    comes_again: frozenset[str]
    is_last: bool
    outcome: Any = None
    refusal: Exception | None = None


class Writer:
    """A thread with a connection of its own. `do` queues a job from the event loop and waits for its commit."""

    def __init__(self, committed: Callable[[], None], health: Health) -> None:
        """`committed` is called after each transaction, in the thread."""
        self._committed = committed
        self._health = health
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._backlog: deque[Job | None] = deque()
        self._thread: threading.Thread | None = None

    def start(self, db: sqlite3.Connection) -> None:
        """Begin to write; the connection is the thread's from now on."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, args=(db,), name="limelight-sqlite-writer", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    async def stop(self) -> None:
        """Finish what is queued, then end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join)

    async def do(
        self,
        work: Callable[[sqlite3.Connection], Any],
        committed: Callable[[], None] | None = None,
        runs: Iterable[str] = (),
        *,
        comes_again: Iterable[str] = (),
        is_last: bool = True,
    ) -> Any:
        """Run `work` in the next transaction; return what it returned once that is committed. `runs`: it is theirs.

        `comes_again`: these runs will try again if it is refused. `is_last`: that is then all that they had to write.
        """
        if self._thread is None:
            raise StoreUnavailable("the database is closed")
        future: asyncio.Future[Any] = self._loop.create_future()
        job = Job(work, committed, frozenset(runs), future, frozenset(comes_again), is_last)
        self._jobs.put(job)
        return await job.future

    def _run(self, db: sqlite3.Connection) -> None:
        while group := self._next_group():
            self._commit(db, group)
            self._loop.call_soon_threadsafe(_resolve, group)
        db.close()

    def _next_group(self) -> list[Job]:
        """What is queued, up to a second job of the same run. Empty if it is time to stop."""
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
        waiting = {run for job in jobs for run in job.comes_again}
        if (refusal := self._health.check(waiting)) is not None:
            _refuse(jobs, refusal)
            return
        try:
            _transact(db, jobs)
        except Exception as error:  # a disk that is full, say: all of them wait for better times
            with suppress(sqlite3.Error):
                db.rollback()
            if len(jobs) > 1 and not isinstance(error, sqlite3.OperationalError):  # one of them is at fault
                for job in jobs:
                    self._commit(db, [job])
                return
            refusal = self._health.failed(error, waiting)
            refusal.__cause__ = error
            _refuse(jobs, refusal)
            return
        self._health.works({run for job in jobs if job.is_last for run in job.comes_again})
        for job in jobs:
            if job.committed is not None and job.refusal is None:
                job.committed()
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
        if job.future.done():  # its waiter was cancelled
            continue
        if job.refusal is not None:
            job.future.set_exception(job.refusal)
        else:
            job.future.set_result(job.outcome)
