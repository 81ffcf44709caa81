"""What several tests of the server start from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from limelight.auth.key_file import NAME as KEYS_FILE
from limelight.auth.key_file import Keyring
from tests.server.keyed_server import House, maker
from tests.support import agents
from tests.support.server import serving


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with serving(agents.echo, maker, data=tmp_path) as served:
        yield House(served, Keyring(tmp_path), tmp_path / KEYS_FILE)
