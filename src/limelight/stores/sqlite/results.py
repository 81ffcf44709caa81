"""Whole results. A large one is written in parts, so that others' commits need not wait for all of it.

The row in `results` is its beginning, which is written last, with the Records that tell of it: until then there is no
such result.
"""

import sqlite3
from collections.abc import Sequence

from limelight.stores.base import Result

PART_BYTES = 256 * 1024
"""What one transaction takes of a result."""


def result(db: sqlite3.Connection, run_id: str, key: str) -> Result | None:
    found = db.execute(
        "SELECT media_type, body, 0 AS part FROM results WHERE run_id = :run_id AND key = :key"
        " UNION ALL SELECT '', body, part FROM result_parts WHERE run_id = :run_id AND key = :key ORDER BY part",
        {"run_id": run_id, "key": key},
    ).fetchall()
    if not found or found[0][2]:  # parts without their beginning: it is still being written
        return None
    return Result(key=key, media_type=found[0][0], body=b"".join(row[1] for row in found))


def put_results(db: sqlite3.Connection, run_id: str, results: Sequence[Result]) -> None:
    """The beginnings of results, which make them readable. What large ones have behind it, `put_part` has written."""
    db.executemany(
        "INSERT OR REPLACE INTO results (run_id, key, media_type, body) VALUES (?, ?, ?, ?)",
        [(run_id, r.key, r.media_type, r.body[:PART_BYTES]) for r in results],
    )
    db.executemany(
        "DELETE FROM result_parts WHERE run_id = ? AND key = ? AND part > ?",
        [(run_id, r.key, last_part(r)) for r in results],
    )


def put_part(db: sqlite3.Connection, run_id: str, result: Result, part: int) -> None:
    body = memoryview(result.body)[part * PART_BYTES : (part + 1) * PART_BYTES]
    db.execute(
        "INSERT OR REPLACE INTO result_parts (run_id, key, part, body) VALUES (?, ?, ?, ?)",
        (run_id, result.key, part, body),
    )


def last_part(result: Result) -> int:
    """The number of its last part; the beginning is number 0."""
    return max(0, len(result.body) - 1) // PART_BYTES
