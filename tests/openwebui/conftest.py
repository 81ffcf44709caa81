"""One stage for all tests of a file: starting and ending a server takes longer than most of them."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.openwebui.frame_server import Stage, playing


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def theatre() -> AsyncGenerator[Stage]:
    async with playing() as stage:
        yield stage


@pytest.fixture
def stage(theatre: Stage) -> Stage:
    """Empty again for each test, which must be on the module's event loop."""
    theatre.clear()
    return theatre
