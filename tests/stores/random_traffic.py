"""Random operations on a store with many runs, in batches and concurrently, and the expected content of the store."""

import asyncio
from random import Random

from limelight.events import Record, RunFinished
from limelight.models import Append, Result, RunState, SessionRef
from limelight.stores.base import Store
from tests.stores.operations import RunWriter, new_run, read_all, tokens


class Traffic:
    """Makes a few calls per step; `check` compares a store with what was acknowledged."""

    def __init__(self, store: Store, random: Random) -> None:
        self.ended = 0
        self._store = store
        self._random = random
        self._runs: list[RunWriter] = []
        self._count = 0
        self._logs: dict[SessionRef, list[Record]] = {}
        self._refs: dict[str, SessionRef] = {}
        self._states: dict[str, RunState] = {}

    async def step(self) -> None:
        steps = (
            self._begin,
            self._append_batch,
            self._append_batch,
            self._append_concurrently,
            self._end,
            self._change_state,
        )
        await self._random.choice(steps)()

    async def check(self, store: Store) -> None:
        """Assert that a store contains everything: this one, or a copy as a crash would leave it."""
        for ref, log in self._logs.items():
            assert await read_all(store, ref) == log
        for run_id, state in self._states.items():
            run = await store.run(run_id)
            assert run is not None and run.state == state

    async def _begin(self) -> None:
        self._count += 1
        number = self._count if self._random.random() < 0.6 else self._random.randint(1, self._count)
        ref, run_id = SessionRef("ann", f"s{number}"), f"r{self._count}"
        if not any(run.run.ref == ref for run in self._runs):
            begun = await self._store.begin(new_run(run_id, ref))
            self._runs.append(RunWriter(self._store, begun.run))
            self._refs[run_id], self._states[run_id] = ref, "running"
            self._logs.setdefault(ref, [])

    async def _append_batch(self) -> None:
        await self._append(self._parts())

    async def _append_concurrently(self) -> None:
        parts = [*self._parts(), *self._parts()]
        await asyncio.gather(*(self._store.append([part]) for part in parts))
        self._acknowledge(parts)

    async def _end(self) -> None:
        """End one run in a batch in which others continue."""
        if self._runs:
            ending = self._runs.pop(self._random.randrange(len(self._runs)))
            await self._append([*self._parts(), ending.part(*tokens(1), RunFinished(), state="finished")])
            self._states[ending.run_id] = "finished"
            self.ended += 1

    async def _change_state(self) -> None:
        for run in self._runs[:1]:
            state: RunState = self._random.choice(("waiting", "running"))
            await run.write(state=state, results=[Result(key=state, media_type="text/plain", body=b"x")])
            self._states[run.run_id] = state

    def _parts(self) -> list[Append]:
        some = self._random.sample(self._runs, self._random.randint(0, len(self._runs)))
        return [run.part(*tokens(self._random.choice((0, 1, 1, 1, 4)))) for run in some]

    async def _append(self, parts: list[Append]) -> None:
        await self._store.append(parts)
        self._acknowledge(parts)

    def _acknowledge(self, parts: list[Append]) -> None:
        for part in parts:
            self._logs[self._refs[part.run_id]] += part.records
