"""Fixtures of the server's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from limelight.auth.key_file import NAME as KEYS_FILE
from limelight.auth.key_file import Keyring
from tests.server.keyed_server import KeyedServer, maker
from tests.support import agents
from tests.support.server import serving


@pytest.fixture
async def keyed(tmp_path: Path) -> AsyncIterator[KeyedServer]:
    async with serving(agents.echo, maker, data=tmp_path) as served:
        yield KeyedServer(served, Keyring(tmp_path), tmp_path / KEYS_FILE)
