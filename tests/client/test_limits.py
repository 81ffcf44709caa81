"""Limits and keys as a client meets them."""

from pathlib import Path

import pytest

from limelight.auth.key_file import Keyring
from limelight.client import Client, Limited, Unauthorized
from tests.support import agents
from tests.support.server import serving


async def test_who_one_is(tmp_path: Path) -> None:
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


async def test_a_limit_says_when_to_come_back(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path, limits__runs=1) as served, Client(served.url, key="") as client:
        run = await client.start("wait", session_id="a")
        with pytest.raises(Limited) as refused:
            await client.start("me too", session_id="b")
        assert (refused.value.code, refused.value.status) == ("too_many_runs", 429)
        assert refused.value.retry_after > 0
        await run.cancel()


async def test_a_limit_on_a_socket_says_so_too(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path, limits__runs=1) as served, Client(served.url, key="") as client:
        run = await client.start("wait", session_id="a")
        async with client.connect("b") as socket:
            with pytest.raises(Limited) as refused:
                await socket.send("me too")
        assert (refused.value.code, refused.value.status) == ("too_many_runs", 429)
        assert refused.value.retry_after > 0
        await run.cancel()
