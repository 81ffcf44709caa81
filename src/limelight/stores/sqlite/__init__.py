"""The embedded store: one SQLite file, one writer thread. `store` is its face."""

from limelight.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
