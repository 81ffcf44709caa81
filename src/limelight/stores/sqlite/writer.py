"""The one thread that writes: it takes whatever is queued and commits it as one transaction (group commit).

It knows nothing of what the jobs do. A job checks first and writes afterwards, so that one which is refused (it
raises a LimelightError) leaves nothing behind and the others in its transaction go through.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from limelight.errors import LimelightError, StoreUnavailable


@dataclass(slots=True)
class Job:
    """Something to do inside a transaction, and something to do once that is committed."""

    work: Callable[[sqlite3.Connection], Any]
    committed: Callable[[], None] | None
    future: asyncio.Future[Any]
    outcome: Any = None
    refusal: Exception | None = field(default=None)


class Writer:
    """A thread with a connection of its own. `do` queues a job from the event loop and waits for its commit."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="limelight-sqlite-writer", daemon=True)
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """Finish what is queued, then end the thread."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    async def do(self, work: Callable[[sqlite3.Connection], Any], committed: Callable[[], None] | None = None) -> Any:
        """Run `work` in the next transaction; return what it returned once that is committed."""
        job = Job(work, committed, self._loop.create_future())
        self._jobs.put(job)
        return await job.future

    def _run(self) -> None:
        db = self._connect()
        last = False
        while not last:
            jobs: list[Job] = []
            item = self._jobs.get()
            while True:
                if item is None:
                    last = True
                else:
                    jobs.append(item)
                if self._jobs.empty():
                    break
                item = self._jobs.get()
            if jobs:
                self._commit(db, jobs)
        db.close()

    def _commit(self, db: sqlite3.Connection, jobs: list[Job]) -> None:
        try:
            db.execute("BEGIN IMMEDIATE")
            for job in jobs:
                try:
                    job.outcome = job.work(db)
                except LimelightError as refusal:
                    job.refusal = refusal
            db.execute("COMMIT")
        except Exception as error:  # a disk that is full, a file that is gone: all of them wait for better times
            if db.in_transaction:
                db.execute("ROLLBACK")
            for job in jobs:
                job.refusal = StoreUnavailable(f"the database cannot be written: {error}")
        else:
            for job in jobs:
                if job.committed is not None and job.refusal is None:
                    job.committed()
        self._loop.call_soon_threadsafe(_resolve, jobs)


def _resolve(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():  # its waiter was cancelled
            continue
        if job.refusal is not None:
            job.future.set_exception(job.refusal)
        else:
            job.future.set_result(job.outcome)
