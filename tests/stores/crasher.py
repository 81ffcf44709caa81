"""A program that appends to a store and prints what was acknowledged, until it is killed.

`python -m tests.stores.crasher FILE ROUND` prints a line `run seq` for each run of a batch after `append` has returned.
"""

import asyncio
import os
import sys
from pathlib import Path

from limelight.events import RunFinished, TextDelta
from limelight.models import SessionRef
from limelight.stores.sqlite import SqliteStore
from tests.stores.operations import RunWriter, new_run

RUNS = 4


async def main(path: Path, round_: int) -> None:
    store = SqliteStore(path)
    await store.open()
    runs: list[RunWriter] = []
    for turn in range(100_000):
        if len(runs) < RUNS:
            run_id = f"r{round_}-{turn}"
            runs.append(RunWriter(store, (await store.begin(new_run(run_id, SessionRef("ann", run_id)))).run))
        ending = [runs.pop(0)] if turn % 97 == 96 else []
        parts = [run.part(TextDelta(message_id="m1", text=f"{turn} ")) for run in runs[turn % 2 :]]
        parts += [run.part(RunFinished(), state="finished") for run in ending]
        await store.append(parts)
        # One system call, so that the reader never gets an incomplete line.
        os.write(1, "".join(f"{part.run_id} {part.records[-1].seq}\n" for part in parts).encode())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
