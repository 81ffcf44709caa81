"""The SQLite store: one file, one writer thread, two reader threads. `store` has the class."""

from limelight.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
