"""Moves what is committed from SQLite's log into the database, in a thread of its own: no commit waits for it.

SQLite itself would do that within a commit now and then, and everybody's would wait while the disk is flushed. If this
one falls far behind, SQLite does it after all, so that the log has an end.
"""

import logging
import sqlite3
import threading

log = logging.getLogger(__name__)
COMMITS = 200
"""After so many it is done; SQLite itself counts pages, about five a commit."""
MAX_PAGES = 16_000
"""Pages of the log with which the writer does it itself: 64 MB."""


class Checkpoints:
    """The thread. The writer tells it of each commit."""

    def __init__(self) -> None:
        self._commits = 0
        self._due = threading.Event()
        self._over = False
        self._thread: threading.Thread | None = None

    def start(self, db: sqlite3.Connection) -> None:
        """Begin; the connection is the thread's from now on."""
        self._thread = threading.Thread(target=self._run, args=(db,), name="limelight-sqlite-checkpoints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, from another one."""
        if self._thread is not None:
            self._over = True
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
            if self._over:
                break
            try:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:  # a full disk, say: the log keeps all of it until there is room
                log.debug("no checkpoint: %s", error)
        db.close()
