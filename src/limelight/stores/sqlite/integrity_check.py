"""Looks for damage in an open database, in a separate thread, because reading a large file would delay the start.

SQLite detects damage only in the pages that it reads. So a damaged database may answer most queries, and others with
nothing. A start reads the first rows of each table; this check then reads all pages, once. It does not compare the
contents of indexes with their tables, which `limelight doctor` does.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable

from limelight.stores.sqlite.faults import is_damage
from limelight.stores.sqlite.snapshots import integrity_error

log = logging.getLogger(__name__)
INTERRUPT_SECONDS = 0.05
"""Pause between two attempts to interrupt the check. An interrupt has no effect if the check has not begun."""


class IntegrityCheck:
    """The thread that checks a database. It calls `damaged`, with a description, if it finds damage."""

    def __init__(self, damaged: Callable[[str], None]) -> None:
        self._damaged = damaged
        self._thread: threading.Thread | None = None
        self._db: sqlite3.Connection | None = None

    def start(self, db: sqlite3.Connection) -> None:
        """Start the thread. `stop` closes the connection."""
        self._db = db
        self._thread = threading.Thread(target=self._run, args=(db,), name="limelight-sqlite-integrity", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Interrupt the check, wait until the thread has ended, and close the connection."""
        if self._thread is None or self._db is None:
            return
        while self._thread.is_alive():
            self._db.interrupt()
            self._thread.join(INTERRUPT_SECONDS)
        self._db.close()
        self._thread = self._db = None

    def _run(self, db: sqlite3.Connection) -> None:
        try:
            damage = integrity_error(db, quick=True)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):  # the check was interrupted, or the disk cannot be read, which `Health` reports
                log.info("the check of the database has ended early: %s", error)
                return
            damage = str(error)
        if damage:
            self._damaged(damage)
