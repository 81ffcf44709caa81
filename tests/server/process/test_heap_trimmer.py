"""Memory that was freed is returned to the operating system while the process is larger than at its start."""

import asyncio
import gc
import subprocess
import sys
import weakref

import pytest

from limelight.server.process import heap_trimmer
from limelight.server.process.heap_trimmer import GROWTH_BYTES, HeapTrimmer
from tests.support.wait import eventually

GROW_AND_TRIM = """
from limelight.server.process.heap_trimmer import find_trim, resident_bytes
before = resident_bytes()
buffers = [(bytearray(50_000), bytearray(600)) for _ in range(2000)]
kept = [small for _, small in buffers]  # between the large ones: they keep the heap from shrinking
del buffers
freed = resident_bytes()
find_trim()(0)
print(before, freed, resident_bytes())
"""


async def test_heap_is_trimmed_only_while_the_process_is_larger_than_at_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heap_trimmer, "CHECK_SECONDS", 0)
    resident, checks, trims = 100, 0, 0

    def read() -> int:
        nonlocal checks
        checks += 1
        return resident

    def trim(_: int) -> int:
        nonlocal trims
        trims += 1
        return 1

    task = asyncio.create_task(HeapTrimmer(trim, read).run())
    try:
        await eventually(lambda: checks > 5)
        assert trims == 0
        resident += GROWTH_BYTES + 1
        await eventually(lambda: trims > 2)
    finally:
        task.cancel()


async def test_unreachable_objects_are_freed_before_the_heap_is_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle server creates too few objects for Python to collect them by itself."""

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    monkeypatch.setattr(heap_trimmer, "CHECK_SECONDS", 0)
    sizes = iter([0])
    freed: list[bool] = []
    gc.disable()
    cycle = weakref.ref(Cycle())

    def trim(_: int) -> int:
        freed.append(cycle() is None)
        return 1

    task = asyncio.create_task(HeapTrimmer(trim, lambda: next(sizes, GROWTH_BYTES + 1)).run())
    try:
        assert cycle() is not None
        await eventually(lambda: bool(freed))
        assert freed[0]
    finally:
        gc.enable()
        task.cancel()


@pytest.mark.skipif(heap_trimmer.find_trim() is None, reason="this C library has no malloc_trim")
def test_trim_returns_freed_memory() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", GROW_AND_TRIM], capture_output=True, text=True, check=True, timeout=60
    )
    before, freed, trimmed = map(int, ended.stdout.split())
    assert freed > before + 50 * 1024 * 1024
    assert trimmed < before + 20 * 1024 * 1024
