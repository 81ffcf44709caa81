"""The databases of the frameworks, the store and the workspaces are private in a data folder that others can read."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# The frameworks' own types are partly unknown.

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.private_files import OTHERS
from tests.sources.agno import agno_scenarios
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.live_turn import ModelEndpoint, serve_agent

SCRIPT = "- steps: [{text: All done.}]"


@pytest.mark.usefixtures("agno_models")
@pytest.mark.requirement("data-private")
@pytest.mark.parametrize(
    ("make", "database"), [(langgraph_scenarios.plain, "langgraph.db"), (agno_scenarios.plain, "agno.db")]
)
@pytest.mark.parametrize("is_existing", [False, True])
async def test_data_of_a_server_is_private_in_a_folder_that_others_can_read(
    make: Callable[[ModelEndpoint], Any], database: str, is_existing: bool, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    if is_existing:
        async with serve_agent(make, SCRIPT, data) as server:
            await server.run()
        (data / "workspaces").mkdir(exist_ok=True)
        for path in data.iterdir():
            path.chmod(0o755 if path.is_dir() else 0o644)
    async with serve_agent(make, SCRIPT, data) as server:
        await server.run()
        names = {path.name for path in data.iterdir()}
        readable = {path.name for path in data.iterdir() if path.stat().st_mode & OTHERS}
    assert {"limelight.db", "limelight.db-wal", database} <= names
    assert readable <= {"retention.json"}  # it contains only times
