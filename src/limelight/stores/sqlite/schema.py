"""The database schema as a list of migrations. Migration N upgrades a database from version N - 1 to version N.

`PRAGMA user_version` holds the version. A released migration is never edited; a change is a new one at the end.
"""

import sqlite3
from pathlib import Path

from limelight.errors import StoreNewer
from limelight.stores.sqlite.snapshots import copy_before_migration

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: somebody may still be reading by it
        owner TEXT NOT NULL,
        session_id TEXT NOT NULL,
        agent TEXT NOT NULL,
        title TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        active_at INTEGER NOT NULL,
        turns INTEGER NOT NULL DEFAULT 0,
        last_seq INTEGER NOT NULL DEFAULT 0,
        run_id TEXT,
        run_state TEXT,
        UNIQUE (owner, session_id)
    );
    CREATE INDEX sessions_by_age ON sessions (active_at);
    CREATE INDEX sessions_by_activity ON sessions (owner, active_at DESC, session_id);

    CREATE TABLE runs (
        run_id TEXT PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (id),
        agent TEXT NOT NULL,
        turn INTEGER NOT NULL,
        state TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        ended_at INTEGER,
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        request_id TEXT,
        error BLOB,
        UNIQUE (session, request_id)
    ) WITHOUT ROWID;
    CREATE INDEX runs_by_seq ON runs (session, last_seq);
    CREATE INDEX runs_by_end ON runs (ended_at);
    CREATE INDEX runs_live ON runs (state) WHERE state IN ('running', 'waiting');

    -- What has been committed and is not yet in a chunk: one row per commit, for all runs. Read only after a crash.
    CREATE TABLE journal (
        page INTEGER PRIMARY KEY,
        body BLOB NOT NULL
    );

    -- The readable log: packed stretches of one run each.
    CREATE TABLE chunks (
        session INTEGER NOT NULL,
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        run_id TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (session, first_seq)
    );
    CREATE INDEX chunks_by_run ON chunks (run_id);

    CREATE TABLE results (
        run_id TEXT NOT NULL,
        key TEXT NOT NULL,
        media_type TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (run_id, key)
    );

    CREATE TABLE artifacts (
        artifact_id TEXT PRIMARY KEY,
        session INTEGER NOT NULL,
        run_id TEXT NOT NULL,
        name TEXT NOT NULL,
        media_type TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX artifacts_by_run ON artifacts (run_id);
    """,
    """
    -- Which state of an agent belongs to a session. A row outlives its session until the agent has forgotten it.
    CREATE TABLE memories (
        key TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        session_id TEXT NOT NULL,
        agent TEXT NOT NULL,
        stale INTEGER NOT NULL DEFAULT 0,
        turns BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX memories_by_session ON memories (owner, session_id, agent);
    CREATE INDEX memories_stale ON memories (stale) WHERE stale;
    """,
    """
    ALTER TABLE sessions ADD COLUMN max_steps INTEGER;
    ALTER TABLE runs ADD COLUMN messages INTEGER;
    """,
    """
    -- What large results have behind the beginning that is in `results`: written before it, piece by piece.
    CREATE TABLE result_parts (
        run_id TEXT NOT NULL,
        key TEXT NOT NULL,
        part INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (run_id, key, part)
    );
    """,
    """
    -- What large files have behind the beginning that is in `artifacts`: SQLite reads a blob only from its beginning.
    CREATE TABLE artifact_parts (
        artifact_id TEXT NOT NULL,
        part INTEGER NOT NULL,
        run_id TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (artifact_id, part)
    );
    CREATE INDEX artifact_parts_by_run ON artifact_parts (run_id);
    """,
)

TABLES = (
    "sessions",
    "runs",
    "journal",
    "chunks",
    "results",
    "artifacts",
    "memories",
    "result_parts",
    "artifact_parts",
)
"""All tables of the newest version."""


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Migrate a database to the newest version, one transaction per migration, after making a copy of an older one."""
    version = version_of(db)
    if version > len(MIGRATIONS):
        raise StoreNewer(
            f"{path} has schema version {version}, this Limelight knows up to {len(MIGRATIONS)}: "
            "upgrade limelight, or choose another folder with --data"
        )
    if 0 < version < len(MIGRATIONS):
        copy_before_migration(db, path, version)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")


def check_tables(db: sqlite3.Connection) -> None:
    """Read the first row of each table. Raises sqlite3.DatabaseError if a table is missing or its beginning damaged."""
    for table in TABLES:
        db.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()


def version_of(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return version


def touch(db: sqlite3.Connection) -> None:
    """Test that a database can be written, by writing a value that does not change."""
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
