"""The SQLite store: one database file, one writer thread, two reader threads. The class is `store.SqliteStore`."""

from limelight.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
