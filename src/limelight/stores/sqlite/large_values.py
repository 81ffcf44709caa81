"""The SQL of large results and of files, which are read in parts, so that no reader has all of a value in memory.

Each function reads in one short transaction. A value is stored in rows of up to PART_BYTES (`journal.py`), because
SQLite finds a byte of a long blob only by following the blob from its beginning. Older versions stored a file in one
row. SQLite's incremental I/O reads a part of a row without loading the rest.
"""

import sqlite3
from collections.abc import Sequence

from limelight.models import Artifact, ArtifactInfo, ResultInfo, SessionRef
from limelight.stores.sqlite.journal import part_of
from limelight.stores.sqlite.snapshots import read_transaction


def result_info(db: sqlite3.Connection, run_id: str, key: str) -> ResultInfo | None:
    row = db.execute(
        "SELECT media_type, rowid, length(body) + (SELECT ifnull(sum(length(body)), 0) FROM result_parts p"
        " WHERE p.run_id = r.run_id AND p.key = r.key) FROM results r WHERE run_id = ? AND key = ?",
        (run_id, key),
    ).fetchone()
    return None if row is None else ResultInfo(key=key, media_type=row[0], size=row[2], version=str(row[1]))


def result_part(db: sqlite3.Connection, run_id: str, info: ResultInfo, offset: int, size: int) -> bytes | None:
    with read_transaction(db):
        if result_info(db, run_id, info.key) != info:
            return None
        rows = db.execute(
            "SELECT 'results', rowid, length(body), 0 AS part FROM results WHERE run_id = :run_id AND key = :key"
            " UNION ALL SELECT 'result_parts', rowid, length(body), part FROM result_parts"
            " WHERE run_id = :run_id AND key = :key ORDER BY part",
            {"run_id": run_id, "key": info.key},
        )
        return _read_rows(db, rows.fetchall(), offset, size)


def put_artifact_part(db: sqlite3.Connection, artifact: Artifact, run_id: str, part: int) -> None:
    """Write one of the parts 1, 2, … of a large file. `put_artifact` writes part 0, which makes the file readable."""
    db.execute(
        "INSERT OR REPLACE INTO artifact_parts (artifact_id, part, run_id, body)"
        " SELECT ?, ?, run_id, ? FROM runs WHERE run_id = ?",
        (artifact.artifact_id, part, part_of(artifact.body, part), run_id),
    )


def put_artifact(db: sqlite3.Connection, artifact: Artifact, run_id: str) -> None:
    body = part_of(artifact.body, 0)
    db.execute(
        "INSERT INTO artifacts (artifact_id, session, run_id, name, media_type, body)"
        " SELECT ?, id, ?, ?, ?, ? FROM sessions WHERE owner = ? AND session_id = ?",
        (artifact.artifact_id, run_id, artifact.name, artifact.media_type, body, *artifact.ref),
    )


def artifact(db: sqlite3.Connection, artifact_id: str) -> Artifact | None:
    with read_transaction(db):
        info = artifact_info(db, artifact_id)
        if info is None:
            return None
        body = _read_rows(db, _artifact_rows(db, artifact_id), 0, info.size)
    return Artifact(artifact_id=artifact_id, ref=info.ref, name=info.name, media_type=info.media_type, body=body)


def artifact_info(db: sqlite3.Connection, artifact_id: str) -> ArtifactInfo | None:
    row = db.execute(
        "SELECT s.owner, s.session_id, a.name, a.media_type, length(a.body)"
        " + (SELECT ifnull(sum(length(body)), 0) FROM artifact_parts p WHERE p.artifact_id = a.artifact_id)"
        " FROM artifacts a JOIN sessions s ON s.id = a.session WHERE a.artifact_id = ?",
        (artifact_id,),
    ).fetchone()
    if row is None:
        return None
    owner, session_id, name, media_type, size = row
    ref = SessionRef(owner, session_id)
    return ArtifactInfo(artifact_id=artifact_id, ref=ref, name=name, media_type=media_type, size=size)


def artifact_part(db: sqlite3.Connection, artifact_id: str, offset: int, size: int) -> bytes | None:
    with read_transaction(db):
        rows = _artifact_rows(db, artifact_id)
        return _read_rows(db, rows, offset, size) if rows and rows[0][0] == "artifacts" else None


Row = tuple[str, int, int, int]
"""A database row with a part of a value: the table, the rowid, the length in bytes and the number of the part."""


def _artifact_rows(db: sqlite3.Connection, artifact_id: str) -> list[Row]:
    return db.execute(
        "SELECT 'artifacts', rowid, length(body), 0 AS part FROM artifacts WHERE artifact_id = :id"
        " UNION ALL SELECT 'artifact_parts', rowid, length(body), part FROM artifact_parts WHERE artifact_id = :id"
        " ORDER BY part",
        {"id": artifact_id},
    ).fetchall()


def _read_rows(db: sqlite3.Connection, rows: Sequence[Row], offset: int, size: int) -> bytes:
    """Return up to `size` bytes, from `offset` on, of the value whose parts are in these rows."""
    found: list[bytes] = []
    for table, rowid, length, _ in rows:
        if offset < length and size > 0:
            found.append(_read_body(db, table, rowid, offset, size))
            size -= len(found[-1])
        offset = max(0, offset - length)
    return b"".join(found)


def _read_body(db: sqlite3.Connection, table: str, rowid: int, offset: int, size: int) -> bytes:
    with db.blobopen(table, "body", rowid, readonly=True) as body:
        body.seek(offset)
        return body.read(size)
