"""The client and the commands with an address that has a path."""

import json
from pathlib import Path
from typing import Any

import pytest

from limelight.client import Client, Message, SyncClient
from limelight.events import RunFinished
from tests.cli.test_commands import limelight
from tests.support import agents
from tests.support.server import serving
from tests.system.processes.server_process import ServerProcess

ROOT: dict[str, Any] = {"server__root_path": "/limelight", "auth__api_key": "sesame"}


@pytest.mark.parametrize("slash", ["", "/"])
async def test_the_client_asks_fetches_and_talks(tmp_path: Path, slash: str) -> None:
    async with serving(agents.big, data=tmp_path, **ROOT) as served:
        assert served.url.endswith("/limelight")
        async with Client(served.url + slash, key="sesame") as client:
            answer = await client.ask("go", session_id="s")
            assert answer.content == "Large."
            assert (await client.result(answer.run_id, "big/1")).result == "x" * 300_000
            records = [record async for record in client.follow(answer.run_id)]
            assert isinstance(getattr(records[-1], "event", None), RunFinished)
            async with client.connect("s") as socket:
                await socket.send("again")
                async for item in socket:
                    if isinstance(item, Message) and item.whole and item.content == "Large.":
                        break


def test_the_commands_ask_and_watch(tmp_path: Path) -> None:
    with ServerProcess(
        tmp_path / "data", "hello", LIMELIGHT_ROOT_PATH="/limelight", LIMELIGHT_API_KEY="sesame"
    ) as server:
        url = f"http://127.0.0.1:{server.port}/limelight"
        said = limelight(
            "run", "hi", "--session", "s", "--url", url, folder=tmp_path, LIMELIGHT_API_KEY="sesame"
        ).stdout.decode()
        assert said.startswith("● hello: hi\n\nhello\n")
        watched = limelight(
            "watch", "s", "--after", "0", "--once", "--json", "--url", url, folder=tmp_path, LIMELIGHT_API_KEY="sesame"
        ).stdout.splitlines()
        assert json.loads(watched[-1])["event"]["kind"] == "run_finished"
        with SyncClient(url, key="sesame") as client:
            assert [session.session_id for session in client.sessions()] == ["s"]
