"""Makes WAL checkpoints in a separate thread: copies pages from the write-ahead log into the database file.

By default, SQLite makes checkpoints within a commit, and all runs would wait while the disk is flushed. If this thread
falls behind by MAX_PAGES, SQLite still does that, which limits the size of the log.
"""

import logging
import sqlite3
import threading

log = logging.getLogger(__name__)
COMMITS = 200
"""Number of commits after which a checkpoint is made. A commit writes about five database pages."""
MAX_PAGES = 16_000
"""Size of the write-ahead log, in pages, at which SQLite makes a checkpoint within a commit: 64 MB."""


class Checkpoints:
    """The thread that makes WAL checkpoints. The writer calls `committed` after each commit."""

    def __init__(self) -> None:
        self._commits = 0
        self._due = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, db: sqlite3.Connection) -> None:
        """Start the thread that makes checkpoints. It uses the connection alone, and closes it."""
        self._thread = threading.Thread(target=self._run, args=(db,), name="limelight-sqlite-checkpoints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread that makes checkpoints, and wait until it has ended."""
        if self._thread is not None:
            self._stopping = True
            self._due.set()
            self._thread.join()
            self._thread = None

    def committed(self) -> None:
        self._commits += 1
        if self._commits >= COMMITS:
            self._commits = 0
            self._due.set()

    def _run(self, db: sqlite3.Connection) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._stopping:
                break
            try:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:  # for example, the disk is full; no data is lost, but the log grows
                log.debug("no checkpoint: %s", error)
        db.close()
