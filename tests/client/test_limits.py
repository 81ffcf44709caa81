"""Keys, limits and root paths with a real server."""

from pathlib import Path
from typing import Any

import pytest

from limelight.auth.key_file import Keyring
from limelight.client import Client, Limited, Message, Unauthorized
from limelight.events import RunFinished
from tests.support import agents
from tests.support.server import serving


async def test_me_returns_user_and_scopes(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        async with Client(served.url, key="") as client:
            assert ((await client.me()).user, (await client.me()).open) == ("local", True)
        key = Keyring(tmp_path).create("pipe", ("use", "on-behalf-of"), 1)[1]
        async with Client(served.url, key=key, user_id="cleo", user_name="Cleo") as client:
            me = await client.me()
            assert (me.user, me.name, me.scopes, me.open) == ("cleo", "Cleo", ("on-behalf-of", "use"), False)
        async with Client(served.url, key="") as client:
            with pytest.raises(Unauthorized):
                await client.me()


async def test_limit_raises_limited_with_retry_after(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path, limits__runs=1) as served, Client(served.url, key="") as client:
        run = await client.start("wait", session_id="a")
        async with client.connect("b") as socket:
            for attempt in (client.start("me too", session_id="b"), socket.send("me too")):
                with pytest.raises(Limited) as refused:
                    await attempt
                assert (refused.value.code, refused.value.status) == ("too_many_runs", 429)
                assert refused.value.retry_after > 0
        await run.cancel()


@pytest.mark.parametrize("slash", ["", "/"])
async def test_client_works_with_a_root_path(tmp_path: Path, slash: str) -> None:
    settings: dict[str, Any] = {"server__root_path": "/limelight", "auth__api_key": "sesame"}
    async with serving(agents.big, data=tmp_path, **settings) as served:
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
