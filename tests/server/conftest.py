"""What several tests of the server start from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from limelight.access.keyring import NAME as KEYS_FILE
from limelight.access.keyring import Keyring
from tests import agents
from tests.server.house import House, maker
from tests.serving import serving


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with serving(agents.echo, maker, data=tmp_path) as served:
        yield House(served, Keyring(tmp_path), tmp_path / KEYS_FILE)
