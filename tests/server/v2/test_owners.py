"""Who may open a socket, and whose session it is."""

from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import InvalidStatus

from tests.server.v2.socket_client import socket, whole
from tests.support import agents
from tests.support.server import serving

KEY = {"authorization": "Bearer sesame"}


async def refused(served: object, headers: dict[str, str]) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refusal:
        async with socket(served, headers=headers):  # pyright: ignore[reportArgumentType]
            pass
    response = refusal.value.response
    assert response.body is not None
    return response.status_code, msgspec.json.decode(response.body)["code"]


async def test_a_socket_needs_the_key(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        assert await refused(served, {}) == (401, "unauthorized")
        assert await refused(served, {"authorization": "Bearer wrong"}) == (401, "unauthorized")
        async with socket(served, headers=KEY) as watching:
            assert (await watching.hear())["type"] == "state"
        assert len((await served.http.get("/api/v2/sessions", headers=KEY)).json()) == 1


async def test_a_session_is_its_owners(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        ann, ben = ({**KEY, "x-limelight-user-id": name} for name in ("ann", "ben"))
        async with socket(served, headers=ann) as watching:
            frames = await watching.ask("secret")
            assert "for ann/" in whole(frames)[-1]["content"]
        async with socket(served, headers=ben) as watching:  # the same name, another session
            assert (await watching.hear())["state"]["message_count"] == 0
            await watching.say("get_messages")
            assert (await watching.hear())["count"] == 0
        assert (await served.http.get("/api/v2/sessions/s", headers=KEY)).status_code == 404
        assert (await served.http.get("/api/v2/sessions/s/messages", headers=KEY)).status_code == 404
        assert (await served.http.delete("/api/v2/sessions/s", headers=KEY)).status_code == 404
        assert (await served.http.get("/api/v2/sessions", headers=KEY)).json() == []


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://127.0.0.1.evil.example", "null", "file://", "http://localhost:5173"],
)
async def test_a_page_of_another_site_opens_no_socket(tmp_path: Path, origin: str) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        assert await refused(served, {"origin": origin}) == (403, "forbidden")


@pytest.mark.parametrize("origin", ["", "http://localhost:5173"], ids=["own", "named"])
async def test_the_own_page_and_those_that_the_settings_name_may(tmp_path: Path, origin: str) -> None:
    async with (
        serving(agents.talker, data=tmp_path, server__origins=["http://localhost:5173"]) as served,
        socket(served, headers={"origin": origin or served.url}) as watching,
    ):
        assert (await watching.hear())["type"] == "state"
