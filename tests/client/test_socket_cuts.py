"""Sockets over connections that are cut: every message once, in order; questions are asked once."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection

from limelight.client import Client, ClientError, ConnectionLost, Gap, Limited, Message, NotFound, ServerError, State
from limelight.events import Record
from tests.client.cutting_proxy import cutting, same
from tests.client.scripted_server import hear, message, scripted, sends, told
from tests.client.socket_helpers import SECONDS, check_texts, messages, states, turn, until, whole
from tests.client.test_restart import restarted
from tests.support.server import serving
from tests.system.processes import agents
from tests.system.processes.server_process import ServerProcess

CUTS = 20


@pytest.mark.parametrize("agent", ["steady", "burst"])
@pytest.mark.parametrize("seed", range(3))
async def test_messages_over_twenty_cuts(tmp_path: Path, agent: str, seed: int) -> None:
    async with serving(getattr(agents, agent), data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting(served.url, CUTS, (agent, seed)) as cutter, Client(cutter.url) as client:
            items: list[object] = []
            async with client.connect("s") as socket:
                for _ in range(2):
                    items += await turn(socket, await socket.send("go"))
            assert cutter.left < CUTS
        assert whole(items) == [message async for message in straight.messages("s")]
        assert check_texts(items) > 2
        assert states(items).count("completed") == 2
        assert isinstance(items[-1], State)
        assert (await straight.session("s")).turns == 2


@pytest.mark.parametrize("agent", ["steady", "burst"])
async def test_records_over_twenty_cuts(tmp_path: Path, agent: str) -> None:
    async with serving(getattr(agents, agent), data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting(served.url, CUTS, agent) as cutter, Client(cutter.url) as client:
            async with client.connect("s", format="records") as socket:
                run_id = await socket.send("go")
                received = [item for item in await turn(socket, run_id) if isinstance(item, Record)]
            assert cutter.left < CUTS
        assert same(received, [record async for record in straight.export(run_id)])


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "terminated"])
async def test_the_server_restarts(tmp_path: Path, kill: bool) -> None:
    data = tmp_path / "data"
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(ServerProcess(data, "endless", "hello").__enter__)
        stack.callback(server.__exit__)
        client = await stack.enter_async_context(Client(f"http://127.0.0.1:{server.port}"))
        socket = await stack.enter_async_context(client.connect("s", agent="endless"))
        other = await stack.enter_async_context(client.connect("t", agent="hello"))
        run_id = await socket.send("go")
        items = await until(socket, lambda item: isinstance(item, Message) and item.message_type == "observation")
        restarting = asyncio.create_task(restarted(stack, server, data, kill=kill))
        items += await turn(socket, run_id)
        await restarting
        assert states(items) == ["processing", "error"]
        assert messages(items)[-1].metadata["code"] == "interrupted"
        check_texts(items)
        assert whole(items) == [message async for message in client.messages("s")]
        await other.send("hi")
        assert messages(await turn(other))[-1].content == "hello"


async def test_it_goes_on_behind_the_last_message() -> None:
    first = sends(told("processing", "r"), message("1"), message("2.1"), close=1012)
    second = sends(told("processing", "r"), message("2"), message("3"), told("completed", "r", "4"))
    async with scripted(first, second) as server, Client(server.url) as client, client.connect("s") as socket:
        items = await turn(socket)
    assert [item.cursor for item in messages(items)] == ["1", "2.1", "2", "3"]
    assert states(items) == ["completed"]
    assert server.queries == [{"format": "v2"}, {"format": "v2", "after": "2.1"}]


async def test_what_comes_twice_is_dropped() -> None:
    again = [message(cursor) for cursor in ("1.1", "1.2", "1", "2")]
    first = sends(told("processing", "r"), *again[:3], close=1006)
    second = sends(told("processing", "r"), *again, told("completed", "r", "3"))
    async with scripted(first, second) as server, Client(server.url) as client, client.connect("s") as socket:
        assert [item.cursor for item in messages(await turn(socket))] == ["1.1", "1.2", "1", "2"]


async def test_an_end_that_was_missed_is_told_behind_the_messages_that_were() -> None:
    first = sends(told("processing", "r"), message("1"), close=1006)
    second = sends(told("completed", "r", "9"), message("2"), message("3"))
    async with (
        scripted(first, second, last="3") as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        items = await turn(socket)
        assert [getattr(item, "cursor", "") for item in items] == ["1", "2", "3", "9"]


async def test_the_place_where_nothing_had_come_yet_is_kept() -> None:
    quiet, second = sends(told("idle", None, "7"), close=1006), sends(told("processing", "r", "9"), message("8"))
    async with scripted(quiet, second) as server, Client(server.url) as client, client.connect("s") as socket:
        assert states(await until(socket, lambda item: isinstance(item, Message))) == ["processing"]
    assert [query.get("after") for query in server.queries] == [None, "7"]


async def test_the_beginning_of_a_live_run_of_which_nothing_had_come_yet(tmp_path: Path) -> None:
    """The server chose where to begin, and would choose otherwise now that the run has ended."""
    async with serving(agents.hello, agents.quiet, data=tmp_path / "data") as served, Client(served.url) as client:
        await client.ask("first", agent="hello", session_id="s")
        await client.start("second", agent="quiet", session_id="s")
        async with client.connect("s") as socket:
            await socket.cancel()
            items = await turn(socket)
            socket._position.after = None  # pyright: ignore[reportPrivateUsage]
            assert socket._connection is not None  # pyright: ignore[reportPrivateUsage]
            socket._connection.abort()  # pyright: ignore[reportPrivateUsage]
            again = await until(socket, lambda item: getattr(item, "content", "") == "Stopped")
            assert whole(again) == whole(items)
            assert whole(again)[0].content == "second"


async def test_a_question_is_asked_again_under_its_name() -> None:
    async def loses_it(connection: ServerConnection) -> None:
        await connection.send(json.dumps(told()))
        await hear(connection, lambda said: said["type"] == "query")
        connection.transport.abort()

    async def shuts_down(connection: ServerConnection) -> None:
        await connection.send(json.dumps(told()))
        said = await hear(connection, lambda said: said["type"] == "query")
        refusal = {"type": "error", "message": "bye", "error_code": "shutting_down", "request_id": said["request_id"]}
        await connection.send(json.dumps(refusal))
        await connection.close(1012)

    async def accepts(connection: ServerConnection) -> None:
        await connection.send(json.dumps(told()))
        said = await hear(connection, lambda said: said["type"] == "query")
        await connection.send(json.dumps({"type": "accepted", "request_id": said["request_id"], "run_id": "r"}))
        await hear(connection, lambda _: False)

    async with (
        scripted(loses_it, shuts_down, 503, accepts) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        assert await asyncio.wait_for(socket.send("hi", if_busy="wait"), SECONDS) == "r"
    asked = [said for said in server.said if said["type"] == "query"]
    assert len(asked) == 3
    assert asked[0] == asked[1] == asked[2]


async def test_what_cannot_be_said_twice_is_said_to_be_lost() -> None:
    async def loses_it(connection: ServerConnection) -> None:
        await connection.send(json.dumps(told()))
        await hear(connection, lambda said: said["type"] in ("approve", "cancel"))
        connection.transport.abort()

    async with scripted(loses_it) as server, Client(server.url) as client, client.connect("s") as socket:
        with pytest.raises(ConnectionLost, match="whether it counts is not known"):
            await socket.approve("a")
        with pytest.raises(ConnectionLost, match="whether it counts is not known"):
            await socket.cancel()
    assert [said["type"] for said in server.said] == ["approve", "cancel"]


@pytest.mark.parametrize(
    ("code", "frames", "error"),
    [
        (1008, [{"type": "error", "message": "no", "error_code": "agent_mismatch"}], ClientError),
        (4404, [{"type": "error", "message": "no", "error_code": "session_not_found"}], NotFound),
        (4404, [], NotFound),
        (1008, [], ClientError),
    ],
)
async def test_what_coming_back_cannot_mend_is_raised(code: int, frames: list[dict[str, str]], error: type) -> None:
    for before in ([], [told(), message("1")]):
        async with scripted(sends(*before, *frames, close=code)) as server, Client(server.url) as client:
            with pytest.raises(error, match="no" if frames else "closed the socket"):
                async with client.connect("s") as socket:
                    await turn(socket)
        assert len(server.queries) == 1


async def test_a_session_that_was_deleted_meanwhile_is_not_made_again() -> None:
    gone = {"status": 404, "detail": "Session not found", "code": "session_not_found"}
    async with (
        scripted(sends(told(), close=1006), state=gone) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        with pytest.raises(NotFound):
            await turn(socket)
    assert len(server.queries) == 1


async def test_a_server_in_trouble_is_said_at_once_but_waited_for_later() -> None:
    async with scripted(503) as server, Client(server.url) as client:
        with pytest.raises(ServerError, match="not now"):
            await client.connect("s").__aenter__()
    async with (
        scripted(sends(told(), close=1006), 502, 503, sends(told(), message("1"))) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        assert isinstance(await asyncio.wait_for(anext(socket), SECONDS), Message)
    assert len(server.queries) == 4


async def test_a_limit_is_said_at_once_but_waited_for_later() -> None:
    """With 1013, and with the 1008 of servers that do not know it."""
    full = {"type": "error", "message": "too many", "error_code": "too_many_streams", "retry_after": 1}
    async with scripted(sends(full, close=1013)) as server, Client(server.url) as client:
        with pytest.raises(Limited, match="too many"):
            await client.connect("s").__aenter__()
    busy = {"type": "error", "message": "not now", "error_code": "store_unavailable", "retry_after": 1}
    async with (
        scripted(
            sends(told(), close=1006),
            sends(busy, close=1013),
            sends(full, close=1008),
            sends(told(), message("1")),
        ) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        assert isinstance(await asyncio.wait_for(anext(socket), SECONDS), Message)
    assert len(server.queries) == 4


async def test_giving_up() -> None:
    async with (
        scripted(sends(told(), close=1006), 503) as server,
        Client(server.url, give_up_seconds=0.3) as client,
        client.connect("s") as socket,
    ):
        with pytest.raises(ConnectionLost, match=r"gave up after 0\.3 s"):
            await turn(socket)
        with pytest.raises(ConnectionLost, match="gave up"):
            await socket.send("hi")


async def test_silence_is_a_cut_and_answered_pings_are_life() -> None:
    came_back = asyncio.Event()

    async def deaf(connection: ServerConnection) -> None:
        await connection.send(json.dumps(told()))
        connection.transport.pause_reading()
        await came_back.wait()
        connection.transport.abort()

    async def late(connection: ServerConnection) -> None:
        came_back.set()
        await connection.send(json.dumps(told()))
        await asyncio.sleep(1)  # five times as long as silence may be
        await connection.send(json.dumps(message("1")))
        await hear(connection, lambda _: False)

    async with (
        scripted(deaf, late) as server,
        Client(server.url, timeout=0.2) as client,
        client.connect("s") as socket,
    ):
        assert isinstance(await asyncio.wait_for(anext(socket), SECONDS), Message)
    assert len(server.queries) == 2


async def test_a_newer_server_is_understood_as_far_as_it_can_be() -> None:
    newer = [
        {"type": "weather"},
        {**message("1", "x" * 2_000_000), "mood": "good"},
        {"type": "gap", "from": 2, "to": 5},
    ]
    strange = {"session_id": "s", "cursor": "6", "seq": 6, "run_id": "r", "at": 0, "event": {"kind": "exploded"}}
    async with (
        scripted(sends(told(), *newer, strange)) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        said = await anext(socket)
        assert isinstance(said, Message)
        assert len(said.content) == 2_000_000
        assert await anext(socket) == Gap(2, 5)
        with pytest.raises(ClientError, match="is the client older"):
            await anext(socket)


async def test_a_key_does_not_follow_a_redirect() -> None:
    async with scripted(307) as server, Client(server.url, key="secret") as client:
        with pytest.raises(ClientError, match="does not seem"):
            await client.connect("s").__aenter__()
