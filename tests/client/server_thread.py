"""A server on an event loop in another thread, for tests that block, and waiting for its effects."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.server import Served, serving


@contextmanager
def serve_in_thread(*functions: Callable[..., Any], data: Path, **settings: Any) -> Generator[Served]:
    """Serve these agents until the block ends. Settings are given as `section__key=value`."""
    loop, stopped, ready, found = asyncio.new_event_loop(), asyncio.Event(), threading.Event(), list[Served]()

    async def serve() -> None:
        async with serving(*functions, data=data, **settings) as served:
            found.append(served)
            ready.set()
            await stopped.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(30)
        loop.close()


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.005)
