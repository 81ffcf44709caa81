"""One frame server for all tests of a file: starting and stopping it takes longer than most tests."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.openwebui.frame_server import FrameServer, running_frame_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_server() -> AsyncGenerator[FrameServer]:
    async with running_frame_server() as server:
        yield server


@pytest.fixture
def server(module_server: FrameServer) -> FrameServer:
    """The frame server without frames. A test that uses it has to run on the module's event loop."""
    module_server.clear()
    return module_server
