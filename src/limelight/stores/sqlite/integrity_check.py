"""Checks a database for damage after it was opened, in a separate thread, because this would delay a server's start.

SQLite detects damage only in the pages that it reads. So queries of a damaged database may succeed, or return too
little without an error. The start reads only the first row of each table; this check then reads all pages, once. It
does not compare indexes with their tables, which `limelight doctor` does.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable

from limelight.stores.sqlite.faults import is_damage
from limelight.stores.sqlite.snapshots import integrity_error

log = logging.getLogger(__name__)
INTERRUPT_SECONDS = 0.05
"""Pause between two attempts to interrupt the check, because an interrupt before its begin has no effect."""


class IntegrityCheck:
    """The thread that checks a database for damage. If it finds some, it calls `damaged` with a description."""

    def __init__(self, damaged: Callable[[str], None]) -> None:
        self._damaged = damaged
        self._thread: threading.Thread | None = None
        self._db: sqlite3.Connection | None = None

    def start(self, db: sqlite3.Connection) -> None:
        """Start the thread that checks the database. `stop` closes the connection."""
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
